"""The limit of pages that wait for a parse helper: it holds requests back, not processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crawler.shard.shard_world import EPOCH_S, ShardWorld, brisk
from virtual.fetcher import FakeFetcher, FakeReply, VirtualClock

from mannerly.crawler.page.long_work import BIG_BYTES
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.runtime.offload import Offload
from mannerly.crawler.shard.interfaces import PageReading

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 3
URLS = [f"https://a.example/{number}" for number in range(12)]
BIG = FakeReply(body=b"<p>" * (BIG_BYTES // 3 + 1), headers={"content-type": "text/html"})


class Held(Offload[PageReading]):
    """Helpers that do nothing until they are let go."""

    def __init__(self) -> None:
        super().__init__(1)
        self.line: list[tuple[PageReading, Callable[[], object]]] = []
        self.is_held = True

    @property
    def pending(self) -> int:
        return len(self.line)

    def give(self, tag: PageReading, work: Callable[[], object], size: int = 0) -> None:
        self.line.append((tag, work))

    def collect(self) -> list[tuple[PageReading, object]]:
        if self.is_held:
            return []
        done, self.line = self.line, []
        return [(tag, work()) for tag, work in done]


class Time:
    """The clock of an engine."""

    def __init__(self) -> None:
        self.clock = VirtualClock()

    def now(self) -> float:
        return self.clock.now

    def wall(self) -> float:
        return EPOCH_S + self.clock.now


def test_no_request_starts_while_too_many_pages_wait_to_be_parsed() -> None:
    """At the limit only what is under way still comes in; when the helpers go on, so does all."""
    helpers, time = Held(), Time()
    world = ShardWorld(*URLS, settings=brisk(ignore_robots=True), reader=helpers)
    fetcher = FakeFetcher(time.clock, lambda _request: BIG)
    engine = Engine(
        fetcher,
        [world.shard],
        time,
        PageBudget(None),
        concurrency=64,
        offload=helpers,
        parse_limit=LIMIT,
    )

    for _ in range(50):
        engine.turn()
    waiting = helpers.pending
    helpers.is_held = False
    for _ in range(200):
        engine.turn()
    fetcher.close()
    helpers.close()

    assert LIMIT <= waiting <= LIMIT + 1  # one was under way
    assert engine.is_idle
    assert world.stats.fetched == len(URLS)
