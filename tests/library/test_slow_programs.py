"""Fetching waits for a slow program, says so, and harms neither requests nor politeness."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import page_requests, real_pages
from tests.harness.waiting import eventually
from tests.library.loops import FAST, Program

import mannerly
from mannerly.crawler.inspection.status import State
from mannerly.demo import DemoWeb, Site, gaps_s, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

WORKERS = 6
HELD_S = 1.5  # longer than the timeout of the requests
WORDS = "waiting for the program that reads the pages"


@pytest.mark.parametrize("processes", [1, 2])
def test_fetching_waits_for_the_program(processes: int) -> None:
    """No more than `workers` pages are fetched ahead; the status says what is waited for, and how
    many pages are ready; no request fails for it, and all pages come.
    """
    urls = []
    with DemoWeb(plain_sites(24, pages=6, neighbours=1)) as web:  # enough for both shards
        options = FAST | {"concurrency": WORKERS, "timeout": 1.0, "processes": processes}
        with mannerly.Crawl(web.seeds(), **options) as crawl:
            for page in crawl:
                assert page.status == 200
                acknowledged = len(urls)
                urls.append(page.url)
                if len(urls) in (3, 30):
                    held_at = time.monotonic()
                    eventually(lambda: waiting(crawl) == WORKERS)
                    assert crawl.status().state is State.WAITING
                    eventually(lambda: time.monotonic() > held_at + HELD_S)  # noqa: B023
                    assert len(page_requests(web.log())) <= acknowledged + WORKERS
            result = crawl.result

        assert sorted(urls) == sorted(real_pages(web))
        assert len(page_requests(web.log())) == len(urls)
    assert result is not None
    assert (result.stats.requests.retries, dict(result.stats.failed)) == (0, {})


def waiting(crawl: mannerly.Crawl) -> int:
    """Return how many pages are ready, if all workers wait for the program."""
    said = [card["waits_for"] or "" for card in crawl.status().workers]
    if not said or not all(each.startswith(WORDS) for each in said):
        return 0
    return sum(int(each.split(": ")[1].split()[0]) for each in said)


def test_status_says_it_when_the_seed_alone_waits() -> None:
    """There is room, but nothing else to do until the program has dealt with the first page."""
    with DemoWeb(plain_sites(1, pages=5)) as web, mannerly.Crawl(web.seeds(), **FAST) as crawl:
        for page in crawl:
            if page.depth == 0:
                eventually(lambda: waiting(crawl) == 1)


def test_a_host_that_waits_for_its_pace_is_not_the_programs_fault() -> None:
    """While requests can be expected without the program, nothing is said of it."""
    with (
        DemoWeb(plain_sites(1, pages=5)) as web,
        mannerly.Crawl(web.seeds(), **FAST, delay=1.0) as crawl,
    ):
        pages = iter(crawl)
        next(pages)
        next(pages)  # three more are queued, and due a second apart
        # The card of a moment ago may still say that the first page waits.
        eventually(lambda: crawl.status().workers and waiting(crawl) == 0)
        pages.close()


def test_pages_are_not_fetched_in_a_burst_after_a_wait() -> None:
    """The gaps between requests are kept, whatever the program does."""
    delay_s = 0.5
    with DemoWeb([Site(name="one", pages=6, disallow=())]) as web:
        options = FAST | {"concurrency": 2}
        for number, page in enumerate(mannerly.crawl(web.seeds(), delay=delay_s, **options)):
            if number == 1:
                released_at = time.monotonic() + 3 * delay_s
                eventually(lambda: time.monotonic() > released_at)  # noqa: B023
            assert page.status == 200

        assert len(page_requests(web.log())) == 6
        assert min(gaps_s(web.log())) >= delay_s * 0.98


@pytest.mark.parametrize("processes", [1, 2])
def test_memory_stays_flat(processes: int, tmp_path: Path) -> None:
    """60 MB of pages pass through a program that needs time for each, in a few MB."""
    text = """
        import resource
        for number, page in enumerate(mannerly.crawl(seeds, **options)):
            if number in (60, 299):
                say(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
            time.sleep(0.002)
    """
    with DemoWeb(plain_sites(4, pages=75, size=200_000)) as web:
        program = Program(text, web, tmp_path / "out", concurrency=16, processes=processes)
        early_mb, late_mb = map(int, program.end())

    assert late_mb - early_mb < 20
