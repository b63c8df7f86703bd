"""Requisites on their way through a shard: asked once, judged like any URL, and counted apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.crawler.shard.shard_world import ShardWorld, brisk
from virtual.store.memory import MemoryStore

from mannerly.crawler.host.inflight import flight_of
from mannerly.crawler.model import RobotsRequest
from mannerly.crawler.web.choices import ScopeMode

if TYPE_CHECKING:
    from mannerly.crawler.settings import CrawlSettings

HOME = "http://a.example/"
HTML = {"content_type": "text/html"}


def settings(**options: Any) -> CrawlSettings:
    return brisk(**{"requisites": True, "scope": ScopeMode.HOST} | options)


class Web:
    """Answers what a shard asks for from a table, until nothing is left."""

    def __init__(self, world: ShardWorld, pages: dict[str, tuple[str, str] | int]) -> None:
        self.asked: list[str] = []
        self._world = world
        self._pages = pages

    def run(self) -> list[str]:
        """Return the URLs that were asked for, without robots.txt files that do not exist."""
        world = self._world
        for _ in range(500):
            world.wait(0.1)
            for request in world.start():
                answer = self._pages.get(request.url, 404)
                if not isinstance(flight_of(request).item, RobotsRequest) or answer != 404:
                    self.asked.append(request.url)
                if isinstance(answer, int):
                    world.answer(request, answer)
                else:
                    world.answer(request, 200, answer[1].encode(), content_type=answer[0])
            world.shard.commit(world.now)
            world.shard.tick(world.now)
            if world.shard.is_idle:
                return self.asked
        raise AssertionError("the crawl does not end")


def test_pages_share_their_requisites() -> None:
    """Each is fetched once, on whatever host; no page of another host follows from it."""
    world = ShardWorld(HOME, settings=settings())
    shared = "<link rel=stylesheet href=/s.css><img src=http://cdn.example/l.png>"
    web = Web(
        world,
        {
            HOME: ("text/html", shared + "<a href=/b>b</a><a href=/c>c</a>"),
            HOME + "b": ("text/html", shared),
            HOME + "c": ("text/html", shared + "<img src=/own.png>"),
            HOME + "s.css": ("text/css", "a{b:url(f.woff2)}"),
            HOME + "f.woff2": ("font/woff2", "<a href=/no>"),
            "http://cdn.example/l.png": ("text/html", "<a href=/no><img src=/no.png>"),
        },
    )

    asked = web.run()

    assert sorted(asked) == sorted(
        [
            *(HOME, HOME + "b", HOME + "c", HOME + "s.css", HOME + "f.woff2", HOME + "own.png"),
            "http://cdn.example/l.png",
        ]
    )
    counts = world.store.counts()
    assert (counts.fetched, counts.requisites, counts.failed) == (3, 4, 0)
    assert (world.stats.fetched, world.stats.requisites, world.stats.requisites_failed) == (3, 4, 1)
    assert [record.url for _, record in world.store.pages()] == [HOME, HOME + "b", HOME + "c"]


def test_requisites_come_before_further_pages() -> None:
    """So that a crawl that is stopped has whole pages."""
    world = ShardWorld(HOME, settings=settings())
    links = "".join(f"<a href=/{number}>" for number in range(5))
    web = Web(world, {HOME: ("text/html", links + "<img src=a.png><img src=b.png>")})

    assert web.run()[1:3] == [HOME + "a.png", HOME + "b.png"]


def test_without_the_option_none_is_asked_for() -> None:
    """Nor is a page read for them: there is no plug-in."""
    world = ShardWorld(HOME, settings=settings(requisites=False))
    web = Web(world, {HOME: ("text/html", "<img src=a.png>")})

    assert web.run() == [HOME]


def test_robots_txt_decides_for_requisites() -> None:
    """The rules of the host that they are on."""
    world = ShardWorld(HOME, settings=settings())
    rules = "User-agent: *\nDisallow: /closed"
    web = Web(
        world,
        {
            HOME: ("text/html", "".join(
                f"<img src=http://{host}.example/{path}>"
                for host in "ab"
                for path in ("closed/x.png", "open/x.png")
            )),
            "http://b.example/robots.txt": ("text/plain", rules),
        },
    )  # fmt: skip

    asked = web.run()

    assert "http://b.example/closed/x.png" not in asked
    assert {"http://b.example/open/x.png", HOME + "closed/x.png"} <= set(asked)
    (skipped,) = world.store.skipped()
    assert (skipped.url, skipped.parent) == ("http://b.example/closed/x.png", HOME)
    assert skipped.reason.startswith("robots")


def test_a_url_that_is_linked_is_fetched_as_a_page() -> None:
    """It is in the archive anyway."""
    world = ShardWorld(HOME, settings=settings())
    web = Web(world, {HOME: ("text/html", "<a href=/big.png><img src=/big.png></a>")})

    assert web.run() == [HOME, HOME + "big.png"]
    assert world.store.counts().requisites == 0


def test_excluded_requisites_are_left_out() -> None:
    """The patterns of --exclude hold for them, too; the scope does not."""
    world = ShardWorld(HOME, settings=settings(exclude=("*/ads/*",)))
    web = Web(world, {HOME: ("text/html", "<img src=/ads/a.png><img src=//cdn.example/b.png>")})

    assert web.run() == [HOME, "http://cdn.example/b.png"]
    assert world.stats.skipped == {"excluded": 1}


def test_a_retry_after_holds_for_requisites() -> None:
    """A host that refuses a style is asked for nothing until its wait is over."""
    world = ShardWorld(HOME, settings=settings())
    body = b"<link rel=stylesheet href=s.css><img src=a.png><a href=/b>"
    world.pass_robots()
    world.wait(1)
    (home,) = world.start()
    world.answer(home, 200, body, **HTML)
    world.shard.commit(world.now)
    world.wait(1)
    first, *_ = world.start()
    world.answer(first, 503, retry_after="30")
    world.shard.commit(world.now)

    world.wait(29)
    inside = world.start()
    world.wait(2)
    after = world.start()

    assert first.url == HOME + "s.css"
    assert inside == []
    assert [request.url for request in after] == [HOME + "s.css"]


def test_pages_that_were_held_go_on_when_they_may() -> None:
    """Without room for pages only requisites start, also those that are found meanwhile."""
    world = ShardWorld(HOME, settings=settings())
    world.pass_robots()
    world.wait(1)
    (home,) = world.start()
    world.answer(home, 200, b"<link rel=stylesheet href=s.css><a href=/b><a href=/c>", **HTML)
    world.shard.commit(world.now)

    held: list[str] = []
    for _ in range(10):
        world.wait(1)
        for request in world.start(pages=False):
            held.append(request.url)
            world.answer(request, 200, b"a{b:url(x.png)}", content_type="text/css")
        world.shard.commit(world.now)
    is_drained = not world.shard.has_requisites(world.now)
    due = world.shard.next_due(world.now)
    (page,) = world.start()

    assert held == [HOME + "s.css", HOME + "x.png"]
    assert is_drained
    assert due is None
    assert page.url == HOME + "b"


def test_a_resumed_crawl_asks_for_what_is_left() -> None:
    """A kill after the commit of a page leaves its requisites queued, with what they carry."""
    store = MemoryStore.group(1, frontier_limit=100)[0]
    world = ShardWorld(HOME, settings=settings(), store=store)
    world.pass_robots()
    world.wait(1)
    (home,) = world.start()
    world.answer(home, 200, b"<img src=a.png><img src=b.png>", **HTML)
    world.shard.commit(world.now)
    world.wait(1)
    (killed,) = world.start()

    again = ShardWorld(HOME, settings=settings(), store=store, is_resumed=True, now=world.now)
    asked = Web(again, {}).run()

    assert killed.url == HOME + "a.png"
    assert asked == [HOME + "a.png", HOME + "b.png"]
    assert again.store.counts().requisites == 2
