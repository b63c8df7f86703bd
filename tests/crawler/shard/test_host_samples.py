"""What is told of single hosts while a run is watched, and that it is nothing otherwise."""

from __future__ import annotations

import pytest
from tests.crawler.shard.shard_world import ShardWorld, brisk

from mannerly.crawler.events import HostsSeen, HostWaits, Watched
from mannerly.crawler.host_view import NO_ROBOTS, HostStatus, HostView, LimitedBy
from mannerly.crawler.model import LocalError
from mannerly.crawler.shard.host_samples import (
    BUSIEST,
    HOSTS_A_SECOND,
    LOOK_S,
    SHORT_ONES,
    SOONEST,
)
from mannerly.politeness import Settings

CALM = brisk(politeness=Settings(strategy="fixed", delay_s=5.0, max_rate="unlimited", seed=1))


def seen(world: ShardWorld) -> dict[str, HostView]:
    """Look, and return the hosts of the last look."""
    world.shard.tick(world.now)
    return {host.host: host for host in world.told(HostsSeen)[-1].hosts}


def test_host_that_asked_to_wait_says_until_when_and_why() -> None:
    """The countdown, the status, and what the header said."""
    world = ShardWorld("https://a.example/1", "https://a.example/2", watched=Watched.HOSTS)
    world.pass_robots()
    world.wait(1.0)
    (request, *_) = world.start()
    world.answer(request, 429, retry_after="60")
    world.wait(1.0)
    world.start()

    host = seen(world)["a.example"]

    assert host.state is HostStatus.ASKED_TO_WAIT
    assert 59.0 <= (host.next_in_s or 0.0) < 62.0  # a little more, so that not all come at once
    assert (host.problem, host.times, host.retry_after_s) == ("429", 1, 60.0)
    assert host.refused == 1


def test_paused_host_has_no_instant() -> None:
    """It waits for its operator."""
    world = ShardWorld("https://a.example/1", "https://a.example/2", watched=Watched.HOSTS)
    world.pass_robots()
    world.shard.politeness.pause("a.example", now=world.now.mono)
    host = world.shard.hosts.get("a.example")
    assert host is not None
    world.shard.hosts.pause(host)
    world.wait(1.0)
    world.start()

    host = seen(world)["a.example"]

    assert (host.state, host.next_in_s) == (HostStatus.PAUSED, None)
    assert world.stats.now.waits.states[HostStatus.PAUSED] == 1
    assert world.stats.now.waits.fetching == 0


@pytest.mark.parametrize(
    ("robots", "limit"), [(b"", LimitedBy.MAX_RATE), (b"*\nCrawl-delay: 9", LimitedBy.ROBOTS)]
)
def test_pace_has_its_limit(robots: bytes, limit: LimitedBy) -> None:
    """The operator's, or that of robots.txt."""
    world = ShardWorld("https://a.example/1", "https://a.example/2", settings=CALM,
                       watched=Watched.HOSTS)  # fmt: skip
    (request,) = world.start()
    world.answer(request, 200, b"User-agent: " + robots)
    world.wait(10.0)
    world.start()

    host = seen(world)["a.example"]

    assert host.limited_by is limit
    assert host.needs_s >= host.queue_s == host.queued * host.delay_s


def test_few_hosts_are_described_whatever_their_number() -> None:
    """Those with the longest queues; a look at many hosts is rarer."""
    urls = [f"https://h{number}.example/" for number in range(3 * BUSIEST)]
    world = ShardWorld(*urls, "https://h7.example/2", watched=Watched.HOSTS)

    hosts = seen(world)
    world.wait(LOOK_S / 2)
    world.shard.tick(world.now)

    assert "h7.example" in hosts
    assert len(hosts) <= BUSIEST + 1 + SOONEST
    assert len(world.told(HostsSeen)) == 1
    assert len(urls) < HOSTS_A_SECOND


