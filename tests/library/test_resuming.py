"""With a data_dir a loop goes on where it was left: by break, by an error, by kill -9.

The page in hand comes again, because a loop that was left cannot say whether it was done with it;
no other page does, and none is lost.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import kept, real_pages
from tests.harness.waiting import eventually
from tests.library.loops import FAST, Program, requests_of

import mannerly
from mannerly.crawler.runtime.ending import Ending
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

WORKERS = 8
PROCESSES = pytest.mark.parametrize("processes", [1, 2])


@pytest.fixture
def web() -> Iterator[DemoWeb]:
    with DemoWeb(plain_sites(4, pages=20, neighbours=1)) as web:
        yield web


def crawl(web: DemoWeb, tmp_path: Path, processes: int) -> Generator[mannerly.Page]:
    return mannerly.crawl(
        web.seeds(), data_dir=tmp_path / "crawl", processes=processes, concurrency=WORKERS, **FAST
    )


def assert_only_in_flight_again(web: DemoWeb, done: list[str], stops: int) -> None:
    """Pages that were done were asked for once; the others twice at most after each stop."""
    requests = requests_of(web)
    assert {requests[url] for url in done} == {1}
    assert sum(count - 1 for count in requests.values()) <= stops * WORKERS


@PROCESSES
def test_break_and_resume(web: DemoWeb, processes: int, tmp_path: Path) -> None:
    """The page in hand comes again and nothing else does; all come in the end, done ones fetched
    once, and the store has each once.
    """
    seen: list[str] = []
    for page in crawl(web, tmp_path, processes):
        seen.append(page.url)
        if len(seen) == 13:
            break

    again = [page.url for page in crawl(web, tmp_path, processes)]

    assert sorted(seen[:-1] + again) == sorted(real_pages(web))
    assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))
    assert_only_in_flight_again(web, seen[:-1], stops=1)


@PROCESSES
def test_an_error_in_the_loop_and_resume(web: DemoWeb, processes: int, tmp_path: Path) -> None:
    """The same after an exception, as often as it happens: it comes with the page in hand."""
    seen: list[str] = []
    again: set[str] = set()

    def loop(stop: int) -> None:
        for page in crawl(web, tmp_path, processes):
            seen.append(page.url)
            if len(seen) >= stop:
                raise ZeroDivisionError

    for stop in (5, 9, 30):
        with pytest.raises(ZeroDivisionError):
            loop(stop)
        again.add(seen[-1])

    seen += [page.url for page in crawl(web, tmp_path, processes)]

    counts = Counter(seen)
    assert set(counts) == set(real_pages(web))
    assert {url for url, count in counts.items() if count > 1} <= again


@PROCESSES
def test_done_before_a_break_is_not_delivered_again(
    web: DemoWeb, processes: int, tmp_path: Path
) -> None:
    """`done` says early what the next step of the loop would say."""
    seen: list[str] = []
    for page in crawl(web, tmp_path, processes):
        seen.append(page.url)
        page.done()
        page.done()
        if len(seen) == 5:
            break

    seen += [page.url for page in crawl(web, tmp_path, processes)]

    assert sorted(seen) == sorted(real_pages(web))


@PROCESSES
def test_done_after_a_break_is_not_delivered_again(
    web: DemoWeb, processes: int, tmp_path: Path
) -> None:
    """It is not too late after the loop."""
    first = next(pages := crawl(web, tmp_path, processes))
    pages.close()
    first.done()

    urls = [page.url for page in crawl(web, tmp_path, processes)]

    assert sorted([*urls, first.url]) == sorted(real_pages(web))


def test_done_of_a_crawl_that_was_replaced_means_nothing(web: DemoWeb, tmp_path: Path) -> None:
    """A page of the crawl before `fresh=True` does not stand for one of the new crawl."""
    first = next(pages := crawl(web, tmp_path, 1))
    pages.close()
    with mannerly.Crawl(web.seeds(), data_dir=tmp_path / "crawl", fresh=True, **FAST) as new:
        first.done()
        urls = [page.url for page in new]

    assert sorted(urls) == sorted(real_pages(web))


def test_a_finished_crawl_delivers_nothing_more(web: DemoWeb, tmp_path: Path) -> None:
    """Running it again ends at once, and `fresh` begins anew."""
    list(crawl(web, tmp_path, 1))
    requests = requests_of(web)

    with mannerly.Crawl(data_dir=tmp_path / "crawl", **FAST) as again:
        assert list(again) == []
        assert again.result is not None
        assert (again.result.ending, again.result.pending) == (Ending.FINISHED, 0)
    assert requests_of(web) == requests
    fresh = mannerly.crawl(web.seeds(), data_dir=tmp_path / "crawl", fresh=True, **FAST)
    assert len(list(fresh)) == len(list(real_pages(web)))


def test_new_seeds_of_a_resumed_crawl_are_added(web: DemoWeb, tmp_path: Path) -> None:
    """A seed that was not there before is fetched, too."""
    first, second = web.seeds()[:2]
    options = FAST | {"scope": "host", "max_depth": 0}
    one = [page.url for page in mannerly.crawl(first, data_dir=tmp_path / "crawl", **options)]

    both = mannerly.crawl([first, second], data_dir=tmp_path / "crawl", **options)

    assert one == [first]
    assert [page.url for page in both] == [second]


LOOP = """
    for page in mannerly.crawl(seeds, **options):
        say(page.url)
    say("finished")
