"""`async for` over a crawl leaves the event loop to other tasks, and ends as a loop does."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import real_pages
from tests.library.conftest import threads
from tests.library.loops import FAST, requests_of

import mannerly
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

PROCESSES = pytest.mark.parametrize("processes", [1, 2])
TICK_S = 0.005
PATIENCE_S = 60.0


@pytest.fixture
def web() -> Iterator[DemoWeb]:
    with DemoWeb(plain_sites(4, pages=20, neighbours=1)) as web:
        yield web


async def until(condition: Callable[[], object]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(TICK_S)


async def gone() -> None:
    """Wait until no crawl runs in this process."""
    await until(lambda: not threads())


@PROCESSES
async def test_every_page_comes_once(web: DemoWeb, processes: int) -> None:
    """The same pages as in a plain loop."""
    urls = [page.url async for page in mannerly.acrawl(web.seeds(), processes=processes, **FAST)]

    assert sorted(urls) == sorted(real_pages(web))


@PROCESSES
async def test_other_tasks_go_on(processes: int) -> None:
    """A task that ticks 200 times a second ticks at least 20 times a second while pages pour in.

    `python -m bench library` shows the figures; 50 pages/s are a twentieth of them.
    """
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(TICK_S)
            ticks += 1

    with DemoWeb(plain_sites(20, pages=60, neighbours=1)) as web:
        pages = mannerly.acrawl(web.seeds(), processes=processes, **FAST)
        first = await anext(pages)
        ticker = asyncio.create_task(tick())
        began, count = time.monotonic(), 0
        async for page in pages:
            count += page.status == 200
        seconds = time.monotonic() - began
        ticker.cancel()

    assert first.status == 200
    assert count == 20 * 60 - 1
    assert count / seconds >= 50
    assert ticks / seconds >= 20


@PROCESSES
async def test_break_stops_and_the_next_loop_resumes(
    web: DemoWeb, processes: int, tmp_path: Path
) -> None:
    """Also at once, although the event loop closes the first one a moment after the break."""
    options = FAST | {"processes": processes, "concurrency": 8}
    seen = []
    async for page in mannerly.acrawl(web.seeds(), data_dir=tmp_path / "crawl", **options):
        seen.append(page.url)
        if len(seen) == 9:
            break

    async for page in mannerly.acrawl(web.seeds(), data_dir=tmp_path / "crawl", **options):
        seen.append(page.url)

    assert len(seen) == len(list(real_pages(web))) + 1
    assert set(seen) == set(real_pages(web))
    assert seen.count(seen[8]) == 2
    assert sum(requests_of(web).values()) <= len(seen) - 1 + 8


async def test_aclosing_has_stopped_the_crawl_when_the_block_is_left(web: DemoWeb) -> None:
    """Who needs to know when it has ended uses `contextlib.aclosing`."""
    async with aclosing(mannerly.acrawl(web.seeds(), **FAST)) as pages:
        async for page in pages:
            assert page.status == 200
            break

    assert not threads()


@PROCESSES
async def test_cancelling_the_task_stops_the_crawl(web: DemoWeb, processes: int) -> None:
    """The task ends as cancelled, whether it waits for a page or works on one."""
    first = asyncio.Event()

    async def loop() -> None:
        async for _ in mannerly.acrawl(web.seeds(), processes=processes, delay=1.0, **FAST):
            first.set()

    task = asyncio.create_task(loop())
    await first.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await gone()


async def test_an_exception_comes_out_as_it_is(web: DemoWeb) -> None:
    """The error of the loop's body is not wrapped."""
    error = KeyError("mine")

    async def loop() -> None:
        async for _ in mannerly.acrawl(web.seeds(), **FAST):
            raise error

    with pytest.raises(KeyError) as caught:
        await loop()
    assert caught.value is error
    await gone()


async def test_two_crawls_at_once(web: DemoWeb) -> None:
    """Two loops in two tasks, each with its own pages."""

    async def loop(seed: str) -> list[str]:
        options = FAST | {"scope": "host"}
        return sorted([page.url async for page in mannerly.acrawl(seed, **options)])

    first, second = web.seeds()[:2]
    found = await asyncio.gather(loop(first), loop(second))

    wanted = sorted(real_pages(web))
    assert found == [[url for url in wanted if url.startswith(seed)] for seed in (first, second)]


async def test_a_plain_loop_in_a_running_event_loop(web: DemoWeb) -> None:
    """As in a notebook, whose cells run inside a loop: `crawl` needs none of its own."""
    assert asyncio.get_running_loop().is_running()

    urls = [page.url for page in mannerly.crawl(web.seeds(), max_urls=5, **FAST)]

    assert len(urls) == 5


def test_an_event_loop_that_ends_closes_an_unfinished_crawl(web: DemoWeb) -> None:
    """`asyncio.run` closes asynchronous generators, and so the crawl."""

    async def main() -> mannerly.Page:
        pages = mannerly.acrawl(web.seeds(), **FAST)
        return await anext(pages)

    page = asyncio.run(main())

    assert page.status == 200
    assert not threads()


async def test_an_unfinished_one_ends_with_its_last_reference(web: DemoWeb) -> None:
    """Garbage collection tells the event loop to close it; one never started leaves nothing."""
    never = mannerly.acrawl(web.seeds(), **FAST)
    pages = mannerly.acrawl(web.seeds(), **FAST)
    await anext(pages)
    assert threads()

    del pages, never

    await gone()


async def test_an_error_of_the_crawl_is_raised(
    web: DemoWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crawl that is in use is refused, after a moment of patience."""
    monkeypatch.setattr("mannerly.crawler.crawl.LEAVING_S", 0.1)
    with mannerly.Crawl(web.seeds(), data_dir=tmp_path / "crawl", delay=5.0, **FAST) as crawl:
        crawl.start()
        await until(lambda: crawl.status().workers)
        with pytest.raises(mannerly.StoreError, match="in use by pid"):
            async for _ in mannerly.acrawl(data_dir=tmp_path / "crawl"):
                pass
