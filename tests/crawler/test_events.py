"""One stream of events, for everybody who wants to know."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from tests.crawler.shard.shard_world import ShardWorld

from mannerly.crawler import events as crawl_events
from mannerly.crawler.events import Event, Events, UrlsFound
from mannerly.politeness import events as polite

if TYPE_CHECKING:
    from collections.abc import Callable


def test_listeners_are_told_at_once_and_in_order() -> None:
    """Those of the beginning first, then those that came later, from then on."""
    heard: list[tuple[str, Event]] = []

    def listener(name: str) -> Callable[[Event], None]:
        return lambda event: heard.append((name, event))

    events = Events(listener("first"))
    events.emit(UrlsFound(1))
    events.listen(listener("second"))
    events.emit(UrlsFound(2))

    assert heard == [
        ("first", UrlsFound(1)),
        ("first", UrlsFound(2)),
        ("second", UrlsFound(2)),
    ]


def test_without_a_listener_nothing_happens() -> None:
    """Telling an event that is of no interest to anybody is allowed."""
    Events().emit(UrlsFound(1))


@pytest.mark.parametrize(
    "kind", [kind for kind in get_args(Event) if kind.__module__ == crawl_events.__name__]
)
def test_events_are_values(kind: type) -> None:
    """No listener can change what the next one hears."""
    assert issubclass(kind, tuple)
    assert kind.__doc__
    assert f"    {kind.__name__} " in (crawl_events.__doc__ or "")


def test_a_shard_tells_the_way_of_a_page() -> None:
    """robots.txt, the page, what it brought, in order; nothing is told twice."""
    world = ShardWorld("https://a.example/")
    world.pass_robots()
    world.wait(1.0)
    (request,) = world.start()
    world.answer(request, body=b'<a href="/next">', content_type="text/html")
    world.shard.commit(world.now)

    ours = [type(event).__name__ for event in world.events if isinstance(event, tuple)]
    assert ours == [
        "UrlsFound",  # the seed
        "RequestSent",
        "RobotsAnswered",
        "RequestSent",
        "PageSettled",
        "UrlsFound",
    ]
    (settled,) = world.told(crawl_events.PageSettled)
    assert (settled.entry.url, settled.record.status) == ("https://a.example/", 200)


def test_events_of_the_politeness_core_pass_through() -> None:
    """A listener of the crawl hears of refusals and pauses, unchanged."""
    world = ShardWorld("https://a.example/")
    world.pass_robots()
    world.wait(1.0)
    (request,) = world.start()

    world.answer(request, 429, retry_after="30")

    (throttled,) = world.told(polite.Throttled)
    assert (throttled.host, throttled.status, throttled.retry_after_s) == ("a.example", 429, 30.0)
    (retried,) = world.told(crawl_events.PageRetried)
    assert (retried.entry.url, retried.is_refusal) == ("https://a.example/", True)


def test_a_tick_tells_where_the_hosts_are() -> None:
    """How many wait for what, what is in flight and how much is queued."""
    world = ShardWorld("https://a.example/", "https://a.example/2", "https://b.example/")
    world.pass_robots()
    world.wait(1.0)
    world.start()

    world.shard.tick(world.now)

    (measured,) = world.told(crawl_events.ShardMeasured)
    assert (measured.shard, measured.in_flight, measured.undelivered) == (0, 2, 0)
    assert measured.queued == 1
    assert (measured.places.known, measured.places.active, measured.places.ready) == (2, 2, 0)
