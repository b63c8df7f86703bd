"""The library works wherever Python does: in threads, beside itself, in scripts without a guard."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import Crawler, real_pages
from tests.harness.waiting import eventually
from tests.library.loops import FAST, Program

import mannerly
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

PROCESSES = pytest.mark.parametrize("processes", [1, 2])

LOOP = """
for page in mannerly.crawl(seeds, **options):
    say(page.url)
"""


@pytest.fixture
def web() -> Iterator[DemoWeb]:
    with DemoWeb(plain_sites(3, pages=10, neighbours=1)) as web:
        yield web


@PROCESSES
def test_in_a_thread(web: DemoWeb, processes: int) -> None:
    """Not only the main thread may crawl."""
    urls: list[str] = []

    def work() -> None:
        assert threading.current_thread() is not threading.main_thread()
        urls.extend(page.url for page in mannerly.crawl(web.seeds(), processes=processes, **FAST))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert sorted(urls) == sorted(real_pages(web))


def test_two_crawls_at_the_same_time(web: DemoWeb) -> None:
    """Each in a thread of its own, one with two processes; neither gets pages of the other."""
    meeting = threading.Barrier(2)

    def work(seed: str, processes: int) -> list[str]:
        urls = []
        options = FAST | {"scope": "host", "processes": processes}
        for page in mannerly.crawl(seed, **options):
            if not urls:
                meeting.wait(60.0)  # both are in the middle
            urls.append(page.url)
        return sorted(urls)

    first, second = web.seeds()[:2]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(work, (first, second), (1, 2)))

    wanted = sorted(real_pages(web))
    assert found == [[url for url in wanted if url.startswith(seed)] for seed in (first, second)]


def test_two_loops_by_turns(web: DemoWeb) -> None:
    """Two crawls in one thread, a page of each in turn."""
    options = FAST | {"scope": "host"}
    first, second = (mannerly.crawl(seed, **options) for seed in web.seeds()[:2])

    pairs = list(zip(first, second, strict=True))

    assert len(pairs) == 10
    assert all(one.url != other.url for one, other in pairs)


@PROCESSES
@pytest.mark.parametrize("by_file", [False, True], ids=["command", "file"])
def test_no_main_guard_is_needed(
    web: DemoWeb, processes: int, by_file: bool, tmp_path: Path
) -> None:
    """`python -c` and a script without a main guard are run once, whatever children there are."""
    text = f"say('begun')\n{LOOP}"

    program = Program(text, web, tmp_path / "out", by_file=by_file, processes=processes)

    begun, *urls = program.end()
    assert begun == "begun"
    assert sorted(urls) == sorted(real_pages(web))


@PROCESSES
def test_modules_of_the_working_directory_are_not_imported(
    web: DemoWeb, processes: int, tmp_path: Path
) -> None:
    """A file json.py beside the program's data is none of its children's business."""
    trap = tmp_path / "work"
    trap.mkdir()
    for name in ("json", "socket", "pickle", "apsw", "pycurl"):
        (trap / f"{name}.py").write_text(f"import os; os.write(2, b'{name} was imported'); 1 / 0")

    # Given by its path, a script has its own directory on the path, and not the working directory.
    program = Program(
        LOOP, web, tmp_path / "out", cwd=trap, by_file=True, processes=processes, parse_limit=1
    )

    assert sorted(program.end()) == sorted(real_pages(web))


def test_workers_leave_when_the_program_is_killed(web: DemoWeb, tmp_path: Path) -> None:
    """Kill -9 of the program alone: its children see their channel end, and end, too."""
    text = """
crawl = mannerly.Crawl(seeds, delay=1.0, **options)
pages = iter(crawl)
next(pages)
while len(crawl.status().workers) < 2:
    time.sleep(0.01)
say(*[card["pid"] for card in crawl.status().workers])
time.sleep(600)
"""
    program = Program(text, web, tmp_path / "out", processes=2)
    eventually(lambda: program.lines)
    workers = [int(pid) for pid in program.lines[0].split()]
    assert all(map(Crawler.is_alive, workers))

    program.kill()

    eventually(lambda: not any(map(Crawler.is_alive, workers)))
