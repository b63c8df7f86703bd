"""robots.txt in a shard: rules are loaded, asked for, obeyed, and pages go when they are known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.crawler.shard.shard_world import EPOCH_S, ShardWorld, brisk, flight_of
from virtual.store.memory import MemoryStore

from mannerly.crawler import events as crawl_events
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import PASSING, Entry, HostRecord, LocalError, RobotsRecord, Skipped
from mannerly.crawler.store.base import Batch
from mannerly.politeness.model import ErrorKind

A = "https://a.example"
B = "https://b.example"
PRIVATE = b"User-agent: *\nDisallow: /private\n"
DAY_S = 86_400.0


def urls_of(world: ShardWorld, **options: Any) -> list[str]:
    """Start what is due; return what was asked for."""
    return [request.url for request in world.start(**options)]


def test_the_robots_of_an_origin_is_asked_for_once_and_before_its_pages() -> None:
    """Its answer is told and stored, and the pages go in the host's next slots."""
    world = ShardWorld(f"{A}/", f"{A}/private", f"{A}/2")
    (request,) = world.start()
    before = urls_of(world)
    world.wait(1.0)
    before += urls_of(world)

    world.answer(request, 200, PRIVATE)
    world.wait(1.0)
    after = urls_of(world)
    world.wait(1.0)
    after += urls_of(world)
    world.shard.commit(world.now)

    assert (request.url, before) == (f"{A}/robots.txt", [])
    assert after == [f"{A}/", f"{A}/2"]
    assert world.told(crawl_events.RobotsAnswered) == [
        crawl_events.RobotsAnswered(flight_of(request).item, 200)
    ]
    assert world.stats.skipped == {"robots": 1}
    kept = world.store.robots(A)
    assert kept is not None
    assert (kept.status, kept.body) == (200, PRIVATE)


def test_stored_rules_are_loaded_and_their_delay_is_kept() -> None:
    """No request is needed; the first page goes at once, the second after the delay."""
    store = MemoryStore(frontier_limit=99)
    body = b"User-agent: *\nCrawl-delay: 7\n"
    record = RobotsRecord(A, 200, body, EPOCH_S, EPOCH_S + DAY_S)
    store.commit(Batch(robots={A: record}))
    world = ShardWorld(f"{A}/1", f"{A}/2", store=store)

    log = []
    for second in range(9):
        for request in world.start():
            log.append((second, request.url))
            world.answer(request)
        world.wait(1.0)

    assert log == [(0, f"{A}/1"), (7, f"{A}/2")]


def test_a_delay_that_was_known_holds_while_robots_txt_cannot_be_read() -> None:
    """The copy of the file may be lost while the host's record is not; 503 takes nothing back."""
    store = MemoryStore(frontier_limit=99)
    store.commit(Batch(hosts=[HostRecord("a.example", crawl_delay_s=700.0, updated_at=EPOCH_S)]))
    world = ShardWorld(f"{A}/1", store=store, is_resumed=True)
    assert urls_of(world) == []
    world.wait(700.0)

    (request,) = world.start()
    world.answer(request, 503)

    world.wait(699.0)
    assert urls_of(world) == []
    world.wait(2.0)
    assert urls_of(world) == [f"{A}/robots.txt"]


def test_host_that_did_not_answer_an_earlier_process_is_asked_at_once() -> None:
    """A process that was stopped or killed may be the cause; in one process the wait is kept."""
    store = MemoryStore(frontier_limit=99)
    record = RobotsRecord(A, None, None, EPOCH_S - 1.0, EPOCH_S + 59.0, EPOCH_S - 1.0)
    store.commit(Batch(robots={A: record}))
    world = ShardWorld(f"{A}/", store=store)

    (request,) = world.start()
    world.answer(request, error=ErrorKind.TIMEOUT)
    world.wait(5.0)

    assert request.url == f"{A}/robots.txt"
    assert urls_of(world) == []


def test_stored_rules_that_have_expired_are_asked_for() -> None:
    """The old copy stands until the new one has come."""
    store = MemoryStore(frontier_limit=99)
    record = RobotsRecord(A, 200, PRIVATE, EPOCH_S - DAY_S, EPOCH_S)
    store.commit(Batch(robots={A: record}))
    world = ShardWorld(f"{A}/", store=store)

    assert urls_of(world) == [f"{A}/robots.txt"]


def test_rules_that_are_not_committed_yet_are_loaded_from_the_batch() -> None:
    """Memory may let go of rules before they are in the store; they are not asked for again."""
    world = ShardWorld(f"{A}/private", f"{A}/2")
    (request,) = world.start()
    world.answer(request, 200, PRIVATE)
    world.shard.origins.gate.forget(A)
    world.wait(1.0)

    assert world.store.robots(A) is None
    assert urls_of(world) == [f"{A}/2"]


def test_a_record_from_the_future_is_asked_for_after_a_day() -> None:
    """Rules that expired in memory are not loaded from the store once more."""
    store = MemoryStore(frontier_limit=99)
    store.commit(Batch(robots={A: RobotsRecord(A, 404, None, EPOCH_S, EPOCH_S * 2)}))
    world = ShardWorld(f"{A}/1", f"{A}/2", store=store)
    (request,) = world.start()
    world.answer(request)
    world.wait(DAY_S)

    assert request.url == f"{A}/1"
    assert urls_of(world) == [f"{A}/robots.txt"]


def test_without_robots_nothing_is_asked_for() -> None:
    """With --ignore-robots the first request is a page."""
    world = ShardWorld(f"{A}/", settings=brisk(ignore_robots=True))

    assert urls_of(world) == [f"{A}/"]


