"""What this machine lacks: pages without memory for them, and slots of requests that failed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.crawler.shard.shard_world import BRISK, ShardWorld, brisk, flight_of

from mannerly.cli.endings import exit_code
from mannerly.crawler.control import RetryUrls
from mannerly.crawler.crawl import CrawlResult
from mannerly.crawler.model import Fetched, LocalError, PageRecord
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.shard import reading
from mannerly.crawler.shard.follows import LACK_TRIES, LONGEST_STARVED_S

if TYPE_CHECKING:
    import pytest

PAGE, OTHER = "https://a.example/", "https://a.example/other"
SLOW = brisk(politeness=replace(BRISK, delay_s=10.0), ignore_robots=True)


def without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every page that has an answer lack memory while it is read."""
    read = reading.harvest

    def harvest(entry: object, answer: Fetched, *rest: object) -> object:
        if answer.status is not None:
            raise MemoryError
        return read(entry, answer, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(reading, "harvest", harvest)


def ask_until_settled(world: ShardWorld) -> int:
    """Answer the page as often as it is asked for; return how often that was."""
    asked = 0
    for _ in range(3 * LACK_TRIES):
        for request in world.start():
            asked += 1
            world.answer(request, 200, b"<a href=/other>")
        world.shard.commit(world.now)
        world.wait(LONGEST_STARVED_S)
    return asked


def test_a_page_that_lacks_memory_while_it_is_read_fails_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is asked for ten times, has failed then, is counted, and the exit code is 1."""
    without_memory(monkeypatch)
    world = ShardWorld(PAGE, settings=brisk(ignore_robots=True))

    asked = ask_until_settled(world)

    record = world.store.find(PAGE)
    assert asked == LACK_TRIES + 1
    assert isinstance(record, PageRecord)
    assert (record.status, record.error) == (None, "no_memory")
    assert world.stats.failed == {"no_memory": 1}
    assert exit_code(CrawlResult(Ending.FINISHED, world.stats, 1.0, 0)) == 1
    assert world.shard.is_idle


def test_the_links_of_a_page_that_is_read_again_are_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Memory that lacked after its links were found does not make them known."""
    read, lacking = reading.harvest, [True]

    def harvest(*given: object) -> object:
        found = read(*given)  # type: ignore[arg-type]
        if lacking:
            raise MemoryError(lacking.pop())
        return found

    monkeypatch.setattr(reading, "harvest", harvest)
    world = ShardWorld(PAGE, settings=brisk(ignore_robots=True))

    asked = ask_until_settled(world)

    assert asked == 3
    assert isinstance(world.store.find(OTHER), PageRecord)


def test_a_page_for_which_there_is_no_room_fails_in_the_end() -> None:
    """A body that cannot wait for --memory-limit is asked for ten times; then it has failed."""
    world = ShardWorld(PAGE, settings=brisk(ignore_robots=True))
    asked = 0
    for _ in range(3 * LACK_TRIES):
        for request in world.start():
            asked += 1
            world.answer(request, error=LocalError.NO_ROOM)
        world.shard.commit(world.now)
        world.wait(LONGEST_STARVED_S)

    record = world.store.find(PAGE)
    assert asked == LACK_TRIES + 1
    assert isinstance(record, PageRecord)
    assert (record.status, record.error) == (None, "no_room")
    assert exit_code(CrawlResult(Ending.FINISHED, world.stats, 1.0, 0)) == 1
    assert world.shard.is_idle


def test_a_page_that_lacked_memory_comes_back_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`retry` begins to count anew."""
    with monkeypatch.context() as patch:
        without_memory(patch)
        world = ShardWorld(PAGE, settings=brisk(ignore_robots=True))
        ask_until_settled(world)

    world.shard.control(1, RetryUrls(), world.now)
    for _ in range(3):
        world.shard.commit(world.now)
        world.shard.tick(world.now)
        world.wait(1.0)
    (request,) = world.start(room=1)
    world.answer(request, 200, b"here now")
    world.shard.commit(world.now)

    record = world.store.find(PAGE)
    assert isinstance(record, PageRecord)
    assert (record.status, record.error) == (200, None)


def test_a_request_that_left_and_failed_here_has_used_its_slot() -> None:
    """The server may have read it: the next one keeps the gap of 10 s."""
    world = ShardWorld(PAGE, OTHER, settings=SLOW)
    (request,) = world.start(room=1)
    world.answer(request, error=LocalError.NO_MEMORY)

    world.wait(9.0)
    too_early = world.start(room=1)
    world.wait(1.0)

    assert too_early == []
    assert len(world.start(room=1)) == 1


def test_a_request_that_never_left_has_used_no_slot() -> None:
    """Its connection could not be opened for lack of descriptors: the next one may go at once."""
    world = ShardWorld(PAGE, OTHER, settings=SLOW)
    (request,) = world.shard.start_due(world.now, 1)
    failed = Fetched(request, error=LocalError.NO_DESCRIPTORS)
    world.shard.answered(flight_of(request), failed, world.now)

    (next_one,) = world.start(room=1)

    assert next_one.url != request.url
