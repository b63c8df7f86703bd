"""The memory of hosts in a real server keeps the promises of its contract."""

from __future__ import annotations

import json
import threading
import time

import pytest
from tests.crawler.store.valkey_server import LocalServer

from mannerly.crawler.model import Now
from mannerly.database.address import parse
from mannerly.database.ages import Ages
from mannerly.hosts import open_host_memory
from mannerly.hosts.base import Granted, Holder, HostBudget, InUse, LeaseTimes
from mannerly.hosts.server import HostsServer, ValkeyHosts
from mannerly.hosts.suite import HostMemoryContract

TIMES = LeaseTimes(lease_s=1.4, heartbeat_s=0.4, silent_s=1.1, grace_s=0.2)
NOW = Now(0.0, 0.0)  # a server ignores it


@pytest.fixture(scope="module")
def server():
    with LocalServer() as started:
        yield started


class TestValkeyHosts(HostMemoryContract):
    times = TIMES
    tolerance_s = 0.5
    has_time_of_callers = False

    @pytest.fixture(autouse=True)
    def _server(self, server) -> None:
        self.server = server
        with server.client() as client:
            client.flushall()

    def open_memory(self):
        return open_host_memory(self.server.url, times=self.times)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def test_changes_at_the_same_moment_are_all_made(server) -> None:
    """Two processes that claim many hosts at once share them out."""
    with server.client() as client:
        client.flushall()
    hosts = {f"h{n}.example": 1.0 for n in range(40)}
    answers = {}

    def claim(crawl: str) -> None:
        memory = open_host_memory(server.url)
        memory.join(Holder(crawl, crawl, crawl, "1"), NOW)
        answers[crawl] = {}
        for host, gap_s in hosts.items():
            answers[crawl] |= memory.claim(crawl, {host: gap_s}, NOW)
        memory.close()

    threads = [threading.Thread(target=claim, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for host in hosts:
        assert sorted(type(answers[name][host]).__name__ for name in "xy") == ["Granted", "InUse"]


def test_no_host_is_granted_for_one_lease_after_a_restart() -> None:
    """Its holder goes on; others wait until a forgotten grant would have ended."""
    with LocalServer("--appendonly", "yes", "--appendfsync", "always") as server:
        memory = open_host_memory(server.url, times=TIMES)
        one, two = (Holder(name, name, name, "1") for name in ("x", "y"))
        memory.join(one, NOW)
        memory.claim("x", {"a.example": 1.0}, NOW)
        server.kill()
        server.start()
        memory.join(one, NOW)
        memory.join(two, NOW)

        mine = memory.claim("x", {"a.example": 1.0}, NOW)
        held = memory.claim("y", {"b.example": 1.0}, NOW)
        time.sleep(TIMES.lease_s * 0.6)
        memory.renew("y", [], NOW)
        time.sleep(TIMES.lease_s * 0.6)
        later = memory.claim("y", {"b.example": 1.0}, NOW)
        memory.close()

    assert isinstance(mine["a.example"], Granted)
    assert isinstance(held["b.example"], InUse)
    assert isinstance(later["b.example"], Granted)


def machine(server, number: int, now: list[float]) -> ValkeyHosts:
    """Open the memory on a machine of its own whose monotonic clock is `now`."""
    ages = Ages(f"boot-{number}", origin_s=500.0 * number)
    address = parse(server.url, needs_name=False)
    return ValkeyHosts(server.url, server=HostsServer(address, mono=lambda: now[0], ages=ages))


@pytest.mark.parametrize("set_s", [-3600.0, 60.0, 3600.0])
def test_a_wait_does_not_depend_on_the_clock_of_the_server(server, set_s: float) -> None:
    """It is set after a holder wrote a wait: others serve what their own clocks have counted."""
    now = [1000.0]
    with server.client() as client:
        client.flushall()
        writer, reader = machine(server, 0, now), machine(server, 1, now)
        writer.join(Holder("x", "x", "x", "1"), NOW)
        writer.claim("x", {"a.example": 1.0}, NOW)
        writer.write("x", [HostBudget("a.example", next_in_s=600.0)], NOW)
        at, *others = json.loads(client.hget("mannerly:{hosts}:b", "a.example"))
        client.hset("mannerly:{hosts}:b", "a.example", json.dumps([at - set_s, *others]))

    seen = reader.budgets(["a.example"], NOW)["a.example"].next_in_s
    now[0] += 100.0
    later = reader.budgets(["a.example"], NOW)["a.example"].next_in_s

    assert seen == 600.0
    assert 500.0 <= later <= 500.2


def test_a_holder_dies_by_the_clocks_of_others(server) -> None:
    """Of a machine that was not heard of before, its last sign of life counts from now."""
    now = [1000.0]
    with server.client() as client:
        client.flushall()
    dead, other = machine(server, 0, now), machine(server, 1, now)
    dead.join(Holder("x", "x", "x", "1"), NOW)
    dead.claim("x", {"a.example": 1.0}, NOW)
    now[0] += 3600.0
    other.join(Holder("y", "y", "y", "1"), NOW)

    at_first = other.claim("y", {"a.example": 1.0}, NOW)
    now[0] += TIMES.lease_s * 5
    other.renew("y", [], NOW)
    before = other.claim("y", {"a.example": 1.0}, NOW)
    now[0] += 10.0
    after = other.claim("y", {"a.example": 1.0}, NOW)

    assert isinstance(at_first["a.example"], InUse)
    assert isinstance(before["a.example"], InUse)
    assert isinstance(after["a.example"], Granted)


def test_dead_holders_are_removed_with_their_leases_and_wishes(server) -> None:
    """Else every change would read all that were ever killed; the gap of their hosts holds."""
    now = [1000.0]
    with server.client() as client:
        client.flushall()
        memory = machine(server, 0, now)
        for number in range(50):
            name = f"x{number}"
            memory.join(Holder(name, name, name, "1"), NOW)
            memory.claim(name, {f"{name}.example": 7.0, "wanted.example": 1.0}, NOW)
        now[0] += 20.0

        memory.join(Holder("y", "y", "y", "1"), NOW)
        left = [client.hlen(f"mannerly:{{hosts}}:{key}") for key in "hlw"]
        granted = memory.claim("y", {"x7.example": 1.0}, NOW)["x7.example"]

    assert left == [1, 0, 0]
    assert isinstance(granted, Granted)
    assert granted.budget is not None
    assert granted.budget.next_in_s == 7.0


def test_budgets_that_were_not_used_for_long_are_removed_once_a_day(server) -> None:
    """Those of private hosts after a day, others after ninety; a long wait stays."""
    now, day_s = [1000.0], 86_400.0
    hosts = {"old.example": 91, "new.example": 80, "127.0.0.1": 2, "waits.example": 99}
    with server.client() as client:
        client.flushall()
        memory = machine(server, 0, now)
        waits = {"waits.example": 3600.0}
        budgets = [HostBudget(host, next_in_s=waits.get(host, 1.0)) for host in hosts]
        memory.write("x", budgets, NOW)
        for host, days in hosts.items():
            at, *others = json.loads(client.hget("mannerly:{hosts}:b", host))
            client.hset("mannerly:{hosts}:b", host, json.dumps([at - days * day_s, *others]))

        memory.join(Holder("y", "y", "y", "1"), NOW)
        kept = {name.decode() for name in client.hkeys("mannerly:{hosts}:b")}

    assert kept == {"new.example", "waits.example"}


@pytest.mark.parametrize("poison", [b'["soon"]', b"soon", b'{"a": NaN}', b"[]"])
def test_host_with_an_unreadable_budget_waits_a_minute(server, poison: bytes) -> None:
    """It may have asked for a wait; no crawl stops for it, and the message names the key."""
    memory = open_host_memory(server.url)
    memory.write("x", [HostBudget("a.example", next_in_s=5.0)], NOW)
    with server.client() as client:
        client.hset("mannerly:{hosts}:b", "a.example", poison)

    budget = memory.budgets(["a.example"], NOW)["a.example"]
    (words,) = memory.take_mended()
    memory.close()

    assert budget.next_in_s == pytest.approx(60.0, abs=5.0)
    assert "mannerly:{hosts}:b: a.example" in words


def test_a_budget_that_is_no_text_is_removed_and_said(server) -> None:
    """No script could replace it."""
    memory = open_host_memory(server.url)
    with server.client() as client:
        client.hset("mannerly:{hosts}:b", "a.example", b"\xff")

    memory.write("x", [HostBudget("a.example", next_in_s=5.0)], NOW)
    budget = memory.budgets(["a.example"], NOW)["a.example"]
    said = memory.take_mended()
    memory.close()

    assert budget.next_in_s == pytest.approx(5.0, abs=2.0)
    assert len(said) == 1


ODD = [
    b"null",
    b"-1",
    b"1e300",
    b"-1e300",
    b"NaN",
    b"Infinity",
    b"1e400",
    b'"x"',
    b"[]",
    b"9" * 5000,
]


@pytest.mark.parametrize("odd", ODD)
def test_odd_values_in_a_server_are_put_in_range_or_left_out(server, odd: bytes) -> None:
    """In every place of every key: hosts are claimed, written, forgotten and given back."""
    memory = open_host_memory(server.url)
    base = "mannerly:{hosts}:"
    lesson = b'{"delay_s":%b,"floor_s":0,"allowance":0,"block_s":0,"concurrency":0}' % odd
    kept = [[b"1", b"null", *[b"1"] * 9, b'"x"'] for _ in range(12)]
    for place, values in enumerate(kept):
        values[place] = odd
    kept[1][1] = lesson
    hosts = {f"{n}.example": 1.0 for n in range(len(kept))}
    with server.client() as client:
        client.flushall()
        for host, values in zip(hosts, kept, strict=True):
            client.hset(base + "b", host, b"[" + b",".join(values) + b"]")
        client.hset(base + "l", "0.example", b'["x",%b,0]' % odd)
        client.hset(base + "l", "1.example", b'["x",1,%b]' % odd)
        client.hset(base + "h", "x", b'[%b,"x","x","x"]' % odd)
        client.hset(base + "w", "2.example", odd)
    holder = Holder("y", "y", "y", "1")

    memory.join(holder, NOW)
    claimed = memory.claim("y", hosts, NOW)
    memory.renew("y", [HostBudget(host, next_in_s=1.0) for host in hosts], NOW)
    memory.wanted("y", NOW)
    memory.in_use(hosts, NOW)
    memory.forget("3.example", NOW)
    budgets = memory.budgets(hosts, NOW)
    memory.leave("y", [], NOW)
    memory.close()

    assert set(claimed) == set(budgets) == set(hosts)
    assert all(0.0 <= budget.next_in_s <= 250e9 for budget in budgets.values())
