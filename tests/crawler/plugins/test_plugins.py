"""The plug-ins of the crawler pass the contract, and each place is called when it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.shard.shard_world import ShardWorld, brisk
from virtual.store.memory import MemoryStore

from mannerly.crawler.control import CheckUrls, Recrawl
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import (
    Drop,
    Entry,
    Fetched,
    Now,
    RawExchange,
    Rendering,
    Request,
)
from mannerly.crawler.page.extract import Extracting, NamedFunction
from mannerly.crawler.page.links import LinkRules
from mannerly.crawler.page.record import Harvest, page_record
from mannerly.crawler.plugins import plugins_for
from mannerly.crawler.plugins.archive import Archive, Facts
from mannerly.crawler.plugins.check import Check
from mannerly.crawler.plugins.contract import PluginContract
from mannerly.crawler.plugins.extract import Extract
from mannerly.crawler.plugins.links import Links
from mannerly.crawler.plugins.recheck import Recheck
from mannerly.crawler.plugins.requisites import Requisites
from mannerly.crawler.plugins.warm import Warm
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.shard.follows import Again, Settled
from mannerly.crawler.shard.plugin import HelperWork, Plugin, Plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mannerly.crawler.events import Event
    from mannerly.crawler.store.base import ShardStore

    Emit = Callable[[Event], None]

URL = "https://a.example/"


class TestRecheck(PluginContract):
    def plugin(self, store: ShardStore, emit: Emit) -> Plugin:
        settings = CrawlSettings()
        recheck = Recheck(store, settings, LinkRules(settings.scope_of([URL]), "x", 10))
        recheck.ordered(Recrawl(1), is_new=True)
        return recheck


class TestWarm(PluginContract):
    def plugin(self, store: ShardStore, emit: Emit) -> Plugin:
        return Warm(CrawlSettings(warm=True, variants=("gzip", "br")), emit)


class TestLinks(PluginContract):
    def plugin(self, store: ShardStore, emit: Emit) -> Plugin:
        return Links()


class TestRequisites(PluginContract):
    def plugin(self, store: ShardStore, emit: Emit) -> Plugin:
        return Requisites()


class TestCheck(PluginContract):
    def plugin(self, store: ShardStore, emit: Emit) -> Plugin:
        return Check()


class TestArchive(PluginContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> Iterator[None]:
        self._folder, self._opened = tmp_path, list[Archive]()
        yield
        for each in self._opened:
            each.close()

    def plugin(self, store: ShardStore, emit: Emit) -> Plugin:
        facts = Facts({}, 0.0, segment_bytes=1 << 20, durable=False)
        self._opened.append(Archive.beside(store, "shard-0", self._folder, facts))
        return self._opened[-1]


class TestExtract(PluginContract):
    """In helpers, and in this process."""

    @pytest.fixture(autouse=True, params=["helper", "here"])
    def place(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
        named = NamedFunction(lambda page: {"title": page.title})
        file = tmp_path / "titles.py"
        file.write_text("def title_of(page):\n    return {'title': page.title}\n")
        name = named.name if request.param == "here" else f"{file}:title_of"
        self._extracting = Extracting(name, 10.0)
        assert (self._extracting.here is None) == (request.param == "helper")
        yield
        self._extracting.close()

    def plugin(self, store: ShardStore, emit: Emit) -> Plugin:
        return Extract(self._extracting, store, emit)


class Everywhere(Plugin):
    """Uses every place, and notes when it is called."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self._asked: set[int] = set()

    def admits(self, entry: Any) -> Drop | None:
        self.called.append("admits")
        return Drop("not_wanted") if entry.url.endswith("/no") else None

    def ask(self, entry: Any, request: Any) -> None:
        self.called.append("ask")
        request.headers += (("X-Label", "tea"),)

    def after_answer(self, item: Any, answer: Any, follows: Any, now: Any) -> Any:
        self.called.append("after_answer")
        if isinstance(follows, Settled) and item.seq not in self._asked:
            self._asked.add(item.seq)
            return Again(item, now.mono + 1.0, is_visit=True)
        return follows

    def after_reading(self, entry: Any, answer: Any, found: Any) -> Any:
        self.called.append("after_reading")
        return HelperWork(int, lambda found, result: found._replace(list_size=7))

    def settle(self, entry: Any, found: Any, exchange: Any, pending: Any) -> None:
        self.called.append(f"settle {found.list_size}")

    def flush(self, batch: Any) -> None:
        self.called.append("flush")

    def committed(self) -> None:
        self.called.append("committed")


