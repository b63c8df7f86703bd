"""The memory of hosts in a real server keeps the promises of its contract."""

from __future__ import annotations

import threading
import time

import pytest
from tests.crawler.store.valkey_server import LocalServer

from mannerly.crawler.model import Now
from mannerly.crawler.store import open_host_memory
from mannerly.crawler.store.contract.hosts import HostMemoryContract
from mannerly.crawler.store.host_memory import Granted, Holder, HostBudget, InUse, LeaseTimes
from mannerly.crawler.store.valkey.packing import Poisoned

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


def test_a_poisoned_budget_is_refused_with_its_key(server) -> None:
    """It is not taken for "nothing is known"."""
    memory = open_host_memory(server.url)
    memory.write("x", [HostBudget("a.example", next_in_s=5.0)], NOW)
    with server.client() as client:
        client.hset("mannerly:{hosts}:b", "a.example", b'["soon"]')

    with pytest.raises(Poisoned, match=r"mannerly:\{hosts\}:b"):
        memory.budgets(["a.example"], NOW)
    memory.close()
