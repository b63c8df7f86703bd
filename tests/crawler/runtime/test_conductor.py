"""A crawl in several processes: how they come into being, and what is the same in all of them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import ForkProcess, SpawnProcess
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import kept, modest, real_pages

from mannerly.crawler.page.long_work import BIG_BYTES
from mannerly.crawler.runtime.run import Ending, crawl
from mannerly.demo import DemoWeb, Site, plain_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.process import BaseProcess
    from pathlib import Path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How children were started."""
    methods: list[str] = []
    for process in (ForkProcess, SpawnProcess):
        monkeypatch.setattr(process, "start", _noting(methods, process.start))
    return methods


def _noting(
    methods: list[str], start: Callable[[BaseProcess], None]
) -> Callable[[BaseProcess], None]:
    def noted(process: BaseProcess) -> None:
        methods.append(type(process).__name__)
        start(process)

    return noted


@contextmanager
def another_thread() -> Iterator[None]:
    """A program that does something else besides crawling."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_children_are_forked(started: list[str], tmp_path: Path) -> None:
    """They need not import anything; pages that are long to read are still read elsewhere."""
    big = Site(name="big", pages=2, size=BIG_BYTES + 1, disallow=())
    with DemoWeb([*plain_sites(3, pages=4, neighbours=1), big]) as web:
        result = crawl(modest(processes=2), web.seeds(), tmp_path / "crawl")

        assert result.ending is Ending.FINISHED
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))
    assert started[:2] == ["ForkProcess", "ForkProcess"]


def test_children_of_a_program_with_threads_are_spawned(started: list[str], tmp_path: Path) -> None:
    """A fork would copy what another thread has locked, and nobody would unlock it."""
    with another_thread(), DemoWeb(plain_sites(3, pages=4, neighbours=1)) as web:
        result = crawl(modest(processes=2), web.seeds(), tmp_path / "crawl")

        assert result.ending is Ending.FINISHED
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))
    assert started == ["SpawnProcess", "SpawnProcess"]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_crawl_runs_in_any_thread(processes: int, tmp_path: Path) -> None:
    """A program keeps its main thread, and with it the signals, for itself."""
    with DemoWeb(plain_sites(3, pages=4, neighbours=1)) as web:
        with ThreadPoolExecutor(1) as pool:
            settings = modest(processes=processes)
            result = pool.submit(crawl, settings, web.seeds(), tmp_path / "crawl").result()

        assert result.ending is Ending.FINISHED
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))