def test_a_redirect_takes_a_slot_of_the_other_host_and_teaches_both() -> None:
    """The request of b, which still waits for its slot, is taken back: none is made twice."""
    world = ShardWorld(f"{A}/", f"{B}/")
    world.shard.politeness.contacted("b.example", now=world.now.mono)
    (request,) = world.start()
    world.answer(request, 301, location=f"{B}/robots.txt")
    in_between = urls_of(world)
    world.wait(0.1)
    (hop,) = world.start()

    world.answer(hop, 200, PRIVATE)
    world.wait(1.0)
    pages = urls_of(world)
    world.shard.commit(world.now)

    assert (request.url, in_between, hop.url) == (f"{A}/robots.txt", [], f"{B}/robots.txt")
    assert sorted(pages) == [f"{A}/", f"{B}/"]
    assert [record.body for record in map(world.store.robots, (A, B)) if record] == [PRIVATE] * 2
    assert world.shard.origins.gate.fetching == frozenset()


@pytest.mark.parametrize("second", [LocalError.STALE_CONNECTION, 302])
def test_a_request_that_was_taken_back_in_vain_is_made_again(second: LocalError | int) -> None:
    """Where the hop leads on, or fails for the moment, b asks for its own robots.txt after all."""
    world = ShardWorld(f"{A}/", f"{B}/")
    world.shard.politeness.contacted("b.example", now=world.now.mono)
    (request,) = world.start()
    world.answer(request, 301, location=f"{B}/robots.txt")
    world.wait(0.1)
    (hop,) = world.start()
    if isinstance(second, LocalError):
        world.answer(hop, error=second)
    else:
        world.answer(hop, second, location="https://c.example/r")
    asked = []
    for _ in range(6):
        world.wait(1.0)
        for each in world.start():
            asked.append(each.url)
            world.answer(each, 404)

    assert asked.count(f"{B}/robots.txt") == 1
    assert {f"{A}/", f"{B}/"} <= {*asked}


@pytest.mark.parametrize("error", sorted(PASSING))
def test_a_robots_that_failed_on_our_side_is_asked_for_again(error: LocalError) -> None:
    """It says nothing about the origin, and its pages are not lost."""
    world = ShardWorld(f"{A}/")
    (request,) = world.start()

    world.answer(request, error=error)
    world.wait(1.0)

    assert urls_of(world) == [f"{A}/robots.txt"]


def test_pages_of_a_host_that_may_not_be_asked_are_dropped_with_the_reason() -> None:
    """The network guard refuses robots.txt, so it would refuse every page."""
    world = ShardWorld(f"{A}/")
    (request,) = world.start()

    world.answer(request, error=LocalError.BLOCKED_ADDRESS)
    urls = urls_of(world)
    world.shard.commit(world.now)

    assert urls == []
    found = world.store.find(f"{A}/")
    assert isinstance(found, Skipped)
    assert found.reason == "blocked_address"


def test_sitemaps_of_robots_are_queued_without_excluded_ones() -> None:
    """An excluded one is counted as skipped; with another --seeding none is taken."""
    body = b"Sitemap: https://a.example/s.xml\nSitemap: https://a.example/secret.xml\n"
    queued = {}
    for seeding in ("sitemap", "none"):
        settings = brisk(seeding=seeding, exclude=("*/secret*",))
        world = ShardWorld(f"{A}/", settings=settings)
        (request,) = world.start()
        world.answer(request, 200, body)
        world.shard.commit(world.now)
        entries = world.store.queued("a.example", after=(-1, -1), limit=9)
        lists = [each.url for each in entries if each.kind is Kind.SITEMAP]
        queued[seeding] = (lists, world.stats.skipped["excluded"])

    assert queued == {"sitemap": ([f"{A}/s.xml"], 1), "none": ([], 0)}


def test_shards_share_the_limit_of_robots_fetches() -> None:
    """With two shards each asks for half as many robots.txt at once."""
    hosts = [f"https://h{number}.example/" for number in range(20)]
    alone = ShardWorld(*hosts, settings=brisk(robots_limit=6))
    one_of_two = ShardWorld(*hosts, settings=brisk(robots_limit=6), shards=2)

    assert len(alone.start()) == 6
    assert len(one_of_two.start()) == 3


def test_robots_requests_have_a_timeout_of_their_own() -> None:
    """A robots.txt is waited for as long as told, a page as long as --timeout."""
    world = ShardWorld("https://a.example/", settings=brisk(timeout_s=15.0, robots_timeout_s=4.0))

    (robots,) = world.start()
    world.answer(robots, 404)
    world.wait(2.0)
    (page,) = world.start()

    assert (robots.timeout_s, page.timeout_s) == (4.0, 15.0)


def test_no_page_goes_while_the_robots_of_its_host_is_on_its_way() -> None:
    """Nor one of its other origin, whose rules are known, when a page that was sent before the
    rules expired comes back and wakes the host for --max-per-host.
    """
    store = MemoryStore(frontier_limit=99)
    known = RobotsRecord("http://a.example", 404, None, EPOCH_S, EPOCH_S + DAY_S)
    store.commit(Batch(robots={known.origin: known}))
    world = ShardWorld(
        "http://a.example/1",
        f"{A}/2",
        "http://a.example/3",
        store=store,
        settings=brisk(max_per_host=9),
    )
    (page,) = world.start()
    world.wait(1.0)
    robots = world.start()
    world.answer(page)
    world.wait(1.0)
    before = urls_of(world)
    world.answer(robots[0], 404)
    world.wait(1.0)

    assert isinstance(flight_of(page).item, Entry)
    assert [request.url for request in robots] == [f"{A}/robots.txt"]
    assert before == []
    assert urls_of(world) == [f"{A}/2"]
