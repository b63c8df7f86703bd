"""Given-up hosts: their URLs leave the queue with the reason, and nothing else is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.crawler.shard.shard_world import BRISK, ShardWorld, brisk, flight_of

from mannerly.crawler import events as crawl_events
from mannerly.crawler.control import HostPause, RetryUrls
from mannerly.crawler.model import Fetched, LocalError, PageRecord, RobotsRequest, Skipped
from mannerly.crawler.shard import given_up
from mannerly.crawler.shard.origins import TRIES, learn
from mannerly.politeness.model import ErrorKind

URLS = [f"https://a.example/{number}" for number in range(6)]
STUBBORN = replace(BRISK, max_attempts=1, breaker_consecutive=100, breaker_min_samples=100)
FAILING = brisk(politeness=STUBBORN, host_failure_limit=2)


def fail(world: ShardWorld, times: int) -> None:
    """Answer so many pages with 500."""
    for _ in range(times):
        world.wait(1.0)
        (request,) = world.start(room=1)
        world.answer(request, 500)


def end(world: ShardWorld, ticks: int = 3) -> None:
    for _ in range(ticks):
        world.wait(1.0)
        world.shard.tick(world.now)
        world.shard.commit(world.now)


def test_a_host_that_only_fails_is_given_up_and_its_queue_dropped() -> None:
    """It is told once, what was fetched is kept, and the rest is skipped with the reason."""
    world = ShardWorld(*URLS, settings=FAILING)
    world.pass_robots()

    fail(world, 2)
    started = world.start()
    end(world)

    reason = "2 failures in a row"
    assert started == []
    assert world.told(crawl_events.HostGivenUp) == [crawl_events.HostGivenUp("a.example", reason)]
    assert [skip.reason for skip in world.store.given_up()] == [f"host_retired: {reason}"] * 4
    assert world.stats.skipped == {"host_retired": 4}
    assert world.store.counts().failed == 2
    assert world.shard.is_idle
    assert not world.shard.given_up


def test_a_page_in_flight_is_settled_when_its_host_is_given_up() -> None:
    """It is neither dropped meanwhile nor asked for again, and the crawl waits for it."""
    pace = replace(STUBBORN, delay_s=0.01, max_concurrency=4)
    world = ShardWorld(
        *URLS, settings=brisk(politeness=pace, host_failure_limit=1, ignore_robots=True)
    )
    (first,) = world.start(room=1)
    world.wait(1.0)
    (second,) = world.start(room=1)

    world.answer(first, 500)
    end(world, ticks=2)
    is_idle_before = world.shard.is_idle
    is_again = world.answer(second, 503)
    end(world)

    assert not is_idle_before
    assert not is_again
    found = {type(world.store.find(url)) for url in URLS[2:]}
    assert found == {Skipped}
    assert isinstance(world.store.find(flight_of(second).item.url), PageRecord)
    assert world.shard.is_idle
    world.shard.frontier.check()


def test_a_retry_that_waits_is_dropped_with_its_host() -> None:
    """What was put back is still queued in the store, so it is skipped like the others."""
    world = ShardWorld(*URLS[:2], settings=brisk(ignore_robots=True))
    (request,) = world.start(room=1)
    is_again = world.answer(request, error=LocalError.STALE_CONNECTION)

    world.shard.politeness.retire("a.example", "by the operator", now=world.now.mono)
    end(world)

    assert is_again
    assert Counter(skip.reason for skip in world.store.given_up()) == {
        "host_retired: by the operator": 2
    }
    assert world.shard.is_idle


def test_a_long_queue_is_dropped_a_slice_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tick takes long, no URL is dropped twice, and the shard is idle only after the last."""
    monkeypatch.setattr(given_up, "DROP_SLICE", 2)
    world = ShardWorld(*URLS, settings=brisk(ignore_robots=True))
    world.start(room=0)
    world.shard.judge(world.store.queued("a.example", after=(-1, -1), limit=1)[0], 0.0)
    world.shard.given_up.recall("a.example", world.now)
    world.shard.politeness.retire("a.example", "it is large", now=0.0)

    skipped = []
    for _ in range(5):
        end(world, ticks=1)
        skipped.append(len(list(world.store.given_up())))

    assert skipped == [2, 4, 6, 6, 6]
    assert world.stats.skipped == {"host_retired": 6}
    assert world.shard.is_idle