"""


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.parametrize(("processes", "seed"), [(1, 1), (2, 2)])
def test_kill_at_random_moments(processes: int, seed: int, kills: int, tmp_path: Path) -> None:
    """After kills of the program, each URL came once, but for the pages in hand at a kill."""
    rng = random.Random(seed)
    options = {"data_dir": str(tmp_path / "crawl"), "processes": processes, "delay": 0.01}
    in_hand: Counter[str] = Counter()

    with DemoWeb(plain_sites(4, pages=10 * kills, neighbours=1)) as web:
        for _ in range(kills):
            program = Program(LOOP, web, tmp_path / "out", **options)
            enough = len(program.lines) + rng.randrange(15)
            is_begun = (tmp_path / "crawl" / "crawl.json").exists
            eventually(lambda: is_begun() and len(program.lines) >= enough)  # noqa: B023
            program.kill()
            in_hand.update(program.lines[-1:])
        *urls, last = Program(LOOP, web, tmp_path / "out", **options).end()

        assert last == "finished"
        assert set(urls) == set(real_pages(web))
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))
    twice = Counter(urls) - Counter(set(urls))
    assert twice <= in_hand
    assert "finished" not in in_hand, "it was killed before its end each time"


@PROCESSES
def test_done_before_a_kill_is_not_delivered_again(processes: int, tmp_path: Path) -> None:
    """`done` is written down before it returns: kill -9 right after it changes nothing."""
    text = """
        for page in mannerly.crawl(seeds, **options):
            page.done()
            say(page.url)
            if given["options"]["max_urls"] == 5:
                time.sleep(600)  # it is killed here
    """
    options = {"data_dir": str(tmp_path / "crawl"), "processes": processes}

    with DemoWeb(plain_sites(2, pages=10)) as web:
        program = Program(text, web, tmp_path / "out", max_urls=5, **options)
        eventually(lambda: program.lines)
        program.kill()
        urls = Program(text, web, tmp_path / "out", max_urls=1000, **options).end()

        assert sorted(urls) == sorted(real_pages(web))


def test_a_worker_that_dies_costs_no_page_and_repeats_none(tmp_path: Path) -> None:
    """The pages of a killed worker come from its successor; the page in hand comes once."""
    seen: list[str] = []
    killed: set[int] = set()

    with DemoWeb(plain_sites(4, pages=30, neighbours=1)) as web:
        with mannerly.Crawl(web.seeds(), processes=2, concurrency=WORKERS, **FAST) as crawl:
            for page in crawl:
                seen.append(page.url)
                if len(seen) in (5, 25, 60):
                    eventually(lambda: set(workers(crawl)) - killed)
                    pid = (set(workers(crawl)) - killed).pop()
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
                    # Its successor has fetched again what this one had.
                    eventually(lambda: len(set(workers(crawl)) - killed) == 2)

        assert len(killed) == 3
        assert sorted(seen) == sorted(real_pages(web))


def workers(crawl: mannerly.Crawl) -> list[int]:
    return [card["pid"] for card in crawl.status().workers]
