"""Killed at any instant, a crawl loses no URL, repeats only what was at risk, and stays polite.

The whole process group is killed with SIGKILL, again and again, and started again; then the crawl
may run to its end. The judges are the web's log and the store.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import Crawler, kept, modest, page_requests, real_pages, url_of
from tests.harness.waiting import eventually

from mannerly.crawler.web.choices import ScopeMode
from mannerly.demo import DemoWeb, by_host, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.demo import Record

pytestmark = pytest.mark.processes

KILLS = 4  # of each crawl; there are five crawls
DELAY_S = 0.05
LONG_S = 2.5  # a gap that is longer than a restart takes, so that it tells something
TOLERANCE = 0.98  # P4 grants 2 %


@dataclass
class Story:
    """What was done to a crawl: when each of its runs was killed."""

    web: DemoWeb
    data_dir: Path
    killed: list[float] = field(default_factory=list)

    def runs(self) -> list[list[Record]]:
        """The web's log, cut at the kills."""
        log = self.web.log()
        edges = [0.0, *self.killed, float("inf")]
        return [
            [record for record in log if start <= record.t < end] for start, end in pairwise(edges)
        ]


def _kill_again_and_again(story: Story, settings: CrawlSettings, rng: random.Random) -> None:
    """Runs that end after a random number of requests, or before the first; then one more."""
    web = story.web
    seeds = [web.url("plain-0")]  # all other hosts are found by links, often of another shard
    for _ in range(KILLS):
        enough = len(web.log()) + rng.randint(0, 40)
        at_latest = time.monotonic() + 2.5 + rng.random()
        with Crawler(settings, seeds, story.data_dir) as crawler:
            eventually((story.data_dir / "crawl.json").exists)
            eventually(partial(_is_time, web, enough, at_latest))
            story.killed.append(crawler.kill())
    with Crawler(settings, seeds, story.data_dir) as crawler:
        assert crawler.left().ending == "finished"


def _is_time(web: DemoWeb, requests: int, instant: float) -> bool:
    return len(web.log()) >= requests or time.monotonic() > instant


def _refetched(story: Story) -> list[tuple[list[Record], set[str]]]:
    """For each kill: the pages asked for before it, and which of them were asked for again."""
    runs = [page_requests(run) for run in story.runs()]
    urls = [{url_of(record) for record in run} for run in runs]
    return [
        (run, urls[index] & set().union(*urls[index + 1 :])) for index, run in enumerate(runs[:-1])
    ]


def _were_last_of_their_hosts(refetched: set[str], pages: list[Record]) -> bool:
    """Pages are committed in their order, so a kill takes the latest ones, however old they are."""
    for records in by_host(pages).values():
        lost = [url_of(record) in refetched for record in records]
        if lost != sorted(lost):
            return False
    return True


def _gaps_around(killed_at: float, log: list[Record]) -> list[float]:
    """From the last request before a kill to the first one after it, for each host."""
    gaps = []
    for records in by_host(log).values():
        before = [record.t for record in records if record.t < killed_at]
        after = [record.t for record in records if record.t >= killed_at]
        if before and after:
            gaps.append(after[0] - before[-1])
    return gaps


@pytest.mark.parametrize(
    ("processes", "crawls"),
    [(1, 1), (2, 1), *(pytest.param(n, 3, marks=pytest.mark.long) for n in (1, 2))],
)
def test_a_crawl_that_is_killed_again_and_again_loses_nothing_and_stays_polite(
    processes: int, crawls: int, tmp_path: Path
) -> None:
    """No URL lost, none recorded twice, few fetched twice, and each gap outlives the process."""
    settings = modest(
        processes=processes, delay_s=DELAY_S, scope=ScopeMode.ANY, allow_net=("127.0.0.0/8",)
    )

    with ExitStack() as webs:
        sites = plain_sites(6, pages=25, neighbours=2, latency_s=0.01)
        stories = [
            Story(
                webs.enter_context(DemoWeb(sites, first_address=f"127.0.{number}.2")),
                tmp_path / str(number),
            )
            for number in range(crawls)
        ]
        rngs = [random.Random(10 * processes + number) for number in range(crawls)]
        with ThreadPoolExecutor(crawls) as pool:
            list(pool.map(_kill_again_and_again, stories, [settings] * crawls, rngs))

        for story in stories:
            _judge(story, settings)