def test_many_hosts_are_dropped_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tick takes long, however many hosts are given up at once; none is forgotten."""
    monkeypatch.setattr(given_up, "DROP_HOSTS", 2)
    hosts = [f"{name}.example" for name in "abcde"]
    world = ShardWorld(
        *(f"https://{host}/{page}" for host in hosts for page in range(2)),
        settings=brisk(ignore_robots=True),
    )
    for host in hosts:
        world.shard.given_up.recall(host, world.now)
        world.shard.politeness.retire(host, "all at once", now=0.0)

    skipped = []
    for _ in range(6):
        end(world, ticks=1)
        skipped.append(len(list(world.store.given_up())))

    assert skipped == [4, 8, 10, 10, 10, 10]
    assert world.shard.is_idle
    assert not world.shard.given_up


def test_a_host_given_up_in_an_earlier_run_is_recalled_as_such() -> None:
    """Its URLs are dropped at its first turn, without a request; it is not told again."""
    before = ShardWorld(*URLS[:2], settings=FAILING)
    before.pass_robots()
    fail(before, 2)
    end(before)

    world = ShardWorld(*URLS[2:], settings=FAILING, store=before.store, is_resumed=True)
    started = world.start()
    end(world)

    assert started == []
    assert [skip.reason for skip in world.store.given_up()] == [
        "host_retired: 2 failures in a row"
    ] * 4
    assert world.told(crawl_events.HostGivenUp) == []
    assert world.shard.is_idle


def test_a_host_that_does_nothing_but_throttle_is_given_up_after_a_while() -> None:
    """Its URLs leave the queue with the reason, the refused one included; no page is recorded."""
    pace = replace(BRISK, give_up_after_s=100.0)
    world = ShardWorld(*URLS[:2], settings=brisk(politeness=pace, ignore_robots=True))

    requests = 0
    while world.store.counts().queued and world.now.mono < 1000.0:
        world.wait(20.0)
        for request in world.start():
            requests += 1
            world.answer(request, 429)
        end(world, ticks=1)
    end(world)

    reason = "no success for 105 s, latest: 429"
    assert [skip.reason for skip in world.store.given_up()] == [f"host_retired: {reason}"] * 2
    assert world.told(crawl_events.HostGivenUp) == [crawl_events.HostGivenUp("a.example", reason)]
    assert requests == 6
    assert world.store.counts().fetched == 0
    assert world.shard.is_idle
    world.shard.frontier.check()


def test_a_host_is_waited_for_while_there_is_something_else_to_do() -> None:
    """It asks for an hour more than it is given: only when it is the last one, it is given up."""
    world = ShardWorld(URLS[0], "https://b.example/", settings=brisk(ignore_robots=True))
    requests = {flight_of(request).item.host: request for request in world.start()}

    world.answer(requests["a.example"], 503, retry_after="7200")
    world.wait(2.0)
    before = world.shard.has_only_unreachable(world.now)
    world.answer(requests["b.example"], 200)
    world.shard.commit(world.now)
    after = world.shard.has_only_unreachable(world.now)
    world.shard.give_up_unreachable(world.now)
    end(world)

    assert (before, after) == (False, True)
    (skip,) = world.store.given_up()
    assert skip.url == URLS[0]
    assert skip.reason.startswith("host_retired: no request allowed for 719")
    assert skip.reason.endswith(" s (latest: 503)")
    assert world.shard.is_idle


def test_a_host_that_comes_back_in_time_is_waited_for() -> None:
    """Nothing else is left, and the pause is shorter than `give_up_after_s`: the crawl waits."""
    world = ShardWorld(URLS[0], settings=brisk(ignore_robots=True))
    (request,) = world.start()
    world.answer(request, 503, retry_after="1800")
    world.shard.commit(world.now)

    has_only_unreachable = world.shard.has_only_unreachable(world.now)
    world.shard.give_up_unreachable(world.now)
    world.wait(2000.0)

    assert not has_only_unreachable
    assert len(world.start()) == 1


def test_a_paused_host_is_left_to_the_operator() -> None:
    """A host that waits for `host resume` is not given up."""
    world = ShardWorld(URLS[0], settings=brisk(ignore_robots=True))
    world.shard.politeness.pause("a.example", now=0.0)
    world.start()
    world.wait(10.0)

    assert not world.shard.has_only_unreachable(world.now)


def test_a_crawl_delay_beyond_all_patience_gives_the_host_up() -> None:
    """Two requests would be years apart: the crawl says so instead of waiting."""
    world = ShardWorld(URLS[0])
    (request,) = world.start()
    world.answer(request, 200, b"User-agent: *\nCrawl-delay: 1000000000")
    world.start()
    world.shard.commit(world.now)

    world.shard.give_up_unreachable(world.now)
    end(world)

    (skip,) = world.store.given_up()
    assert skip.reason == "host_retired: no request allowed for 1000000000 s"


def test_a_redirected_robots_in_the_queue_of_a_given_up_host_is_answered() -> None:
    """The robots.txt of b lies on a, which is given up: b's pages must not wait for it."""
    world = ShardWorld(*URLS[:3], "https://b.example/", settings=FAILING)
    for request in world.start():
        is_b = flight_of(request).item.host == "b.example"
        world.answer(request, *((301,) if is_b else (404,)), location="https://a.example/r")
    waiting = [
        item
        for item in [flight_of(request).item for request in world.start()]
        if isinstance(item, RobotsRequest)
    ]
    world.shard.politeness.retire("a.example", "by the operator", now=world.now.mono)

    end(world, ticks=1)
    world.wait(1.0)
    world.start()
    end(world)

    assert waiting == []
    found = world.store.find("https://b.example/")
    assert isinstance(found, Skipped)
    assert found.reason == "robots_unreachable"
    assert world.shard.is_idle


