"""The test suite that every plug-in passes. To run it on yours, subclass it in a test module:

    from mannerly.crawler.plugins.contract import PluginContract

    class TestMine(PluginContract):
        def plugin(self, store, emit):
            return Mine()

Each test crawls a site of three pages with a real shard and store, in virtual time. The requests
are answered by hand. Nothing of this module needs pytest to be imported.
"""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from mannerly.crawler.events import Events
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.host.inflight import flight_of
from mannerly.crawler.model import Fetched, Now
from mannerly.crawler.page.links import LinkRules
from mannerly.crawler.page.parsed import ParseFailed
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.shard.plugin import Plugins
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Manifest, ShardOptions
from mannerly.crawler.web.seeds import seed_candidates
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mannerly.crawler.events import Event
    from mannerly.crawler.model import Request
    from mannerly.crawler.shard.interfaces import PageReading
    from mannerly.crawler.shard.plugin import Plugin
    from mannerly.crawler.store.base import CrawlStore, ShardStore

HOME = "https://a.example/"
PAGES = {HOME, HOME + "b", HOME + "c"}
BODY = b'<title>Tea</title><a href="/">a</a><a href="/b">b</a><a href="/c">c</a>'
GAP_S = 0.5
LONG_S = 30.0  # a Retry-After
_WALL = 1_700_000_000.0


@contextmanager
def _new_crawl() -> Iterator[CrawlStore]:
    with TemporaryDirectory() as folder:
        manifest = Manifest.new(seeds=[HOME], settings={}, shards=1, created_at=_WALL)
        crawl = create_crawl(f"{folder}/crawl", manifest)
        yield crawl
        crawl.close()


class _Helper:
    """Takes work of plug-ins; the test decides about its result."""

    def __init__(self) -> None:
        self.given: list[tuple[PageReading, Callable[[], object]]] = []

    def give(self, tag: PageReading, work: Callable[[], object], size: int) -> None:
        raise AssertionError("these pages are short")

    def run(self, tag: PageReading, work: Callable[[], object], size: int, page: str) -> None:
        self.given.append((tag, work))


class _Run:
    """One run of the crawl, in the steps of a loop."""

    def __init__(self, store: ShardStore, plugins: Plugins, at_s: float = 0.0) -> None:
        pace = Settings(strategy="fixed", delay_s=GAP_S, max_rate="unlimited")
        settings = CrawlSettings(politeness=pace, seeding="none", ignore_robots=True)
        rules = LinkRules(settings.scope_of([HOME]), settings.agent_token, 10)
        self.helper = _Helper()
        self.now = Now(at_s, _WALL + at_s)
        self.asked: list[tuple[float, Request]] = []
        self.shard = Shard(
            0,
            store,
            Sharding(1),
            settings,
            rules,
            is_resumed=at_s > 0.0,
            now=self.now,
            events=Events(),
            reader=self.helper,
            plugins=plugins,
        )
        self.shard.offer(seed_candidates([HOME]))
        self.shard.commit(self.now)

    @property
    def recorded(self) -> list[str]:
        return sorted(record.url for _, record in self.shard.store.pages())

    def first(self) -> Request:
        """Return the first request of the run."""
        while not (requests := self.step()):
            pass
        return requests[0]

    def step(self) -> list[Request]:
        """Let a tenth of a second pass, and start what is due."""
        self.now = Now(self.now.mono + 0.1, self.now.wall + 0.1)
        requests = self.shard.start_due(self.now, 99)
        for request in requests:
            self.shard.sent(flight_of(request), self.now.mono)
            self.asked.append((self.now.mono, request))
        return requests

    def answer(self, request: Request, status: int = 200, **headers: str) -> None:
        named = {"content-type": "text/html"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        answer = Fetched(request, status, named, BODY, 0.01, 0.01)
        self.shard.answered(flight_of(request), answer, self.now)

    def help(self, result: object = None) -> None:
        """Do the work for helpers; with a result, take that instead."""
        given, self.helper.given = self.helper.given, []
        for tag, work in given:
            done = pickle.loads(pickle.dumps(work))() if result is None else result  # noqa: S301
            self.shard.read(tag, done, self.now)

    def finish(self, result: object = None) -> None:
        """Answer everything until nothing is left."""
        for _ in range(2000):
            for request in self.step():
                self.answer(request)
            self.help(result)
            self.shard.commit(self.now)
            if self.shard.is_idle:
                return
        raise AssertionError("the crawl does not end")


class PluginContract:
    """The promises of a crawl that every plug-in must keep, whatever it adds."""

    def plugin(self, store: ShardStore, emit: Callable[[Event], None]) -> Plugin:
        """Return a new plug-in, as at the start of a process."""
        raise NotImplementedError

    @contextmanager
    def run(self, crawl: CrawlStore, at_s: float = 0.0) -> Iterator[_Run]:
        """Begin a run, and end it without a commit."""
        store = crawl.claim(0, ShardOptions(100))
        run = _Run(store, Plugins([self.plugin(store, Events().emit)]), at_s)
        yield run
        run.shard.close()

    def test_every_page_gets_one_record(self) -> None:
        """A page may be asked for more than once; it is recorded once, and nothing is left."""
        with _new_crawl() as crawl, self.run(crawl) as run:
            run.finish()

            assert run.recorded == sorted(PAGES)
            assert run.shard.flights.pending == 0
            assert run.shard.store.counts().queued == 0

    def test_request_stays_that_of_its_entry(self) -> None:
        """Its URL and host were judged before; another one would not have been."""
        with _new_crawl() as crawl, self.run(crawl) as run:
            run.finish()

            asked = [(request, flight_of(request).item) for _, request in run.asked]
            assert {request.url for request, _ in asked} == PAGES
            assert all(request.url == item.url for request, item in asked)
            assert {request.host for request, _ in asked} == {"a.example"}

    def test_gap_of_the_host_is_kept(self) -> None:
        """A page that is asked for again takes a slot of the host like any other request."""
        with _new_crawl() as crawl, self.run(crawl) as run:
            run.finish()

            gaps = [later - before for (before, _), (later, _) in pairwise(run.asked)]
            assert min(gaps) >= GAP_S - 1e-9

    def test_pause_that_a_host_asks_for_is_kept(self) -> None:
        """Nothing is asked of it before its Retry-After is over."""
        with _new_crawl() as crawl, self.run(crawl) as run:
            run.answer(run.first(), 429, retry_after=str(int(LONG_S)))
            answered_at = run.now.mono
            run.finish()

            assert run.asked[1][0] >= answered_at + LONG_S

    def test_crash_before_the_commit_costs_no_page(self) -> None:
        """Pages under way are asked for again: the plug-in has lost what it knew of them."""
        with _new_crawl() as crawl:
            with self.run(crawl) as killed:
                killed.answer(killed.first())

            with self.run(crawl, at_s=60.0) as run:
                run.finish()

                assert run.recorded == sorted(PAGES)

    def test_helper_that_fails_costs_no_page(self) -> None:
        """Work that cannot be done, or ends its process, leaves the record and the links."""
        with _new_crawl() as crawl, self.run(crawl) as run:
            run.finish(ParseFailed("helper_died"))

            assert run.recorded == sorted(PAGES)

    def test_nothing_is_called_while_it_is_off(self) -> None:
        """A plug-in that has nothing to do costs nothing."""
        with _new_crawl() as crawl:
            store = crawl.claim(0, ShardOptions(100))
            plugin = self.plugin(store, Events().emit)
            plugin.is_on = False

            plugins = Plugins([plugin])

            assert not any(value for name, value in vars(plugins).items() if name != "_all")
            plugins.close()
            store.close()
