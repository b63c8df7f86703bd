"""How a crawl ends: by itself, by a limit, or because it was told to. It can be resumed.

Real processes and sockets; the judges are the web's log and the store. Limits of time are those
that an operator would notice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import (
    PATIENT,
    Crawler,
    kept,
    modest,
    page_requests,
    real_pages,
    url_of,
)
from tests.harness.waiting import PATIENCE_S, eventually

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.page.long_work import BIG_BYTES
from mannerly.crawler.runtime import ending
from mannerly.crawler.runtime.ending import Ending, Signals
from mannerly.crawler.store.base import StoreError
from mannerly.demo import DemoWeb, Site, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

TIMEOUT_S = 3.0
ANSWER_S = 60.0  # longer than any machine stalls: waiting for it would be noticed


@pytest.mark.parametrize(
    ("processes", "word", "ending"),
    [
        (1, signal.SIGINT, "stopped"),
        (2, signal.SIGINT, "stopped"),
        (1, signal.SIGTERM, "terminated"),
        (1, signal.SIGHUP, "terminated"),
        (2, signal.SIGHUP, "terminated"),
    ],
)
def test_the_first_signal_drains(
    processes: int, word: signal.Signals, ending: str, tmp_path: Path
) -> None:
    """Nothing new starts, what is under way is awaited and kept, and the next run does the rest."""
    settings = modest(processes=processes, timeout_s=TIMEOUT_S)

    with DemoWeb(plain_sites(4, pages=6, latency_s=0.2)) as web:
        with Crawler(settings, web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len(page_requests(web.log())) >= 6)
            crawler.tell(word)
            left = crawler.left()
        answered = {url_of(r) for r in page_requests(web.log()) if r.answered_at}
        stored = set(kept(tmp_path / "crawl").urls)
        resumed = crawl(settings, [], tmp_path / "crawl")

        assert left.ending == ending
        assert left.answer["pending"] > 0
        assert stored == answered
        assert resumed.ending is Ending.FINISHED
        assert Counter(url_of(r) for r in page_requests(web.log())) == Counter(real_pages(web))


@pytest.mark.parametrize("processes", [1, 2])
def test_the_second_signal_stops_at_once(processes: int, tmp_path: Path) -> None:
    """Answers under way are not waited for; what came in before is kept."""
    slow = Site(name="slow", latency_s=ANSWER_S, disallow=())
    settings = modest(processes=processes, timeout_s=ANSWER_S, ignore_robots=True)

    with DemoWeb([*plain_sites(2, pages=3), slow]) as web:
        with Crawler(settings, web.seeds(), tmp_path / "crawl", before=PATIENT) as crawler:
            eventually(lambda: len(page_requests(web.log())) >= 7)
            told_at = crawler.tell_twice(signal.SIGINT)
            left = crawler.left()
            took_s = time.monotonic() - told_at

        assert left.ending == "stopped"
        assert took_s < ANSWER_S / 2
        assert len(kept(tmp_path / "crawl").urls) == 6
        assert left.answer["pending"] == 1


def test_two_signals_that_come_together_stop_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To an interpreter that is busy they are one; the run is told of two all the same."""
    monkeypatch.setattr(ending, "HANGS_S", 10 * PATIENCE_S)
    kill = f"sleep 0.2; kill -INT {os.getpid()}; sleep 0.2; kill -INT {os.getpid()}"
    with Signals() as switch, subprocess.Popen(["sh", "-c", kill]) as sender:
        while sender.poll() is None:
            sum(range(20_000_000))  # no signal is handled before its end

        eventually(lambda: switch.wants_end_now)

    assert switch.wants_end


def test_a_terminal_reaches_the_supervisor_alone(tmp_path: Path) -> None:
    """Ctrl-C while the workers are starting ends the crawl, and none of them complains."""
    with DemoWeb(plain_sites(2, pages=30)) as web:
        with Crawler(modest(processes=2), web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len(crawler.workers()) == 2)
            crawler.tell_group(signal.SIGINT)
            left = crawler.left()

        assert left.ending == "stopped"
        assert left.complaints == ""


def test_workers_ignore_signals(tmp_path: Path) -> None:
    """What is meant for all processes of a service is for the supervisor to act on."""
    with DemoWeb(plain_sites(2, pages=20)) as web:
        with Crawler(modest(processes=2), web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len({record.host for record in web.log()}) == 2)
            workers = crawler.workers()
            for _ in range(50):
                crawler.tell_workers(signal.SIGINT)
                crawler.tell_workers(signal.SIGTERM)
            assert crawler.workers() == workers
            left = crawler.left()

        assert left.ending == "finished"
        assert left.complaints == ""


