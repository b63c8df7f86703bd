"""A member of a shared crawl in virtual time: what it has lost, and what it gives back."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest
from virtual.fetcher import FakeFetcher, FakeReply, VirtualClock
from virtual.fleet.members import MachineClocks, VirtualWorker
from virtual.store.memory_fleet import SharedMemoryCrawl

from mannerly.crawler.control import AddSeeds, HostPause
from mannerly.crawler.runtime.beginning import new_manifest
from mannerly.crawler.runtime.fleet_member import FleetMember
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.shard.orders import Orders
from mannerly.crawler.store.fleet import LeaseLost, StoreAway
from mannerly.crawler.web.choices import ScopeMode
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from mannerly.crawler.model import Request
    from mannerly.crawler.store.base import StoreError

LINKS = "".join(f'<a href="/{number}">{number}</a>' for number in range(30)).encode()
NAMES = count()


def slow_site(request: Request) -> FakeReply:
    """Answer the first page with links at once, and every other one late."""
    if request.url.endswith(".test/"):
        return FakeReply(body=LINKS, headers={"content-type": "text/html"})
    return FakeReply(latency_s=20.0)


class Running:
    """The only member of a crawl of one shard."""

    def __init__(self, *, max_urls: int | None = None, orders: bool = False) -> None:
        pace = Settings(strategy="fixed", delay_s=0.1, max_rate="unlimited", max_concurrency=8)
        settings = CrawlSettings(
            politeness=pace,
            memory="none",
            seeding="none",
            scope=ScopeMode.ANY,
            ignore_robots=True,
            max_urls=max_urls,
        )
        self.clock = VirtualClock()
        self.location = f"memory+shared:member-{next(NAMES)}"
        seeds = ["http://a.test/"]
        self.store = SharedMemoryCrawl.create(self.location, new_manifest(settings, seeds, 1))
        SharedMemoryCrawl.clock_of(self.location, MachineClocks(self.clock, 0.0))
        self.store.join(Path())
        if orders:
            self.store.order(HostPause("a.test"))
        self.member = FleetMember(self.store, patience_s=300.0)
        self.worker = VirtualWorker(
            self.store,
            settings,
            self.member,
            MachineClocks(self.clock, 0.0),
            FakeFetcher(self.clock, slow_site),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.abandon()

    def run(self, seconds: float) -> None:
        until = self.clock.now + seconds
        while self.clock.now < until:
            self.worker.engine.turn(0.1)
            self.worker.poll(self.clock.now)


@pytest.mark.parametrize("error", [StoreAway("no answer"), LeaseLost("another run has it")])
def test_a_shard_that_is_lost_before_it_has_caught_up_is_not_worked_on(
    monkeypatch: pytest.MonkeyPatch, error: StoreError
) -> None:
    """Orders from before its claim are missing in it: it is claimed again."""

    def apply(*_: object) -> None:
        raise error

    monkeypatch.setattr(Orders, "apply", apply)
    with Running(orders=True) as running:
        owned = len(running.worker.engine.shards)

    assert owned == 0
    assert running.store.unclaimed().released == [0]


def test_a_crawl_that_gets_seeds_at_its_end_is_not_finished_any_more() -> None:
    """Whoever asks after them goes on with the crawl."""
    with Running() as running:
        running.run(200.0)
        before = running.member.is_finished

        running.store.order(AddSeeds(("http://a.test/more",)))
        running.run(2.0)

    assert before
    assert not running.member.is_finished


def test_pages_that_a_stop_breaks_off_count_for_no_limit() -> None:
    """The next run of the crawl may fetch them."""
    with Running(max_urls=20) as running:
        running.run(3.0)
        under_way = running.worker.engine.in_flight
        running.worker.close()

    later = SharedMemoryCrawl.open(running.location)

    assert under_way > 1
    assert later.take_pages(1000) == 20 - len(list(later.read(0).pages()))