def test_a_robots_that_redirects_to_a_given_up_host_leads_nowhere() -> None:
    """The hop is not even queued; the pages are dropped with the reason."""
    world = ShardWorld(URLS[0], "https://b.example/", settings=FAILING)
    requests = {flight_of(request).item.host: request for request in world.start()}
    world.answer(requests["a.example"], error=ErrorKind.CONNECT)
    world.shard.politeness.retire("a.example", "by the operator", now=world.now.mono)
    end(world, ticks=2)

    world.answer(requests["b.example"], 302, location="https://a.example/robots.txt")
    started = world.start()
    end(world)

    assert started == []
    found = world.store.find("https://b.example/")
    assert isinstance(found, Skipped)
    assert found.reason == "robots_unreachable"


def test_a_second_retry_revives_a_host_again() -> None:
    """A host that failed after its first retry is asked again after the second."""
    world = ShardWorld(*URLS, settings=FAILING)
    world.pass_robots()
    fail(world, 2)
    end(world)

    for number in (1, 2):
        world.shard.control(number, RetryUrls(), world.now)
        end(world)
        fail(world, 2)
        end(world)

    assert (world.store.counts().failed, world.store.counts().given_up) == (2, 4)
    assert world.stats.hosts_given_up == 3


@pytest.mark.parametrize("is_paused", [False, True])
@pytest.mark.parametrize("way", ["failures", "silence", "crawl-delay", "retry-after"])
def test_whatever_gives_a_host_up_leaves_a_paused_one_alone(way: str, *, is_paused: bool) -> None:
    """Four ways lead to a given-up host; an order to pause it comes first in each."""
    pace = replace(STUBBORN, long_crawl_delay="skip_host")
    settings = brisk(politeness=pace, host_failure_limit=1, ignore_robots=way == "failures")
    world = ShardWorld(*URLS[:2], settings=settings)
    (request,) = world.start(room=1)
    if is_paused:
        world.shard.control(1, HostPause("a.example"), world.now)

    if way == "failures":
        world.answer(request, 500)
    elif way == "silence":
        for _ in range(TRIES):
            unanswered = Fetched(request, error=ErrorKind.CONNECT)
            learn(flight_of(request).item, unanswered, world.shard.hosts)
        world.answer(request, error=ErrorKind.CONNECT)
    elif way == "crawl-delay":
        world.answer(request, 200, b"User-agent: *\nCrawl-delay: 1000000\n")
    else:
        world.answer(request, 503, retry_after="9" * 400)
    end(world)

    assert world.stats.hosts_given_up == (0 if is_paused else 1)
    assert world.store.counts().given_up == (0 if is_paused else 1 if way == "failures" else 2)


def test_a_revived_host_keeps_what_is_left_of_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was dropped stays dropped; the rest is fetched."""
    monkeypatch.setattr(given_up, "DROP_SLICE", 2)
    world = ShardWorld(*URLS, settings=brisk(ignore_robots=True))
    world.shard.given_up.recall("a.example", world.now)
    world.shard.politeness.retire("a.example", "by mistake", now=0.0)
    end(world, ticks=1)

    world.shard.politeness.revive("a.example", now=world.now.mono)
    world.shard.given_up.revive("a.example", world.now)
    world.shard.tick(world.now)
    world.wait(1.0)
    (request,) = world.start(room=1)

    assert not world.shard.given_up
    assert len(list(world.store.given_up())) == 2
    assert flight_of(request).item.url == URLS[2]