def test_a_worker_that_dies_of_a_signal_before_it_ignores_them_is_started_again(
    tmp_path: Path,
) -> None:
    """An interpreter takes some milliseconds to come that far."""
    with DemoWeb(plain_sites(2, pages=3)) as web:
        with Crawler(modest(processes=2), web.seeds(), tmp_path / "crawl") as crawler:
            eventually(crawler.workers)
            crawler.tell_workers(signal.SIGTERM)
            left = crawler.left()

        assert left.ending == "finished"
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))


def test_workers_of_a_dead_supervisor_end_by_themselves(tmp_path: Path) -> None:
    """Within two seconds, helpers included; they keep what came in, and let the next run in."""
    big = Site(name="big", pages=40, size=BIG_BYTES + 1, disallow=())
    with DemoWeb([*plain_sites(4, pages=15), big]) as web:
        with Crawler(modest(processes=2), web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len({r.host for r in page_requests(web.log())}) == 5)
            eventually(lambda: len(crawler.everyone()) > 3)
            crawler.tell(signal.SIGKILL)
            eventually(lambda: not crawler.everyone(), within_s=2.0)
        crawl(modest(), [], tmp_path / "crawl")

        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))


def test_the_next_run_waits_for_workers_that_are_leaving(tmp_path: Path) -> None:
    """A run that resumes at once after a SIGKILL is not refused as a second one."""
    with DemoWeb(plain_sites(4, pages=15)) as web:
        with Crawler(modest(processes=2), web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len({r.host for r in page_requests(web.log())}) == 4)
            crawler.tell(signal.SIGKILL)
            resumed = crawl(modest(processes=2), [], tmp_path / "crawl")

        assert resumed.ending is Ending.FINISHED


def test_a_second_crawler_on_the_same_directory_is_refused_at_once(tmp_path: Path) -> None:
    """One owner at a time; the message names it."""
    with (
        DemoWeb([Site(name="slow", latency_s=ANSWER_S)]) as web,
        Crawler(modest(), web.seeds(), tmp_path / "crawl"),
    ):
        eventually(web.log)
        asked_at = time.monotonic()

        with pytest.raises(StoreError, match="in use by pid"):
            crawl(modest(), web.seeds(), tmp_path / "crawl")

        assert time.monotonic() - asked_at < ANSWER_S / 2


@pytest.mark.parametrize("processes", [1, 2])
def test_max_urls_is_exact(processes: int, tmp_path: Path) -> None:
    """Not one page more and not one less, in every run, with pages to spare."""
    settings = modest(processes=processes, max_urls=37, concurrency=64)

    with DemoWeb(plain_sites(6, pages=20, neighbours=1)) as web:
        first = crawl(settings, web.seeds(), tmp_path / "crawl")
        after_first = len(page_requests(web.log()))
        second = crawl(settings, [], tmp_path / "crawl")
        after_second = len(page_requests(web.log()))

        assert first.ending is second.ending is Ending.MAX_URLS
        assert (after_first, after_second) == (37, 74)
        assert len(kept(tmp_path / "crawl").pages) == 74


def test_max_urls_counts_pages_and_not_attempts(tmp_path: Path) -> None:
    """A page that was refused and asked for again is one page."""
    settings = modest(max_urls=4, delay_s=0.1)
    flaky = Site(name="flaky", limit="bucket:3:2", disallow=())

    with DemoWeb([flaky]) as web:
        result = crawl(settings, web.seeds(), tmp_path / "crawl")

        assert result.ending is Ending.MAX_URLS
        assert result.stats.requests.retries > 0
        assert len(kept(tmp_path / "crawl").pages) == 4


def test_a_limit_that_is_never_reached_is_not_why_it_ended(tmp_path: Path) -> None:
    """As many pages as allowed, and no more to be had: finished."""
    with DemoWeb(plain_sites(1, pages=5)) as web:
        result = crawl(modest(max_urls=5), web.seeds(), tmp_path / "crawl")

        assert result.ending is Ending.FINISHED
        assert result.pending == 0


@pytest.mark.parametrize("processes", [1, 2])
def test_an_idle_crawl_sees_that_its_time_is_over(processes: int, tmp_path: Path) -> None:
    """A host that asks for 30 s between requests leaves nothing to do but to look at the clock."""
    settings = modest(processes=processes, duration_s=1.5)
    slow = Site(name="slow", crawl_delay_s=30.0, disallow=())

    with DemoWeb([slow]) as web:
        result = crawl(settings, web.seeds(), tmp_path / "crawl")

        assert result.ending is Ending.DURATION
        assert result.seconds < slow.crawl_delay_s, "it did not wait for the host"
        assert result.pending == 1