class TestEverywhere(PluginContract):
    def plugin(self, store: ShardStore, emit: Emit) -> Plugin:
        return Everywhere()


def world_with(plugin: Plugin, *urls: str, **options: Any) -> ShardWorld:
    return ShardWorld(*urls, settings=brisk(ignore_robots=True, **options), plugins=[plugin])


def test_places_are_called_in_the_order_of_the_way_of_a_url() -> None:
    """A second visit passes the places before the request again, and those behind it once."""
    plugin = Everywhere()
    world = world_with(plugin, URL)
    plugin.called.clear()

    (first,) = world.start()
    world.answer(first)
    world.wait(1.0)
    (second,) = world.start()
    world.answer(second)
    world.shard.commit(world.now)

    visit = ["admits", "ask", "after_answer"]
    assert plugin.called == [*visit, *visit, "after_reading", "settle 7", "flush", "committed"]
    assert ("X-Label", "tea") in first.headers


def test_page_that_is_not_admitted_is_skipped_with_the_reason() -> None:
    """No request is made for it."""
    world = world_with(Everywhere(), f"{URL}no")

    requests = world.start()
    world.shard.commit(world.now)

    assert requests == []
    assert [(each.url, each.reason) for each in world.store.skipped()] == [
        (f"{URL}no", "not_wanted")
    ]


def test_page_that_was_counted_is_no_further_page_of_its_host() -> None:
    """It passes --max-per-host, and is not added to the pages of the host."""

    class Known(Plugin):
        def was_counted(self, entry: Any) -> bool:
            return bool(entry.url.endswith("/again"))

    world = world_with(Known(), URL, f"{URL}again", f"{URL}more", max_per_host=1)

    for _ in range(8):
        for request in world.start():
            world.answer(request)
        world.shard.commit(world.now)
        world.wait(0.5)

    assert sorted(record.url for _, record in world.store.pages()) == [URL, f"{URL}again"]
    host = world.shard.hosts.get("a.example")
    assert host is not None
    assert host.fetched == 1


def test_order_switches_a_plug_in_on() -> None:
    """Before that none of its methods is called."""
    rules = LinkRules(CrawlSettings().scope_of([URL]), "x", 10)
    store = MemoryStore(frontier_limit=9)
    plugins = plugins_for(CrawlSettings(), rules, store, lambda event: None)
    before = (plugins.admit, plugins.ask, plugins.after_reading, plugins.settle)

    plugins.ordered(CheckUrls(()), is_new=True)
    plugins.ordered(Recrawl(1), is_new=True)

    assert before == ((), (), (), ())
    assert [len(plugins.admit), len(plugins.ask), len(plugins.after_reading)] == [1, 1, 1]


def test_work_of_one_plug_in_comes_before_the_next_one() -> None:
    """The later one sees what the earlier one has made of the page, wherever that was done."""
    seen: list[int] = []

    class Later(Plugin):
        def after_reading(self, entry: Any, answer: Any, found: Any) -> Any:
            seen.append(found.list_size)
            return found

    class Earlier(Plugin):
        def after_reading(self, entry: Any, answer: Any, found: Any) -> Any:
            return HelperWork(int, lambda found, result: found._replace(list_size=7))

    settings = brisk(ignore_robots=True)
    world = ShardWorld(URL, settings=settings, plugins=[Earlier(), Later()])

    (request,) = world.start()
    world.answer(request)

    assert seen == [7]


def test_plug_ins_may_be_none() -> None:
    """Every place is an empty tuple then."""
    assert not any(vars(Plugins()).values())


