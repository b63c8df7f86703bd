"""Waits of hosts that a server forgot are written again by the process that still knows them."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

import pytest
from tests.crawler.store.valkey_server import LocalServer

from mannerly.crawler.model import HostRecord
from mannerly.crawler.store.base import Batch, Heartbeat, ShardOptions, StoreInUse
from mannerly.crawler.store.contract import candidate, enter, new_manifest
from mannerly.crawler.store.fleet import LeaseLost, StoreAway
from mannerly.crawler.store.fleet_times import WAITS_KEPT_S
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.crawler.store.valkey.host_codec import merged
from mannerly.crawler.store.valkey.leases import ValkeyFleet
from mannerly.database.ages import boot_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mannerly.crawler.store.valkey.shard import ValkeyShard

T = TypeVar("T")
OPTIONS = ShardOptions(1000)
HOUR_S = 3600.0
HOST = "a.example"


class Forgetful:
    """A server whose last writes can be taken back, and a crawl in it."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        options = ("--appendonly", "yes", "--appendfsync", "always")
        self._server = stack.enter_context(LocalServer(*options))
        self._stack, self._folder = stack, folder
        self.location = f"{self._server.url}#x"
        self.crawl = ValkeyCrawl.create(self.location, new_manifest(2))
        stack.callback(self.crawl.close)
        self.crawl.keep_in(folder)
        (self._log,) = (self._server.folder / "appendonlydir").glob("*.incr.aof")
        self._kept = 0

    def open(self) -> ValkeyCrawl:
        crawl = ValkeyCrawl.open(self.location)
        self._stack.callback(crawl.close)
        crawl.keep_in(self._folder)
        return crawl

    def save(self) -> None:
        self._kept = self._log.stat().st_size

    def forget(self) -> None:
        """Restart without what was written since `save`."""
        self._server.kill()
        with self._log.open("r+b") as file:
            file.truncate(self._kept)
        self._server.start()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Have it answer nothing, as if the network were cut."""
        assert self._server.process is not None
        self._server.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._server.process.send_signal(signal.SIGCONT)

    def renew(self) -> list[int]:
        heartbeat = Heartbeat("w1", "machine", 4711, [0], 0, time.time())
        return self._until_it_is_back(
            lambda: self.crawl.fleet.renew(heartbeat, now=time.monotonic())
        )

    def tell(self) -> None:
        self._until_it_is_back(self.crawl.reminders.tell)

    def _until_it_is_back(self, call: Callable[[], T]) -> T:
        while True:
            try:
                return call()
            except StoreAway:
                time.sleep(0.05)

    def next_owner(self, crawl: ValkeyCrawl | None = None) -> ValkeyShard:
        crawl, deadline = crawl or self.open(), time.monotonic() + 10
        while True:
            try:
                return crawl.claim(0, OPTIONS)
            except StoreInUse:
                assert time.monotonic() < deadline
                time.sleep(0.05)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forgetful]:
    monkeypatch.setattr(ValkeyFleet, "lease_s", 0.5)
    with ExitStack() as stack:
        yield Forgetful(stack, tmp_path)


def silent(for_s: float = HOUR_S, *, fetched: int = 0) -> HostRecord:
    """Return the record of a host that has asked for silence."""
    now = time.time()
    return HostRecord(
        HOST,
        crawl_delay_s=7.0,
        blocked_until=now + for_s,
        next_at=now + for_s,
        updated_at=now,
        fetched=fetched,
        boot=boot_id(),
        updated_mono=time.monotonic(),
    )


def wait_s(record: HostRecord | None) -> float:
    assert record is not None
    return record.next_at - time.time()


def test_a_wait_in_the_last_second_of_a_server_holds_for_the_next_owner(server: Forgetful) -> None:
    """With the Crawl-delay; the totals are those of the server."""
    owner = server.crawl.claim(0, OPTIONS)
    enter(owner, candidate())
    owner.commit(Batch(hosts=[HostRecord(HOST, fetched=3, updated_at=time.time() - 60)]))
    server.save()
    owner.commit(Batch(hosts=[silent(fetched=9)]))
    server.forget()

    lost = server.renew()

    record = server.next_owner().host(HOST)
    assert lost == [0]
    assert wait_s(record) == pytest.approx(HOUR_S, abs=20)
    assert record is not None
    assert (record.fetched, record.crawl_delay_s) == (3, 7.0)


def test_a_wait_of_a_claim_that_the_server_forgot_holds_for_the_next_owner(
    server: Forgetful,
) -> None:
    """Not even the token of its owner is there."""
    server.save()
    owner = server.crawl.claim(0, OPTIONS)
    owner.commit(Batch(hosts=[silent()]))
    server.forget()

    assert server.renew() == [0]
    assert wait_s(server.next_owner().host(HOST)) == pytest.approx(HOUR_S, abs=20)


def test_a_wait_of_a_shard_that_was_handed_over_holds_for_the_next_owner(
    server: Forgetful,
) -> None:
    """Its last owner tells the server, as soon as it sees the restart."""
    other = server.crawl.claim(1, OPTIONS)
    server.save()
    owner = server.crawl.claim(0, OPTIONS)
    owner.commit(Batch(hosts=[silent()]))
    owner.close()
    server.forget()

    server.renew()

    assert not other.is_lost
    assert wait_s(server.next_owner().host(HOST)) == pytest.approx(HOUR_S, abs=20)


def test_a_wait_that_was_told_again_is_told_again_after_the_next_loss(server: Forgetful) -> None:
    """A server may fail again soon: what it was reminded of is as new as what was written."""
    owner = server.crawl.claim(0, OPTIONS)
    server.save()
    owner.commit(Batch(hosts=[silent()]))
    server.forget()
    server.renew()
    began = time.monotonic()
    for turns in (1, 2):  # what was written before is dropped
        server.crawl.server.mono = lambda turns=turns: began + turns * WAITS_KEPT_S
        server.tell()
        server.crawl.reminders.note(0, [])
        server.forget()

    server.tell()

    assert wait_s(server.next_owner().host(HOST)) == pytest.approx(HOUR_S, abs=20)


def test_a_wait_that_could_not_be_committed_holds_for_the_next_owner(server: Forgetful) -> None:
    """The commit is refused, or the shard was dropped before it."""
    owner = server.crawl.claim(0, OPTIONS)
    enter(owner, candidate())
    server.save()
    enter(owner, candidate("/1"))
    enter(owner, candidate("/2"))
    server.forget()

    server.renew()
    with pytest.raises(LeaseLost):
        owner.commit(Batch(hosts=[silent()]))
    owner.remember_hosts([silent()._replace(host="b.example")])
    owner.close()
    server.crawl.reminders.tell()

    following = server.next_owner()
    assert wait_s(following.host(HOST)) == pytest.approx(HOUR_S, abs=20)
    assert wait_s(following.host("b.example")) == pytest.approx(HOUR_S, abs=20)


def taken_over(server: Forgetful) -> tuple[ValkeyShard, ValkeyShard]:
    """Return a shard of an owner that was cut off, and of the one that has it now."""
    cut_off = server.crawl.claim(0, OPTIONS)
    enter(cut_off, candidate())
    following = server.next_owner()
    assert server.renew() == [0]
    return cut_off, following


def test_a_wait_from_while_an_owner_was_cut_off_reaches_the_present_one(server: Forgetful) -> None:
    """It has the host in memory, and has written its own record meanwhile."""
    cut_off, owner = taken_over(server)
    owner.commit(Batch(hosts=[HostRecord(HOST, fetched=1, updated_at=time.time())]))
    before = owner.reminders()

    cut_off.remember_hosts([silent()])
    owner.commit(Batch(hosts=[HostRecord(HOST, fetched=2, updated_at=time.time())]))
    (record,) = owner.reminders()

    assert before == []
    assert wait_s(record) == pytest.approx(HOUR_S, abs=20)
    assert owner.reminders() == []


def test_a_reminder_stays_until_the_record_of_its_host_is_committed(server: Forgetful) -> None:
    """An owner that dies before leaves it to the next one."""
    cut_off, owner = taken_over(server)
    owner.commit(Batch(hosts=[HostRecord(HOST, updated_at=time.time())]))
    cut_off.remember_hosts([silent()])
    owner.commit(Batch(hosts=[HostRecord(HOST, updated_at=time.time())]))
    owner.reminders()

    following = server.next_owner()
    (record,) = following.reminders()
    following.commit(Batch(hosts=[record]))
    last = server.next_owner()

    assert wait_s(record) == pytest.approx(HOUR_S, abs=20)
    assert last.reminders() == []
    assert wait_s(last.host(HOST)) == pytest.approx(HOUR_S, abs=20)


def test_an_owner_that_only_renews_hears_of_a_reminder(server: Forgetful) -> None:
    """It has nothing to commit."""
    other = server.open()
    cut_off = other.claim(0, OPTIONS)
    owner = server.next_owner(server.crawl)
    owner.reminders()
    cut_off.lose()
    cut_off.close()
    cut_off.remember_hosts([silent()])

    server.renew()

    assert [record.host for record in owner.reminders()] == [HOST]


def test_a_wait_is_told_when_the_server_can_be_reached_again(server: Forgetful) -> None:
    """With the first renewal that succeeds: it was not restarted meanwhile."""
    cut_off, owner = taken_over(server)
    with server.stopped():
        cut_off.remember_hosts([silent()])

    server.renew()

    owner.commit(Batch(applied=1))
    (record,) = owner.reminders()
    assert wait_s(record) == pytest.approx(HOUR_S, abs=20)


def test_a_reminder_shortens_no_wait(server: Forgetful) -> None:
    """The present owner was asked for a longer one: its record stays, and it is told nothing."""
    cut_off, owner = taken_over(server)
    owner.commit(Batch(hosts=[silent(2 * HOUR_S)]))
    key = server.crawl.keys.of_shard(0, "h")
    before = server.crawl.server.ask("HGET", key, HOST)

    then = silent()
    cut_off.remember_hosts(
        [then._replace(updated_at=then.updated_at - 60, updated_mono=then.updated_mono - 60)]
    )

    assert server.crawl.server.ask("HGET", key, HOST) == before
    assert owner.reminders() == []


def test_nothing_is_written_to_a_server_that_forgot_nothing(server: Forgetful) -> None:
    """The record stays as its owner wrote it."""
    owner = server.crawl.claim(0, OPTIONS)
    owner.commit(Batch(hosts=[silent()]))
    key = server.crawl.keys.of_shard(0, "h")
    before = server.crawl.server.ask("HGET", key, HOST)

    server.crawl.reminders.tell()

    assert server.crawl.server.ask("HGET", key, HOST) == before


def test_no_wait_becomes_shorter() -> None:
    """Of two records the later instants hold, and the newer pace."""
    older = HostRecord(HOST, crawl_delay_s=1.0, next_at=500.0, updated_at=100.0, fetched=1)
    newer = HostRecord(HOST, crawl_delay_s=9.0, next_at=300.0, updated_at=200.0, fetched=2)
    older, newer = older._replace(updated_mono=10.0), newer._replace(updated_mono=110.0)

    both = merged(older, newer), merged(newer, older)

    assert [(each.next_at, each.crawl_delay_s, each.updated_at) for each in both] == [
        (500.0, 9.0, 200.0)
    ] * 2
    assert [each.fetched for each in both] == [1, 2]


def test_no_wait_becomes_shorter_when_the_clock_of_the_server_was_set() -> None:
    """It was set an hour ahead between two records: their waits end as their owners counted."""
    older = HostRecord(HOST, next_at=500.0, updated_at=100.0, updated_mono=10.0)  # until 410
    newer = HostRecord(HOST, next_at=3800.0, updated_at=3700.0, updated_mono=20.0)  # until 120

    left_s = [
        each.next_at - each.updated_at for each in (merged(older, newer), merged(newer, older))
    ]

    assert left_s == [390.0, 390.0]