def test_wait_of_a_second_is_told_when_a_run_is_watched_closely() -> None:
    """With the URL that is next; the last page of a host has nothing after it."""
    urls = ("https://a.example/1", "https://a.example/2")
    close, other = (
        ShardWorld(*urls, settings=CALM, watched=watched)
        for watched in (Watched.CLOSELY, Watched.HOSTS)
    )
    for world in (close, other):
        world.pass_robots()
        for _ in urls:
            world.wait(5.0)
            (request,) = world.start()
            world.answer(request)

    told = [(wait.url, wait.wait_s) for wait in close.told(HostWaits)]
    assert ("https://a.example/2", pytest.approx(5.0)) in told
    assert all(url != "https://a.example/1" or wait_s <= 5.0 for url, wait_s in told)
    assert other.told(HostWaits) == []


def test_the_wait_before_a_retry_names_the_url_that_is_tried_again() -> None:
    """It comes before what is in the queue, if it is due by then."""
    urls = ("https://a.example/1", "https://a.example/2", "https://a.example/3")
    world = ShardWorld(*urls, settings=CALM, watched=Watched.CLOSELY)
    world.pass_robots()
    asked = []
    for _ in range(5):
        world.wait(5.0)
        (request,) = world.start()
        asked.append(request.url)
        if request.url == urls[0]:
            world.answer(request, error=LocalError.NO_MEMORY)  # after 2, 4, 8 s again
        else:
            break

    assert asked == [urls[0]] * 3 + [urls[1]]
    assert world.told(HostWaits)[-1].url == urls[0]


def test_one_of_many_short_waits_is_told_and_stands_for_all() -> None:
    """The first for itself, then one in sixteen: each request would pay for telling."""
    count = 2 * SHORT_ONES + 2
    urls = [f"https://a.example/{number}" for number in range(count)]
    world = ShardWorld(*urls, watched=Watched.CLOSELY)
    world.pass_robots()

    for _ in urls:
        world.wait(0.2)
        (request,) = world.start()
        world.answer(request)

    told = [wait.times for wait in world.told(HostWaits)]
    assert told == [1, SHORT_ONES, SHORT_ONES]


def test_run_that_is_not_watched_tells_nothing_of_single_hosts() -> None:
    """What nobody reads is not made."""
    world = ShardWorld("https://a.example/")
    world.pass_robots()
    world.shard.tick(world.now)

    assert world.told(HostsSeen) == world.told(HostWaits) == []


def test_host_of_which_only_a_retry_is_left_is_not_done() -> None:
    """Its only URL was refused: it is waited for, and shown with the cause."""
    world = ShardWorld("https://a.example/", watched=Watched.HOSTS)
    world.pass_robots()
    world.wait(1.0)
    (request,) = world.start()
    world.answer(request, 429, retry_after="60")
    world.shard.commit(world.now)

    host = seen(world)["a.example"]

    assert (host.state, host.queued, host.problem) == (HostStatus.ASKED_TO_WAIT, 1, "429")
    assert (host.next_in_s or 0.0) >= 60.0
    assert world.stats.now.waits.states[HostStatus.ASKED_TO_WAIT] == world.stats.now.hosts == 1


def test_host_without_its_robots_txt_does_not_wait_for_its_pace() -> None:
    """A server error leaves the rules unknown: they are asked for again, and pages wait."""
    world = ShardWorld("https://a.example/")
    (request,) = world.start()
    world.answer(request, 503)

    world.start()
    world.shard.tick(world.now)

    waits = world.stats.now.waits
    assert (waits.states[HostStatus.BACKING_OFF], waits.pace, waits.ready) == (1, 0, 0)
    assert waits.next_in_s is not None


def test_host_whose_robots_txt_cannot_be_had_waits_for_the_next_try() -> None:
    """It is not shown as one that is asked now."""
    world = ShardWorld("https://a.example/1", watched=Watched.HOSTS)
    for _ in range(3):
        for request in world.start():
            world.answer(request, 503)
        world.wait(5.0)
    world.start()

    host = seen(world)["a.example"]

    assert (host.state, host.problem) == (HostStatus.BACKING_OFF, NO_ROBOTS)
    assert 10.0 < (host.next_in_s or 0.0) <= 60.0