def _judge(story: Story, settings: CrawlSettings) -> None:
    store = kept(story.data_dir)
    counts = Counter(store.urls)
    asked_for = {url_of(r) for r in page_requests(story.web.log()) if r.status == 200}
    assert set(real_pages(story.web)) <= set(counts)
    assert set(real_pages(story.web)) <= asked_for
    assert [url for url, count in counts.items() if count > 1] == []
    assert store.pending == 0
    for pages, refetched in _refetched(story):
        assert len(refetched) <= settings.concurrency
        assert _were_last_of_their_hosts(refetched, pages)
    for killed_at in story.killed:
        assert min(_gaps_around(killed_at, story.web.log()), default=inf) >= TOLERANCE * DELAY_S


def test_a_crawl_that_is_killed_before_its_first_commit_starts_over(tmp_path: Path) -> None:
    """Between the manifest and the seeds lies an instant, and a kill may hit it."""
    with DemoWeb(plain_sites(1, pages=3)) as web:
        with Crawler(modest(), web.seeds(), tmp_path / "crawl") as crawler:
            eventually((tmp_path / "crawl" / "crawl.json").exists)
            crawler.kill()
        with Crawler(modest(), web.seeds(), tmp_path / "crawl") as crawler:
            left = crawler.left()

        assert left.ending == "finished"
        assert set(kept(tmp_path / "crawl").urls) == set(real_pages(web))


def test_the_gap_that_was_in_force_at_a_kill_is_kept_by_the_next_process(tmp_path: Path) -> None:
    """The instant of the last request is not stored, so the restart counts as one."""
    settings = modest(delay_s=LONG_S, ignore_robots=True)

    with DemoWeb(plain_sites(2, pages=1, latency_s=0.5)) as web:
        with Crawler(settings, web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len(web.log()) == 2)
            killed_at = crawler.kill()
        with Crawler(settings, web.seeds(), tmp_path / "crawl") as crawler:
            crawler.left()

        assert len(web.log()) == 4
        assert min(_gaps_around(killed_at, web.log())) >= TOLERANCE * LONG_S


def test_a_child_that_is_killed_alone_is_started_again(tmp_path: Path) -> None:
    """Its hosts wait one delay, the other child goes on, and nothing is lost."""
    delay_s = 1.2  # longer than it takes to start a child

    with DemoWeb(plain_sites(4, pages=2, neighbours=2)) as web:
        settings = modest(processes=2, delay_s=delay_s)
        with Crawler(settings, web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len(page_requests(web.log())) >= 4)
            killed_at = crawler.kill_worker(crawler.workers()[0])
            left = crawler.left()

        gaps_s = _gaps_around(killed_at, web.log())
        assert left.ending == "finished"
        assert left.answer["pending"] == 0
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))
        assert len(gaps_s) == 4
        assert min(gaps_s) >= TOLERANCE * delay_s


def test_a_child_that_dies_while_the_crawl_drains_does_not_hold_it_up(tmp_path: Path) -> None:
    """What it had under way is fetched by the next run; this one ends."""
    with DemoWeb(plain_sites(4, pages=10, latency_s=1.0)) as web:
        settings = modest(processes=2, timeout_s=20.0)
        with Crawler(settings, web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len({record.host for record in web.log()}) == 4)
            crawler.tell(signal.SIGINT)
            crawler.kill_worker(crawler.workers()[0])
            left = crawler.left(within_s=15.0)

        assert left.ending == "stopped"
        assert left.answer["pending"] > 0
