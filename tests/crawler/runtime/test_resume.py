"""What a crawl keeps between two of its lives, and what it survives in one of them.

Most of it in virtual time: the real engine, shard and frontier on a fake web, with a store that
outlives them. A life begins as a resumed process does, and ends without a word of goodbye.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import nan
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import modest, page_requests, real_pages
from virtual.fetcher import FakeFetcher, VirtualClock
from virtual.fetcher import FakeReply as Reply
from virtual.store.memory import MemoryStore

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.events import Events
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Now, PageRecord, Skipped
from mannerly.crawler.page import long_work
from mannerly.crawler.runtime.beginning import rules_of
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.runtime.machine import FULL_PATIENCE_S
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store.base import Manifest, StoreFull
from mannerly.crawler.web.choices import ScopeMode
from mannerly.crawler.web.seeds import moved_seeds, seed_candidates
from mannerly.demo import DemoWeb, by_host, plain_sites, robots_fetches
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mannerly.crawler.model import Fetched, Request
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import Batch, Committed

HOST = "http://a.example"
EPOCH_S = 1_700_000_000.0
NO_ROBOTS = Reply(status=404, latency_s=0.01)


def page(*hrefs: str) -> Reply:
    links = "".join(f'<a href="{href}">x</a>' for href in hrefs)
    return Reply(body=links.encode(), headers={"content-type": "text/html"}, latency_s=0.01)


def chain(length: int) -> dict[str, Reply]:
    """/, /1, /2, …: each page is found on the one before, so none can be missed unseen."""
    names = ["/", *(f"/{number}" for number in range(1, length))]
    pages = {HOST + name: page(after) for name, after in pairwise(names)}
    return pages | {HOST + names[-1]: page()}


class Disk(MemoryStore):
    """A store that survives its crawler; while `is_full` it takes nothing."""

    is_full = False

    def commit(self, batch: Batch) -> Committed:
        if self.is_full:
            raise StoreFull("no room to write the shard: free some disk space")
        return super().commit(batch)


class Fetcher(FakeFetcher):
    """Answers from a table, or, where it is told to, what no server can have said."""

    def __init__(
        self,
        clock: VirtualClock,
        pages: Mapping[str, Reply],
        absurd: Mapping[str, dict[str, object]],
    ) -> None:
        super().__init__(clock, self._reply)
        self._pages = pages
        self._absurd = absurd
        self.asked: list[tuple[float, str]] = []

    def _reply(self, request: Request) -> Reply:
        self.asked.append((self.clock.now, request.url))
        return self._pages.get(request.url, NO_ROBOTS)

    def wait(self, timeout_s: float) -> list[Fetched]:
        answers = super().wait(timeout_s)
        absurd = self._absurd
        return [replace(answer, **absurd.get(answer.request.url, {})) for answer in answers]


class Life:
    """One process of a crawl of a single shard, in virtual time."""

    def __init__(
        self,
        pages: Mapping[str, Reply],
        disk: Disk,
        *,
        settings: CrawlSettings | None = None,
        seeds: tuple[str, ...] = (HOST + "/",),
        begins_at: float = 0.0,
        wall_step_s: float = 0.0,
        absurd: Mapping[str, dict[str, object]] | None = None,
    ) -> None:
        self.settings = settings or modest()
        self.disk = disk
        self.clock = VirtualClock(begins_at)
        self._wall_step_s = wall_step_s
        self.fetcher = Fetcher(self.clock, pages, absurd or {})
        manifest = Manifest.new(seeds=list(seeds), settings={}, shards=1, created_at=EPOCH_S)
        rules = rules_of(self.settings, manifest)
        for url in moved_seeds(disk.redirects, seeds):
            rules.widen(url)
        events = Events()
        self.shard = Shard(
            0,
            disk,
            Sharding(1),
            self.settings,
            rules,
            is_resumed=begins_at > 0.0,
            now=Now(self.now(), self.wall()),
            events=events,
        )
        self.budget = PageBudget(self.settings.max_urls)
        self.engine = Engine(
            self.fetcher,
            [self.shard],
            self,
            self.budget,
            concurrency=self.settings.concurrency,
            events=events,
        )
        self.shard.offer(seed_candidates(seeds))
        self.engine.commit()

    def now(self) -> float:
        return self.clock.now

    def wall(self) -> float:
        return EPOCH_S + self.clock.now + self._wall_step_s

    def run(self, for_s: float = 3600.0) -> Life:
        """Until there is nothing to do, the budget is spent or the time is over."""
        asked_at, until = self.clock.now, self.clock.now + for_s
        while self.clock.now < until and not self.engine.is_idle:
            if self.clock.now >= asked_at + 0.25:  # as a child does when it is asked: idle?
                asked_at = self.clock.now
                self.engine.hurry()
            self.engine.turn()
            if self.budget.is_spent and not self.engine.in_flight and not self.shard.left.has_batch:
                break
        return self

    @property
    def urls(self) -> list[str]:
        return [url for _, url in self.fetcher.asked]

    @property
    def pages(self) -> list[str]:
        return [url for url in self.urls if not url.endswith("/robots.txt")]


def disk() -> Disk:
    return Disk(frontier_limit=1000)


# ---------------------------------------------------------------------- what is kept


@pytest.mark.processes
def test_a_resumed_crawl_keeps_its_scope_and_its_robots_files(tmp_path: Path) -> None:
    """Another --scope does not widen a crawl that has begun, and fresh rules are not asked for."""
    with DemoWeb(plain_sites(3, pages=6, neighbours=2)) as web:
        seeds = [web.url("plain-0")]
        first = crawl(modest(max_urls=3), seeds, tmp_path / "crawl")
        wider = modest(scope=ScopeMode.ANY, allow_net=("127.0.0.0/8",))
        second = crawl(wider, [], tmp_path / "crawl")

        log = web.log()
        assert (first.ending, second.ending) == (Ending.MAX_URLS, Ending.FINISHED)
        assert set(by_host(log)) == {web.host("plain-0")}
        assert robots_fetches(log) == 1
        mine = [url for url in real_pages(web) if url.startswith(seeds[0])]
        assert len(page_requests(log)) == len(mine) == 6


def test_a_seed_that_moved_within_its_site_takes_the_scope_along_for_good() -> None:
    """a.example → www.a.example is followed, in this life and in the next."""
    www = "http://www.a.example"
    pages = {
        HOST + "/": Reply(status=301, headers={"location": www + "/"}),
        www + "/": page("/1"),
        www + "/1": page("/2"),
        www + "/2": page(),
    }
    store = disk()

    first = Life(pages, store, settings=modest(max_urls=2)).run()
    second = Life(pages, store, begins_at=100.0).run()

    assert first.pages == [HOST + "/", www + "/"]
    assert second.pages == [www + "/1", www + "/2"]


def test_a_seed_that_moved_to_another_site_does_not_take_the_scope_along() -> None:
    """What was out of scope before the crash is out of scope after it."""
    elsewhere = "http://elsewhere.example/"
    pages = {
        HOST + "/": Reply(status=301, headers={"location": elsewhere}),
        HOST + "/1": page(elsewhere + "2"),
    }
    store = disk()

    first = Life(pages, store, seeds=(HOST + "/", HOST + "/1"), settings=modest(max_urls=1)).run()
    second = Life(pages, store, seeds=(HOST + "/", HOST + "/1"), begins_at=100.0).run()

    assert first.pages + second.pages == [HOST + "/", HOST + "/1"]


def test_pages_of_earlier_lives_count_against_max_per_host() -> None:
    """Five pages of a host are five pages, however often the crawl was interrupted."""
    store = disk()

    first = Life(chain(9), store, settings=modest(max_per_host=5, max_urls=3)).run()
    second = Life(chain(9), store, settings=modest(max_per_host=5), begins_at=100.0).run()

    assert len(first.pages) == 3
    assert len(second.pages) == 2
    assert [skip.reason for skip in store.skipped()] == ["max_per_host"]


def test_a_crawl_delay_outlives_the_process() -> None:
    """The first request of the next life comes no sooner than one delay after the last."""
    robots = Reply(body=b"User-agent: *\nCrawl-delay: 7\n", latency_s=0.01)
    pages = chain(4) | {HOST + "/robots.txt": robots}
    store = disk()

    first = Life(pages, store, settings=modest(max_urls=1)).run()
    died_at = first.now()
    second = Life(pages, store, begins_at=died_at + 0.5).run()

    assert HOST + "/robots.txt" not in second.urls
    assert second.fetcher.asked[0][0] - first.fetcher.asked[-1][0] >= 7.0


def test_a_retry_after_outlives_the_process() -> None:
    """A host that asked for five minutes gets them, even if the crawl died in the first."""
    refused = Reply(status=429, headers={"retry-after": "300"}, latency_s=0.01)
    store = disk()

    first = Life(chain(2) | {HOST + "/": refused}, store).run(for_s=5.0)
    second = Life(chain(2), store, begins_at=10.0).run()

    refused_at = first.fetcher.asked[-1][0]
    assert first.pages == [HOST + "/"]
    assert second.fetcher.asked[0][0] >= refused_at + 300.0


def test_a_clock_that_was_set_back_does_not_prolong_a_pause() -> None:
    """An hour back on the wall, and the five minutes are still five minutes."""
    refused = Reply(status=429, headers={"retry-after": "300"}, latency_s=0.01)
    store = disk()

    Life(chain(2) | {HOST + "/": refused}, store).run(for_s=5.0)
    second = Life(chain(2), store, begins_at=10.0, wall_step_s=-3600.0).run()

    assert 300.0 <= second.fetcher.asked[0][0] < 320.0


def test_what_a_group_of_hosts_was_told_outlives_the_process() -> None:
    """With one budget for a site, its other hosts keep the silence that one of them asked for."""
    pace = Settings(strategy="fixed", delay_s=0.05, group_by="site")
    settings = modest(politeness=pace, ignore_robots=True)
    refused = Reply(status=429, headers={"retry-after": "300"}, latency_s=0.01)
    seeds = ("http://one.a.example/", "http://two.a.example/")
    store = disk()

    first = Life({seeds[0]: refused}, store, settings=settings, seeds=seeds[:1]).run(for_s=5.0)
    second = Life({}, store, settings=settings, seeds=seeds, begins_at=10.0).run()

    assert first.pages == [seeds[0]]
    assert set(second.pages) == set(seeds)
    assert min(instant for instant, _ in second.fetcher.asked) >= 300.0


def test_a_learned_delay_outlives_the_process() -> None:
    """The next life starts at the pace that this one was taught, not at the default."""
    linear = modest(politeness=Settings(strategy="linear", max_rate="unlimited"))
    refused = Reply(status=429, latency_s=0.01)
    store = disk()

    Life(chain(5) | {HOST + "/": refused}, store, settings=linear).run(for_s=30.0)
    known = store.host("a.example")
    second = Life(chain(5), store, settings=linear, begins_at=60.0).run()

    assert known is not None
    assert known.adaptive_delay_s > linear.politeness.linear_base_delay_s
    assert second.fetcher.asked[0][0] >= 60.0 + 0.98 * known.adaptive_delay_s


def test_a_host_that_was_given_up_stays_given_up() -> None:
    """A link to it that is found in a later life is skipped, with the reason, and not fetched."""
    pace = Settings(strategy="fixed", delay_s=0.05, max_attempts=1, breaker_consecutive=100)
    settings = modest(politeness=pace, host_failure_limit=3, robots_unreachable="allow")
    broken = {f"{HOST}/{number}": Reply(status=500, latency_s=0.01) for number in range(1, 9)}
    pages = {HOST + "/": page(*broken)} | broken
    store = disk()

    first = Life(pages, store, settings=settings).run()
    second = Life(pages, store, settings=settings, begins_at=100.0)
    second.shard.offer(seed_candidates([HOST + "/new"]))
    second.run()

    assert len(first.pages) < len(pages)
    assert second.urls == []
    found = store.find(HOST + "/new")
    assert isinstance(found, Skipped)
    assert found.reason.startswith("host_retired")


# ---------------------------------------------------------------------- what is survived


def test_a_page_that_breaks_the_parser_costs_that_page_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is kept with its status and "parse_failed"; the next life does not trip over it again."""
    real = long_work.parse_page

    def fragile(body: bytes, content_type: str | None, url: str, **rest: str | None) -> object:
        if url == HOST + "/2":
            raise RecursionError("a page made to hurt")
        return real(body, content_type, url, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(long_work, "parse_page", fragile)
    pages = chain(2) | {
        HOST + "/": page("/1", "/2", "/3"),
        HOST + "/2": page(),
        HOST + "/3": page(),
    }
    store = disk()

    life = Life(pages, store).run()

    records = {record.url: record for _, record in store.pages()}
    assert life.engine.is_idle
    assert set(records) == {HOST + "/", HOST + "/1", HOST + "/2", HOST + "/3"}
    assert (records[HOST + "/2"].status, records[HOST + "/2"].error) == (200, "parse_failed")


@pytest.mark.parametrize(
    "absurd",
    [
        {"status": None, "error": None},
        {"status": 7},
        {"status": 100_000},
        {"status": -1},
        {"latency_s": -3.0},
        {"latency_s": nan},
        {"latency_s": 0.0, "total_s": float("inf")},
    ],
)
def test_an_answer_that_no_server_can_give_is_a_failed_page(absurd: dict[str, object]) -> None:
    """The crawl goes on, and the page is kept as what it is: an error."""
    pages = chain(1) | {HOST + "/": page("/1", "/2"), HOST + "/1": page(), HOST + "/2": page()}
    store = disk()

    life = Life(pages, store, absurd={HOST + "/1": absurd}).run()

    failed = store.find(HOST + "/1")
    assert life.engine.is_idle
    assert HOST + "/2" in life.pages
    assert isinstance(failed, PageRecord)
    assert (failed.status, failed.error) == (None, "protocol")


def test_a_full_disk_pauses_the_crawl_until_there_is_room() -> None:
    """Nothing starts meanwhile, the operator is told, and not a page is lost or fetched twice."""
    store = disk()
    life = Life(chain(6), store).run(for_s=0.12)

    store.is_full = True
    life.run(for_s=30.0)
    told, asked = life.engine.stats().now.trouble, len(life.urls)
    life.run(for_s=60.0)
    asked_later = len(life.urls)
    store.is_full = False
    life.run()

    assert told is not None
    assert "no room" in told
    assert asked_later == asked
    assert life.engine.stats().now.trouble is None
    assert life.pages == list(chain(6))
    assert [record.url for _, record in store.pages()] == life.pages


def test_a_disk_that_stays_full_ends_the_crawl_with_a_reason() -> None:
    """After five minutes it gives up; the next life fetches again what could not be written."""
    store = disk()
    life = Life(chain(4), store).run(for_s=0.12)
    store.is_full = True

    with pytest.raises(StoreFull, match="free some disk space"):
        life.run(for_s=2 * FULL_PATIENCE_S)
    store.is_full = False
    second = Life(chain(4), store, begins_at=life.now() + 1.0).run()

    assert second.engine.is_idle
    assert [record.url for _, record in store.pages()] == list(chain(4))
