"""Control records, as far as they are about the whole run: each of them while the crawl runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import Crawler, is_still, kept, modest, page_requests
from tests.harness.waiting import eventually

from mannerly.crawler.control import Pause, SetOption, Stop, Unpause
from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.store import open_crawl
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.crawler.control import Control
    from mannerly.crawler.settings import CrawlSettings

pytestmark = pytest.mark.processes

BOTH = pytest.mark.parametrize("processes", [1, 2])


@contextmanager
def running(settings: CrawlSettings, web: DemoWeb, data_dir: Path) -> Iterator[Crawler]:
    """Run a crawl of many pages, which has begun."""
    with Crawler(settings, web.seeds(), data_dir) as crawler:
        before = len(page_requests(web.log()))
        eventually(lambda: len(page_requests(web.log())) >= before + 8)
        yield crawler


def order(data_dir: Path, *records: Control) -> None:
    """Add control records, as a second terminal does."""
    store = open_crawl(data_dir)
    for record in records:
        store.order(record)
    store.close()


@BOTH
def test_stop_ends_the_run_as_sigterm_does(processes: int, tmp_path: Path) -> None:
    """What was under way is kept, and a stop from before a run does not end it."""
    settings = modest(processes=processes)
    with DemoWeb(plain_sites(4, pages=30)) as web:
        with running(settings, web, tmp_path / "crawl") as crawler:
            order(tmp_path / "crawl", Stop())
            left = crawler.left(within_s=20.0)
        resumed = crawl(modest(processes=processes), [], tmp_path / "crawl")

        assert left.ending == "terminated"
        assert left.answer["pending"] > 0
        assert resumed.ending is Ending.FINISHED
        assert len(page_requests(web.log())) == 120


@BOTH
def test_max_urls_can_be_set_while_a_crawl_runs(processes: int, tmp_path: Path) -> None:
    """A crawl without a limit gets one, which is kept exactly."""
    settings = modest(processes=processes)
    with DemoWeb(plain_sites(4, pages=60)) as web:
        with running(settings, web, tmp_path / "crawl") as crawler:
            order(tmp_path / "crawl", SetOption("max_urls", 150))
            left = crawler.left(within_s=40.0)

        assert left.ending == "max_urls"
        assert len(page_requests(web.log())) == 150
        assert len(kept(tmp_path / "crawl").pages) == 150


@BOTH
def test_max_urls_below_what_was_fetched_ends_the_run(processes: int, tmp_path: Path) -> None:
    """Nothing more is started."""
    settings = modest(processes=processes, max_urls=200)
    with DemoWeb(plain_sites(4, pages=60)) as web:
        with running(settings, web, tmp_path / "crawl") as crawler:
            order(tmp_path / "crawl", SetOption("max_urls", 1))
            left = crawler.left(within_s=20.0)

        assert left.ending == "max_urls"
        assert len(page_requests(web.log())) < 200


@BOTH
def test_duration_can_be_set_while_a_crawl_runs_and_afterwards(
    processes: int, tmp_path: Path
) -> None:
    """It counts from the start of the run; None takes the limit away."""
    settings = modest(processes=processes)
    with DemoWeb(plain_sites(4, pages=40)) as web:
        with running(settings, web, tmp_path / "crawl") as crawler:
            order(tmp_path / "crawl", SetOption("duration", 0.5))
            left = crawler.left(within_s=20.0)
        order(tmp_path / "crawl", SetOption("duration", None))
        resumed = crawl(settings, [], tmp_path / "crawl")

        assert left.ending == "duration"
        assert resumed.ending is Ending.FINISHED


@BOTH
def test_a_paused_crawl_starts_nothing_until_it_is_unpaused(processes: int, tmp_path: Path) -> None:
    """It holds over a restart, and the heartbeat says why nothing happens."""
    settings = modest(processes=processes)
    with DemoWeb(plain_sites(4, pages=30)) as web:
        with running(settings, web, tmp_path / "crawl") as crawler:
            order(tmp_path / "crawl", Pause())
            eventually(lambda: is_still(web))
            order(tmp_path / "crawl", Stop())
            left = crawler.left()
        with Crawler(settings, [], tmp_path / "crawl") as crawler:
            store = open_crawl(tmp_path / "crawl")
            eventually(
                lambda: (
                    [heartbeat.waits_for for heartbeat in store.workers()] == ["paused"] * processes
                )
            )
            before = len(page_requests(web.log()))
            assert is_still(web)
            store.order(Unpause())
            store.close()
            resumed = crawler.left()

        assert left.ending == "terminated"
        assert before < 120
        assert resumed.ending == "finished"
        assert len(page_requests(web.log())) == 120
