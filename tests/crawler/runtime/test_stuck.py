"""Nothing that hangs keeps a crawl from ending, and whatever hangs is named and replaced.

Real processes that are stopped (SIGSTOP) or killed; the judges are the process table, the web's log
and the store.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import PATIENT, Crawler, kept, modest, page_requests, real_pages
from tests.harness.waiting import eventually

from mannerly.cli.endings import exit_code
from mannerly.cli.summary import Ended, summary
from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.page.long_work import BIG_BYTES
from mannerly.crawler.runtime import helpers as run_helpers
from mannerly.crawler.runtime import offload, run, supervised, supervisor
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.web.words import many
from mannerly.demo import DemoWeb, Site, plain_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mannerly.crawler.stats import Stats

pytestmark = pytest.mark.processes

ANSWER_S = 60.0  # longer than any machine stalls: waiting for it would be noticed
SOON_S = 10.0  # for what takes a second


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == pid and fields[0] != "Z":
                    found.append(int(entry.name))
    return sorted(found)


def workers() -> list[int]:
    """Return the worker processes of a crawl that this process runs."""
    return [pid for pid in children(os.getpid()) if _runs(pid, "worker_process")]


def helpers() -> list[int]:
    """Return the helpers of this process and of its workers."""
    parents = [os.getpid(), *workers()]
    return [pid for parent in parents for pid in children(parent) if _runs(pid, "helper_process")]


def _runs(pid: int, module: str) -> bool:
    with suppress(OSError):
        return module in Path(f"/proc/{pid}/cmdline").read_text()
    return False


@pytest.fixture
def meanwhile() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Run a function beside the crawl, and wait for it in the end."""
    threads: list[threading.Thread] = []

    def start(function: Callable[[], None]) -> None:
        threads.append(threading.Thread(target=function, daemon=True))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(SOON_S)


@pytest.mark.parametrize("frozen", ["worker", "helper"])
def test_two_signals_end_a_crawl_in_which_a_process_is_frozen(frozen: str, tmp_path: Path) -> None:
    """Nothing of it is left, neither the frozen process nor those that it has started."""
    big = Site(name="big", pages=40, size=BIG_BYTES + 1, disallow=())
    with (
        DemoWeb([*plain_sites(3, pages=200), big]) as web,
        Crawler(modest(processes=2), web.seeds(), tmp_path / "crawl", before=PATIENT) as crawler,
    ):
        eventually(lambda: len(crawler.everyone()) > 3)
        supervised = crawler.workers()
        grandchildren = [pid for worker in supervised for pid in children(worker)]
        for pid in supervised if frozen == "worker" else grandchildren:
            os.kill(pid, signal.SIGSTOP)
        crawler.tell_twice(signal.SIGINT)
        left = crawler.left()  # frozen processes never end by themselves

        assert left.ending == "stopped"
        eventually(lambda: not crawler.everyone(), within_s=SOON_S)


def test_one_signal_ends_a_crawl_whose_worker_is_frozen(tmp_path: Path) -> None:
    """It is not waited for longer than the grace allows, and a moment to end."""
    with (
        DemoWeb(plain_sites(3, pages=200)) as web,
        Crawler(modest(processes=2, grace_s=0.5), web.seeds(), tmp_path / "crawl") as crawler,
    ):
        eventually(lambda: len(page_requests(web.log())) > 4)
        os.kill(crawler.workers()[0], signal.SIGSTOP)
        crawler.tell(signal.SIGINT)

        assert crawler.left(within_s=5 * (0.5 + supervisor.STOP_S)).ending == "stopped"
        assert not crawler.everyone()


@pytest.mark.parametrize("processes", [1, 2])
def test_requests_under_way_are_cancelled_after_the_grace(processes: int, tmp_path: Path) -> None:
    """They stay queued, and the operator is not kept waiting for a slow server."""
    slow = Site(name="slow", latency_s=ANSWER_S, disallow=())
    settings = modest(processes=processes, timeout_s=ANSWER_S, ignore_robots=True, grace_s=0.3)

    with (
        DemoWeb([*plain_sites(1, pages=2), slow]) as web,
        Crawler(settings, web.seeds(), tmp_path / "crawl") as crawler,
    ):
        eventually(lambda: len(page_requests(web.log())) >= 3)
        told_at = crawler.tell(signal.SIGINT)
        left = crawler.left()
        took_s = time.monotonic() - told_at

    assert left.ending == "stopped"
    assert left.answer["pending"] == 1
    assert took_s < ANSWER_S / 4