def test_what_a_browser_asked_for_is_kept_once_it_is_settled(tmp_path: Path) -> None:
    """It has no record: its answer is kept as that of a robots.txt is; a refusal is not."""
    store = MemoryStore.group(1, frontier_limit=9)[0]
    archive = Archive.beside(store, "shard-0", tmp_path, Facts({}, 0.0, 1 << 20, durable=False))
    entry = Entry(-1, URL + "a.js", "a.example", 1, 0, URL, 0, Kind.REQUISITE)
    request = Request(entry.url, "a.example", 1.0)
    exchange = RawExchange(b"GET /a.js HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"x")
    answer = Fetched(request, 200, {}, b"x", exchange=exchange)

    archive.after_answer(entry, answer, Again(entry, 9.0), Now(1.0, 1.0))
    before = archive.held_bytes()
    archive.after_answer(entry, answer, Settled(), Now(1.0, 1.0))

    assert archive.held_bytes() > before
    archive.close()


def test_what_a_browser_has_asked_for_is_not_asked_for_again() -> None:
    """The page in its answer names more, which is."""
    entry = Entry(1, URL, "a.example", 0, 0, None, 0)
    shown = Rendering(b"", requests=(URL + "a.png",))
    body = b"<img src=a.png><img src=b.png>"
    answer = Fetched(
        Request(URL, "a.example", 1.0), 200, {"content-type": "text/html"}, body, rendering=shown
    )

    found = Requisites().after_reading(
        entry, answer, Harvest(page_record(entry, answer, 1.0), [], {})
    )

    assert isinstance(found, Harvest)
    assert [each.url for each in found.requests] == [URL + "b.png"]


def test_what_a_style_of_a_browser_needs_is_asked_for_with_its_page() -> None:
    """The style itself was fetched: it is not asked for again, by no later page either."""
    plugin, style = Requisites(), URL + "s.css"
    entry = Entry(-1, style, "a.example", 1, 0, URL, 0, Kind.REQUISITE)
    css = Fetched(
        Request(style, "a.example", 1.0), 200, {"content-type": "text/css"}, b"a{b:url(f.woff2)}"
    )
    plugin.after_answer(entry, css, Settled(), Now(1.0, 1.0))
    found = []
    for number, asked in enumerate([(style,), ()], 1):
        page = Entry(number, URL, "a.example", 0, 0, None, 0)
        body = b"<link rel=stylesheet href=s.css>"
        answer = Fetched(
            Request(URL, "a.example", 1.0),
            200,
            {"content-type": "text/html"},
            body,
            rendering=Rendering(b"", requests=asked),
        )
        bare = Harvest(page_record(page, answer, 1.0), [], {})
        harvest = plugin.after_reading(page, answer, bare)
        assert isinstance(harvest, Harvest)
        found.append([each.url for each in harvest.requests])

    assert found == [[URL + "f.woff2"], []]


@pytest.mark.parametrize(("method", "status"), [("GET", None), ("POST", 200)])
def test_what_a_browser_was_not_given_is_asked_for(method: str, status: int | None) -> None:
    """Its request has failed; a POST is another request than that of the page."""
    plugin, image = Requisites(), URL + "a.png"
    entry = Entry(-1, image, "a.example", 1, 0, URL, 0, Kind.REQUISITE)
    request = Request(image, "a.example", 1.0, method=method)
    plugin.after_answer(entry, Fetched(request, status), Settled(), Now(1.0, 1.0))
    page = Entry(1, URL, "a.example", 0, 0, None, 0)
    answer = Fetched(
        Request(URL, "a.example", 1.0),
        200,
        {"content-type": "text/html"},
        b"<img src=a.png>",
        rendering=Rendering(b"", requests=(image,) if method == "GET" else ()),
    )

    found = plugin.after_reading(page, answer, Harvest(page_record(page, answer, 1.0), [], {}))

    assert isinstance(found, Harvest)
    assert [each.url for each in found.requests] == [image]
