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
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from harness import Crawler, eventually, kept, modest, page_requests, real_pages, url_of

from mannerly.crawl.scope import ScopeMode
from mannerly.demo import DemoWeb, Site, by_host, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawl.settings import CrawlSettings
    from mannerly.demo import Record

KILLS = 5
DELAY_S = 0.05
CRAWL_DELAY_S = 1.5  # longer than a restart takes, so that the gap after it tells something
TOLERANCE = 0.98  # P4 grants 2 %
# A page is committed 0.02 s after its answer. The rest is for the crawler's turn on a busy core.
AT_RISK_S = 0.15


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


def _sites() -> tuple[Site, ...]:
    slow = Site(name="slow", pages=2, neighbours=1, crawl_delay_s=CRAWL_DELAY_S, disallow=())
    return (*plain_sites(6, pages=25, neighbours=2, latency_s=0.01), slow)


def _kill_again_and_again(story: Story, settings: CrawlSettings, rng: random.Random) -> None:
    """Five runs that end after a random number of requests, or before the first; then one more."""
    web = story.web
    seeds = [web.url("plain-0"), web.url("slow")]
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


def _refetched(story: Story) -> list[tuple[set[str], set[str]]]:
    """For each kill: what was asked for before and again after it, and what was at risk."""
    runs = story.runs()
    result = []
    for index, killed_at in enumerate(story.killed):
        later = {url_of(record) for run in runs[index + 1 :] for record in run}
        again = {url_of(record) for record in runs[index]} & later
        at_risk = {
            url_of(record)
            for record in runs[index]
            if record.answered_at is None or record.answered_at > killed_at - AT_RISK_S
        }
        result.append((again, at_risk))
    return result


def _gaps_after_kills(story: Story) -> list[tuple[str, float, float]]:
    """For each kill and host: the gap around it, and the delay that was known before it."""
    asked = {host: site.asked_delay_s for host, site in story.web.sites.items()}
    found = []
    for killed_at in story.killed:
        for host, records in by_host(story.web.log()).items():
            before = [record for record in records if record.t < killed_at]
            after = [record for record in records if record.t >= killed_at]
            if not before or not after:
                continue
            rules = before[0].answered_at
            is_known = rules is not None and rules < killed_at - AT_RISK_S
            delay_s = max(DELAY_S, asked[host] if is_known else 0.0)
            found.append((host, after[0].t - before[-1].t, delay_s))
    return found


@pytest.mark.parametrize("processes", [1, 2])
def test_a_crawl_that_is_killed_ten_times_loses_nothing_and_stays_polite(
    processes: int, tmp_path: Path
) -> None:
    """No URL lost, none recorded twice, few fetched twice, and each gap outlives the process."""
    settings = modest(
        processes=processes,
        delay_s=DELAY_S,
        scope=ScopeMode.ANY,
        allow_net=("127.0.0.0/8",),
    )

    with DemoWeb(_sites()) as first, DemoWeb(_sites(), first_address="127.0.1.2") as second:
        stories = [Story(first, tmp_path / "first"), Story(second, tmp_path / "second")]
        rngs = [random.Random(processes), random.Random(10 + processes)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(_kill_again_and_again, stories, [settings] * 2, rngs))

        for story in stories:
            store = kept(story.data_dir)
            counts = Counter(store.urls)
            asked_for = {url_of(r) for r in page_requests(story.web.log()) if r.status == 200}
            assert set(real_pages(story.web)) <= set(counts)
            assert set(real_pages(story.web)) <= asked_for
            assert [url for url, count in counts.items() if count > 1] == []
            assert store.pending == 0
            for again, at_risk in _refetched(story):
                assert again <= at_risk
                assert len(again) <= settings.workers
            for host, gap_s, delay_s in _gaps_after_kills(story):
                assert gap_s >= TOLERANCE * delay_s, host


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


def test_a_child_that_is_killed_alone_is_started_again(tmp_path: Path) -> None:
    """Its hosts wait one delay, the other child goes on, and nothing is lost."""
    delay_s = 1.5  # longer than it takes to start a child

    with DemoWeb(plain_sites(4, pages=2, neighbours=2)) as web:
        settings = modest(processes=2, delay_s=delay_s)
        with Crawler(settings, web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len(page_requests(web.log())) >= 4)
            killed = crawler.workers()[0]
            killed_at = crawler.kill_worker(killed)
            left = crawler.left()

        log = web.log()
        assert left.ending == "finished"
        assert left.answer["pending"] == 0
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))
        for records in by_host(log).values():
            before = [record for record in records if record.t < killed_at]
            after = [record for record in records if record.t >= killed_at]
            assert after[0].t - before[-1].t >= TOLERANCE * delay_s


def test_a_child_that_dies_while_the_crawl_drains_does_not_hold_it_up(tmp_path: Path) -> None:
    """What it had under way is fetched by the next run; this one ends."""
    with DemoWeb(plain_sites(4, pages=10, latency_s=2.0)) as web:
        settings = modest(processes=2, timeout_s=20.0)
        with Crawler(settings, web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len({record.host for record in web.log()}) == 4)
            crawler.tell(signal.SIGINT)
            crawler.kill_worker(crawler.workers()[0])
            left = crawler.left(within_s=15.0)

        assert left.ending == "stopped"
        assert left.answer["pending"] > 0
