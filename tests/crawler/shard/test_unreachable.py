"""Hosts that do not answer for their robots.txt: asked a few times, given up, and tried again."""

from __future__ import annotations

import pytest
from tests.crawler.shard.shard_world import ShardWorld, brisk

from mannerly.crawler import events as crawl_events
from mannerly.crawler.control import HostPause
from mannerly.crawler.inspection.reasons import error_words
from mannerly.crawler.shard.origins import TRIES
from mannerly.politeness.model import ErrorKind

PAGE = "https://a.example/"


def fail(world: ShardWorld, rounds: int, *, error: ErrorKind = ErrorKind.DNS) -> int:
    """Let every request fail for so many rounds; return how many there were."""
    failed = 0
    for _ in range(rounds):
        for request in world.start():
            world.answer(request, error=error)
            failed += 1
        world.shard.commit(world.now)
        world.shard.tick(world.now)
        world.wait(1.0)
    return failed


def test_a_host_that_never_answers_is_asked_a_few_times_and_given_up() -> None:
    """Nothing else is left, so there is nothing to wait for."""
    world = ShardWorld(PAGE)

    failed = fail(world, rounds=20)

    assert failed == TRIES
    assert [event.host for event in world.told(crawl_events.HostGivenUp)] == ["a.example"]


@pytest.mark.parametrize("error", [ErrorKind.TIMEOUT, ErrorKind.DNS])
def test_a_host_that_is_given_up_for_a_late_robots_names_the_limit_of_that(
    error: ErrorKind,
) -> None:
    """A robots.txt has a time-out of its own; other causes stay as they are."""
    world = ShardWorld(PAGE)

    fail(world, rounds=20, error=error)

    (event,) = world.told(crawl_events.HostGivenUp)
    is_late = error is ErrorKind.TIMEOUT
    assert event.reason == ("robots_timeout" if is_late else error.value)
    assert ("--robots-timeout" in error_words(event.reason)) is is_late


def test_a_host_that_was_taken_in_again_is_asked_again_before_it_is_given_up() -> None:
    """Its failures from before do not count."""
    world = ShardWorld(PAGE)
    fail(world, rounds=20)

    world.shard.given_up.revive("a.example", world.now)
    world.offer("https://a.example/new")
    failed = fail(world, rounds=20)

    assert failed == TRIES


def test_a_host_whose_pages_can_be_fetched_is_not_given_up_for_its_robots() -> None:
    """With --robots-unreachable allow, pages answer although the file does not."""
    world = ShardWorld(PAGE, settings=brisk(robots_unreachable="allow"))

    for _ in range(TRIES + 1):
        world.shard.origins.gate.forget("https://a.example")
        world.shard.origins.press(["a.example"], world.now)
        for request in world.start():
            is_robots = request.url.endswith("/robots.txt")
            world.answer(request, 200, error=ErrorKind.DNS if is_robots else None)
        world.shard.commit(world.now)
        world.offer(f"https://a.example/{world.now.mono:g}")
        world.shard.tick(world.now)
        world.wait(60.0)

    assert world.told(crawl_events.HostGivenUp) == []


def test_a_paused_host_is_left_to_the_operator() -> None:
    """It is not given up for not answering: nothing is sent to it."""
    world = ShardWorld(PAGE)
    for request in world.start():
        world.answer(request, error=ErrorKind.DNS)

    world.shard.control(1, HostPause("a.example"), world.now)
    fail(world, rounds=20)

    assert world.told(crawl_events.HostGivenUp) == []
