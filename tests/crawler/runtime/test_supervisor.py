"""A crawl in several processes: they start from any program, on any system, and work together."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import Crawler, is_still, kept, modest, page_requests, real_pages
from tests.harness.commands import PYTHON, ROOT, environment, run
from tests.harness.waiting import eventually

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.page.long_work import BIG_BYTES
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.store import open_crawl
from mannerly.demo import DemoWeb, Site, plain_sites

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.processes

# A program without a main guard.
PROGRAM = """
from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.settings import CrawlSettings
from mannerly.politeness import Settings
settings = CrawlSettings(
    politeness=Settings(strategy="fixed", delay_s=0.05, max_rate="unlimited"),
    processes=2, seeding="none",
)
result = crawl(settings, {seeds!r}, "crawl")
print(result.ending.value, result.stats.fetched)
"""
TRAP = "raise SystemExit('a file of the working directory was imported')"


def ran(command: Sequence[str], directory: Path, **options: object) -> str:
    """Run Python in a directory; return what it printed."""
    done = run(*command, program=PYTHON, cwd=directory, **options)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_several_processes_fetch_every_page_once(tmp_path: Path) -> None:
    """Pages that are long to read are read by helpers of their workers."""
    big = Site(name="big", pages=2, size=BIG_BYTES + 1, disallow=())
    with DemoWeb([*plain_sites(3, pages=4, neighbours=1), big]) as web:
        result = crawl(modest(processes=2), web.seeds(), tmp_path / "crawl")

        assert result.ending is Ending.FINISHED
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_crawl_runs_in_any_thread(processes: int, tmp_path: Path) -> None:
    """A program keeps its main thread, and with it the signals, for itself."""
    before = threading.active_count()
    with DemoWeb(plain_sites(3, pages=4, neighbours=1)) as web:
        with ThreadPoolExecutor(1) as pool:
            settings = modest(processes=processes)
            result = pool.submit(crawl, settings, web.seeds(), tmp_path / "crawl").result()

        assert result.ending is Ending.FINISHED
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))
    assert threading.active_count() == before


@pytest.mark.parametrize("how", ["script", "-c", "standard input"])
def test_any_program_can_start_processes(how: str, tmp_path: Path) -> None:
    """No main guard is needed, and no file: a REPL and a notebook have none."""
    with DemoWeb(plain_sites(2, pages=3)) as web:
        program = PROGRAM.format(seeds=web.seeds())
        if how == "script":
            (tmp_path / "program.py").write_text(program)
            printed = ran(["program.py"], tmp_path)
        elif how == "-c":
            printed = ran(["-c", program], tmp_path)
        else:
            printed = ran(["-i", "-q"], tmp_path, input=program.replace("    ", " ") + "\n")

    assert "finished 6" in printed


def test_no_process_imports_a_file_of_the_working_directory(tmp_path: Path) -> None:
    """`mannerly crawl` in a directory of foreign files runs none of them."""
    for name in ("multiprocessing", "mannerly", "json", "socket", "signal", "pickle", "apsw"):
        (tmp_path / f"{name}.py").write_text(TRAP)
    with DemoWeb(plain_sites(2, pages=3)) as web:
        printed = ran(["-P", "-c", PROGRAM.format(seeds=web.seeds())], tmp_path)

    assert printed.split() == ["finished", "6"]


# Deleted before anything of ours is imported, in every process: each runs it when it starts.
POOR = """
import os, select, sys
for module, names in ((os, ("fork", "forkpty", "register_at_fork")), (select, {select!r})):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
for name in {modules!r}:
    sys.modules[name] = None
os.write(2, b"poor\\n")
"""


@pytest.mark.parametrize("lack", ["fork", "fcntl", "epoll"])
def test_what_other_systems_lack_is_not_needed(lack: str, tmp_path: Path) -> None:
    """Windows has neither fork nor fcntl, macOS has no epoll: children start all the same."""
    if lack == "epoll" and find_spec("mannerly.crawler.fetch.poller") is None:
        pytest.skip("the fetcher needs epoll")
    select = ("epoll", "poll", "devpoll") if lack == "epoll" else ()
    modules = ("fcntl",) if lack == "fcntl" else ()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(POOR.format(select=select, modules=modules))
    path = os.pathsep.join([str(tmp_path / "site"), str(ROOT / "src")])

    with DemoWeb(plain_sites(2, pages=3)) as web:
        words = ("-c", PROGRAM.format(seeds=web.seeds()))
        done = run(*words, program=PYTHON, cwd=tmp_path, env=environment(PYTHONPATH=path))

    assert done.stdout.split() == ["finished", "6"], done.stderr
    assert done.stderr.split() == ["poor"] * 3, "this process and two workers"


def test_workers_show_their_heartbeats(tmp_path: Path) -> None:
    """A heartbeat for each worker while it works, and none in the end."""
    with DemoWeb(plain_sites(4, pages=40)) as web:
        with Crawler(modest(processes=2), web.seeds(), tmp_path / "crawl") as crawler:
            eventually(lambda: len(page_requests(web.log())) > 8)
            store = open_crawl(tmp_path / "crawl")
            eventually(lambda: sum(heartbeat.fetched for heartbeat in store.workers()) > 0)
            heartbeats, pids = store.workers(), crawler.workers()
            crawler.tell(signal.SIGINT)
            crawler.left()
        left = store.workers()
        store.close()

    assert sorted(heartbeat.pid for heartbeat in heartbeats) == sorted(pids)
    assert sorted(heartbeat.shards for heartbeat in heartbeats) == [[0], [1]]
    assert left == []


def test_workers_of_a_supervisor_that_was_stopped_start_nothing(tmp_path: Path) -> None:
    """Ctrl-Z stops the process in the foreground; the others must not go on without it."""
    settings = modest(processes=2, delay_s=0.1)
    with (
        DemoWeb(plain_sites(4, pages=200)) as web,
        Crawler(settings, web.seeds(), tmp_path / "crawl") as crawler,
    ):
        eventually(lambda: len(page_requests(web.log())) > 8)
        crawler.tell(signal.SIGSTOP)
        eventually(lambda: is_still(web), within_s=20.0)
        crawler.tell(signal.SIGCONT)
        before = len(web.log())
        eventually(lambda: len(web.log()) > before + 8)
        crawler.tell(signal.SIGINT)
        left = crawler.left()

    assert left.ending == "stopped"