def test_a_worker_without_a_sign_of_life_is_named_and_replaced(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[Callable[[], None]], None],
) -> None:
    """Its URLs are still queued, so the crawl is complete in the end."""
    monkeypatch.setattr(supervised, "SILENT_S", 1.0)
    monkeypatch.setattr(supervised, "STUCK_S", 3.0)
    frozen: list[int] = []
    told: list[str] = []

    def freeze() -> None:
        eventually(lambda: len(page_requests(web.log())) > 4)
        frozen.append(workers()[0])
        os.kill(frozen[0], signal.SIGSTOP)

    def watch(stats: Stats, _elapsed_s: float) -> None:
        told.append(stats.now.trouble or "")

    with DemoWeb(plain_sites(4, pages=20)) as web:
        meanwhile(freeze)
        result = crawl(modest(processes=2), web.seeds(), tmp_path / "crawl", watch=watch)

        assert result.ending is Ending.FINISHED
        assert any(f"worker process {frozen[0]} " in each for each in told)
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))


def test_workers_of_a_crawl_that_was_stopped_are_not_taken_for_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All processes were stopped for longer than a worker may be silent: none is replaced."""
    told: list[str] = []

    class Jumps:
        """A clock on which much time passes between any two of the first turns."""

        def __init__(self) -> None:
            self.turns = 0

        def now(self) -> float:
            self.turns = min(self.turns + 1, 20)
            return time.monotonic() + self.turns * 2 * supervised.STUCK_S

        def wall(self) -> float:
            return time.time()

    monkeypatch.setattr(supervisor, "MonotonicClock", Jumps)
    with DemoWeb(plain_sites(4, pages=10)) as web:
        result = crawl(
            modest(processes=2),
            web.seeds(),
            tmp_path / "crawl",
            watch=lambda stats, _elapsed_s: told.append(stats.now.trouble or ""),
        )

        assert result.ending is Ending.FINISHED
        assert not [words for words in told if "died" in words]
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_frozen_helper_is_replaced_and_its_page_read(
    processes: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[Callable[[], None]], None],
) -> None:
    """The page is given to another helper; not a link is lost."""
    monkeypatch.setattr(offload, "LONGEST_S", 6.0)
    monkeypatch.setattr(run_helpers, "STARTING_S", 6.0)  # it may be frozen before it has started
    monkeypatch.setenv("PYTHONPATH", _with_patience(tmp_path, 6.0))
    frozen: list[int] = []

    def freeze() -> None:
        eventually(helpers)
        frozen.append(helpers()[0])
        os.kill(frozen[0], signal.SIGSTOP)

    big = Site(name="big", pages=6, size=BIG_BYTES + 1, disallow=())
    with DemoWeb([big, *plain_sites(1, pages=2)]) as web:
        meanwhile(freeze)
        result = crawl(modest(processes=processes), web.seeds(), tmp_path / "crawl")

        assert frozen
        assert result.ending is Ending.FINISHED
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))
        assert not [page for page in kept(tmp_path / "crawl").pages if page.error]


def _with_patience(directory: Path, longest_s: float) -> str:
    """Return a path with which worker processes are less patient with their helpers."""
    (directory / "site").mkdir()
    (directory / "site" / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'mannerly.crawler.runtime.worker_process':\n"
        "            from mannerly.crawler.runtime import helpers, offload\n"
        f"            helpers.STARTING_S = offload.LONGEST_S = {longest_s}\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    return str(directory / "site")


def _kill_workers(times: int, killed: list[int]) -> None:
    while len(killed) < times:
        for pid in workers():
            if pid not in killed and len(killed) < times:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.append(pid)


def test_a_worker_that_dies_again_and_again_ends_the_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[Callable[[], None]], None],
) -> None:
    """With a reason and not with a traceback; the crawl can be resumed."""
    monkeypatch.setattr(supervisor, "RESTARTS", 1)
    with DemoWeb(plain_sites(4, pages=10)) as web:
        meanwhile(lambda: _kill_workers(4, []))
        result = crawl(modest(processes=2), web.seeds(), tmp_path / "crawl")
        resumed = crawl(modest(processes=2), [], tmp_path / "crawl")

        assert result.ending is Ending.CRASHED
        assert "died 2 times within an hour, lastly with signal 9" in (
            result.stats.now.trouble or ""
        )
        assert resumed.ending is Ending.FINISHED
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))


def test_old_deaths_are_forgiven(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[Callable[[], None]], None],
) -> None:
    """Only deaths within the last hour count; here an hour takes no time."""
    monkeypatch.setattr(supervisor, "RESTARTS", 1)
    monkeypatch.setattr(supervised, "FORGIVEN_S", 0.0)
    killed: list[int] = []
    with DemoWeb(plain_sites(4, pages=10)) as web:
        meanwhile(lambda: _kill_workers(4, killed))
        result = crawl(modest(processes=2), web.seeds(), tmp_path / "crawl")

        assert len(killed) == 4
        assert result.ending is Ending.FINISHED


@pytest.mark.parametrize("processes", [1, 2])
def test_a_page_whose_helpers_die_is_counted_and_shown(
    processes: int, tmp_path: Path, meanwhile: Callable[[Callable[[], None]], None]
) -> None:
    """Its links are missing, so the crawl does not end with exit code 0.

    If they die before they can work, the page is not blamed: then memory lacked.
    """
    is_over = threading.Event()

    def kill_helpers() -> None:
        while not is_over.is_set():
            for pid in helpers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    big = Site(name="big", pages=3, size=BIG_BYTES + 1, disallow=())
    with DemoWeb([big, *plain_sites(1, pages=3)]) as web:
        meanwhile(kill_helpers)
        result = crawl(modest(processes=processes), web.seeds(), tmp_path / "crawl")
        is_over.set()
        errors = [page.error for page in kept(tmp_path / "crawl").pages if page.error]

    assert result.unread == len(errors) > 0
    assert set(errors) <= {"crashes_parser", "no_memory"}
    assert exit_code(result) == 1
    words = " ".join(summary(Ended(result)).split())
    assert f"the links of {many(len(errors), 'page')} are missing" in words


@pytest.mark.parametrize("processes", [1, 2])
def test_a_helper_that_dies_costs_no_link(
    processes: int, tmp_path: Path, meanwhile: Callable[[Callable[[], None]], None]
) -> None:
    """Its page is read by another one."""
    killed: list[int] = []

    def kill_one() -> None:
        eventually(helpers)
        killed.append(helpers()[0])
        os.kill(killed[0], signal.SIGKILL)

    big = Site(name="big", pages=6, size=BIG_BYTES + 1, disallow=())
    with DemoWeb([big, *plain_sites(1, pages=3)]) as web:
        meanwhile(kill_one)
        result = crawl(modest(processes=processes), web.seeds(), tmp_path / "crawl")

        assert killed
        assert (result.stats.crashed, exit_code(result)) == (0, 0)
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_callback_that_holds_the_crawl_up_is_named(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is warned; requests keep their distance all the same."""
    monkeypatch.setattr(run, "LONG_CALL_S", 0.2)
    calls = 0

    def dawdle(_stats: Stats, _elapsed_s: float) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            threading.Event().wait(0.3)

    settings = modest(processes=processes, delay_s=0.1)
    with DemoWeb(plain_sites(2, pages=20)) as web:
        seeds = web.seeds()
        with pytest.warns(RuntimeWarning, match="dawdle took"):
            result = crawl(settings, seeds, tmp_path / "crawl", watch=dawdle)

    assert result.ending is Ending.FINISHED
    assert result.stats.requests.too_early == 0
