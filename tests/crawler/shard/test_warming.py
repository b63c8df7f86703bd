"""Warming in a shard: looks at a page, its variants, and what is counted of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.crawler.shard.shard_world import BRISK, ShardWorld, brisk

from mannerly.crawler import events as crawl_events
from mannerly.crawler.plugins.warm import SECOND_VISIT_S
from mannerly.crawler.web.caches import CacheState
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from mannerly.crawler.model import Request

URL = "https://a.example/blog/1"


def world(*variants: str, url: str = URL) -> ShardWorld:
    made = ShardWorld(url, settings=brisk(warm=True, variants=variants))
    made.pass_robots()
    made.wait(1.0)
    return made


def look(made: ShardWorld) -> Request:
    """The one request that is due within some seconds."""
    for _ in range(40):
        made.wait(0.1)
        if requests := made.start():
            (request,) = requests
            return request
    raise AssertionError("nothing is asked for")


def looks(made: ShardWorld) -> list[tuple[str, int, CacheState | None]]:
    return [(each.variant, each.number, each.state) for each in made.told(crawl_events.PageVisited)]


def test_page_that_the_cache_has_is_asked_for_once() -> None:
    """It is warm already."""
    made = world()

    made.answer(look(made), 200, age="9", x_cache="HIT")

    assert looks(made) == [("plain", 1, CacheState.HIT)]
    assert made.shard.frontier.queued == 0
    assert len(made.told(crawl_events.PageSettled)) == 1


def test_page_that_the_cache_did_not_have_is_looked_at_again() -> None:
    """A second later, and its record is that of the second answer; nothing counts as a retry."""
    made = world()

    is_again = made.answer(look(made), 200, x_cache="MISS")
    began = made.now.mono
    made.answer(look(made), 200, x_cache="HIT", age="1")

    (settled,) = made.told(crawl_events.PageSettled)
    assert is_again  # it does not count for --max-urls yet
    assert made.now.mono - began >= SECOND_VISIT_S
    assert looks(made) == [("plain", 1, CacheState.MISS), ("plain", 2, CacheState.HIT)]
    assert (settled.record.cache_status, settled.record.age) == ("HIT", 1)
    assert settled.record.attempts == 1
    assert made.told(crawl_events.PageRetried) == []
    warmth = made.stats.warmth["a.example/blog/"]
    assert (warmth.pages, warmth.hits_before, warmth.hits_after, warmth.cacheable) == (1, 0, 1, 1)
    assert made.stats.other_statuses[200] == 1  # the look that is no page of its own
    assert made.stats.fetched == 1


def test_page_that_stays_out_of_the_cache_is_not_asked_for_without_end() -> None:
    """Two looks, and it counts as cold."""
    made = world()

    for _ in range(2):
        made.answer(look(made), 200, x_cache="MISS")

    warmth = made.stats.warmth["a.example/blog/"]
    assert (warmth.cacheable, warmth.hits_after) == (1, 0)
    assert len(made.told(crawl_events.PageSettled)) == 1


def test_page_that_cannot_be_cached_and_one_without_a_cache_get_one_look() -> None:
    """A second one would show nothing."""
    private, silent = world(), world()

    private.answer(look(private), 200, x_cache="MISS", cache_control="private")
    silent.answer(look(silent), 200)

    assert private.stats.warmth["a.example/blog/"].uncacheable == 1
    assert silent.stats.warmth["a.example/blog/"].unknown == 1
    assert (
        len(private.told(crawl_events.PageSettled))
        == len(silent.told(crawl_events.PageSettled))
        == 1
    )


def test_each_variant_is_a_request_of_its_own_and_the_plain_one_is_last() -> None:
    """Each with its header; a page is settled once."""
    made = world("br", "Accept-Language: de")
    sent = []

    for _ in range(3):
        request = look(made)
        sent.append(dict(request.headers))
        made.answer(request, 200, x_cache="HIT")

    assert sent == [{"Accept-Encoding": "br"}, {"Accept-Language": "de"}, {}]
    assert {name: each.hits_before for name, each in made.stats.variants.items()} == {
        "br": 1,
        "Accept-Language: de": 1,
        "plain": 1,
    }
    assert len(made.told(crawl_events.PageSettled)) == 1


def test_page_that_fails_is_tried_again_as_in_a_crawl_and_has_no_other_variants() -> None:
    """The tries are the politeness core's; the failure is counted once."""
    made = world("br")

    for _ in range(BRISK.max_attempts):
        request = look(made)
        assert dict(request.headers) == {"Accept-Encoding": "br"}
        made.wait(30.0)
        made.answer(request, error=ErrorKind.TIMEOUT)
        made.wait(60.0)

    assert looks(made) == [("br", 1, None)]
    assert made.stats.warmth["a.example/blog/"].failed == 1
    (settled,) = made.told(crawl_events.PageSettled)
    assert settled.record.error == "timeout"


def test_answers_of_the_cache_say_nothing_about_the_load_of_the_site() -> None:
    """Their latency is left out, or a stretch of cold pages would look like a queue."""
    latencies = []
    for words in ("HIT", "bypass"):
        made = world()
        made.offer(*(f"https://a.example/blog/{number}" for number in range(2, 9)))
        for _ in range(8):
            made.answer(look(made), 200, x_cache=words)
        latencies.append(made.shard.politeness.snapshot(top=1).top[0].p95_latency_s)

    assert latencies == [0.0, pytest.approx(0.05, rel=0.05)]
