"""A loop that did not look at its sockets for long says so."""

from __future__ import annotations

import pytest
from tests.crawler.runtime.test_parse_limit import Time
from tests.crawler.shard.shard_world import ShardWorld, brisk
from virtual.fetcher import FakeFetcher, FakeReply

from mannerly.cli.event_log import EventLog
from mannerly.crawler.events import Events, LoopStalled
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.runtime.event_batches import EventBatch


@pytest.mark.parametrize(("busy_s", "stalls"), [(0.9, []), (3.5, [3.5])])
def test_long_turn_of_the_loop_is_told_and_counted(busy_s: float, stalls: list[float]) -> None:
    """With its duration; the time before the first turn, in which stores are opened, is none."""
    time, told, events = Time(), list[LoopStalled](), Events()
    events.listen(lambda event: told.append(event) if isinstance(event, LoopStalled) else None)
    world = ShardWorld("https://a.example/", settings=brisk(ignore_robots=True))
    fetcher = FakeFetcher(time.clock, lambda _: FakeReply(body=b"here"))
    engine = Engine(fetcher, [world.shard], time, PageBudget(None), concurrency=1, events=events)
    time.clock.advance(30.0)

    engine.turn()
    time.clock.advance(busy_s)
    engine.turn()
    fetcher.close()

    assert [event.took_s for event in told] == pytest.approx(stalls)
    assert engine.stats().loop.stalls == len(stalls)


def test_stalled_loop_is_a_line_of_the_log() -> None:
    (line,) = EventLog("text").lines(EventBatch([LoopStalled(3.52)], 0))

    assert line.endswith("Loop-stalled for_s=3.5")
