"""A member that adds links to a shard faster than its owner takes them starts fewer requests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.crawler.runtime.test_parse_limit import Time
from tests.crawler.shard.shard_world import ShardWorld, brisk
from virtual.fetcher import FakeFetcher, FakeReply

from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.store.base import Committed, StoreError
from mannerly.crawler.store.exchange import OneByOne
from mannerly.crawler.web.seeds import seed_candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.crawler.store.base import Batch, ShardStore

MOST = 40


class Outrun(OneByOne):
    """Commits to a store in which the owner of another shard lags behind, or does not."""

    is_lagging = False

    def commit(
        self,
        batches: Sequence[tuple[ShardStore, Batch]],
        meanwhile: Callable[[], None] | None = None,
    ) -> list[Committed | StoreError]:
        results = super().commit(batches, meanwhile)
        return [
            replace(each, lagging=self.is_lagging) if isinstance(each, Committed) else each
            for each in results
        ]


def test_fewer_requests_are_under_way_until_the_owner_keeps_up() -> None:
    """A quarter of them at least, so that the rest of the crawl goes on."""
    time, exchange = Time(), Outrun()
    hosts = [f"https://h{number}.example/" for number in range(2 * MOST)]
    world = ShardWorld(*hosts, settings=brisk(ignore_robots=True))
    fetcher = FakeFetcher(time.clock, lambda _: FakeReply(body=b"here", latency_s=1e6))
    engine = Engine(
        fetcher, [world.shard], time, PageBudget(None), concurrency=MOST, exchange=exchange
    )

    exchange.is_lagging = True
    for number in range(20):
        world.shard.offer(seed_candidates([f"https://slow{number}.example/"]))
        engine.commit()
        time.clock.advance(1.0)
    engine.turn(0.0)
    slowed = engine.in_flight
    exchange.is_lagging = False
    for number in range(100):
        world.shard.offer(seed_candidates([f"https://quick{number}.example/"]))
        engine.commit()
        time.clock.advance(1.0)
    engine.turn(0.0)
    again = engine.in_flight
    fetcher.close()

    assert slowed == MOST // 4
    assert again == MOST
