"""A memory of hosts on a server that goes away: hosts wait, and the crawl goes on afterwards."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Self

import pytest
from virtual.fetcher import FakeFetcher, FakeReply, VirtualClock
from virtual.fleet.members import MachineClocks, VirtualWorker
from virtual.store import memory_crawl
from virtual.store.memory_crawl import DatedStore, MemoryCrawl

from mannerly.crawler.model import Now
from mannerly.crawler.runtime.beginning import new_manifest
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.coordinator import FixedShards
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.web.choices import ScopeMode
from mannerly.database.errors import StoreAway, StoreBusy, StoreError
from mannerly.hosts import inprocess
from mannerly.hosts.base import LeaseTimes
from mannerly.hosts.inprocess import MemoryHosts
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from mannerly.crawler.model import Request

LINKS = "".join(f'<a href="/{number}">{number}</a>' for number in range(30)).encode()
NAMES = count()
AWAY = StoreAway("the server does not answer")


class Unsteady(MemoryHosts):
    """A memory that fails while `error` is set, and counts its calls."""

    error: StoreError | None = None
    calls = 0

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name.startswith("_") or not callable(value) or name in ("close", "take_mended"):
            return value
        Unsteady.calls += 1
        if Unsteady.error is not None:
            raise Unsteady.error
        return value


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> type[Unsteady]:
    """The class of every memory of hosts: set its `error`."""
    monkeypatch.setattr(inprocess, "MemoryHosts", Unsteady)
    monkeypatch.setattr(Unsteady, "error", None)
    monkeypatch.setattr(Unsteady, "calls", 0)
    return Unsteady


class Crawl:
    """A crawl of one process in virtual time, on a site of 31 pages."""

    def __init__(self) -> None:
        pace = Settings(strategy="fixed", delay_s=1.0, max_rate="unlimited")
        name = f"away-{next(NAMES)}"
        settings = CrawlSettings(
            politeness=pace,
            memory=f"memory:{name}",
            seeding="none",
            scope=ScopeMode.ANY,
            ignore_robots=True,
        )
        self.clock = VirtualClock()
        self.sent: list[float] = []
        self.store = MemoryCrawl.create(
            f"memory:{name}", new_manifest(settings, ["http://a.test/"], 1)
        )
        self.worker = VirtualWorker(
            self.store,
            settings,
            FixedShards([0], PageBudget(None)),
            MachineClocks(self.clock, 0.0),
            FakeFetcher(self.clock, self.answer),
        )

    def answer(self, request: Request) -> FakeReply:
        self.sent.append(self.clock.now)
        headers = {"content-type": "text/html"}
        return FakeReply(body=LINKS if request.url.endswith(".test/") else b"", headers=headers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.abandon()

    def run(self, seconds: float) -> None:
        until = self.clock.now + seconds
        while self.clock.now < until and not self.worker.coordinator.is_finished:
            self.worker.engine.turn(0.1)
            self.worker.poll(self.clock.now)


@pytest.mark.parametrize("error", [AWAY, StoreBusy("another process is writing")])
def test_a_crawl_outlives_a_memory_of_hosts_that_fails_for_long(
    memory: type[Unsteady], error: StoreError
) -> None:
    """Once others may have taken its hosts over it sends nothing, and says why."""
    with Crawl() as crawl:
        crawl.run(3.0)
        memory.error, failed_at = error, crawl.clock.now
        crawl.run(60.0)
        sent, trouble = list(crawl.sent), crawl.worker.stats().now.trouble
        is_finished = crawl.worker.coordinator.is_finished
        memory.error = None
        crawl.run(60.0)

    assert not is_finished
    assert failed_at < max(sent) < failed_at + LeaseTimes().silent_s
    assert trouble is not None
    assert str(error) in trouble
    assert len(crawl.sent) == 31


def test_hosts_that_cannot_be_claimed_wait_for_the_server(memory: type[Unsteady]) -> None:
    """The shard is kept, and the crawl is not finished; the server is not asked all the time."""
    with Crawl() as crawl:
        memory.error = AWAY
        memory.calls = 0
        crawl.run(30.0)
        owned, calls = len(crawl.worker.engine.shards), memory.calls
        sent, trouble = list(crawl.sent), crawl.worker.stats().now.trouble
        memory.error = None
        crawl.run(60.0)

    assert (owned, sent) == (1, [])
    assert trouble is not None
    assert str(AWAY) in trouble
    assert calls <= 2 * 30
    assert len(crawl.sent) == 31


def test_hosts_are_left_although_the_server_is_away(memory: type[Unsteady]) -> None:
    """The end of a crawl raises nothing: its leases end by themselves."""
    with Crawl() as crawl:
        crawl.run(3.0)
        memory.error = AWAY

        crawl.worker.close()

    assert len(list(crawl.store.read(0).pages())) > 0


def test_the_hosts_of_a_crawl_that_cannot_write_are_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others do not wait for the end of its leases."""

    class Broken(DatedStore):
        is_broken = False

        def commit(self, batch: Any) -> Any:
            if Broken.is_broken:
                raise StoreError("the file is damaged")
            return super().commit(batch)

    monkeypatch.setattr(memory_crawl, "DatedStore", Broken)
    with Crawl() as crawl:
        for _ in range(1000):
            if crawl.worker.engine.in_flight:
                break
            crawl.worker.engine.turn(0.01)
            crawl.worker.poll(crawl.clock.now)
        crawl.clock.advance(1.0)
        Broken.is_broken = True

        with pytest.raises(StoreError, match="damaged"):
            crawl.worker.close()

        memory = inprocess.MemoryHosts(crawl.worker.settings.memory or "")
        assert memory.in_use(["a.test"], Now(crawl.clock.now, 0.0)) == {}


def test_a_crawl_whose_own_store_goes_away_ends_with_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no shard any more, but it is not finished."""

    class Gone(DatedStore):
        def reminders(self) -> Any:
            raise AWAY

    with Crawl() as crawl:
        pass
    monkeypatch.setattr(memory_crawl, "DatedStore", Gone)
    with Crawl() as crawl:
        crawl.worker.engine.turn(0.1)
        is_finished = crawl.worker.coordinator.is_finished

        with pytest.raises(StoreAway):
            crawl.run(10.0)

    assert not is_finished
