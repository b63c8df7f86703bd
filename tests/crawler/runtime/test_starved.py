"""A machine that lacks descriptors, memory or disk space slows a crawl down, and loses no page."""

from __future__ import annotations

import json
import os
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import Crawler, kept, modest, page_requests, real_pages
from tests.crawler.shard.shard_world import ShardWorld, brisk
from tests.harness.commands import PYTHON, ROOT, SOURCE_PATH, environment, run
from tests.harness.waiting import eventually
from virtual.fetcher import FakeFetcher, FakeReply, VirtualClock

from mannerly.cli import terminal
from mannerly.crawler.crawl import run_crawl
from mannerly.crawler.model import LocalError
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.runtime.machine import FULL_PATIENCE_S
from mannerly.crawler.store.base import StoreFull
from mannerly.demo import DemoWeb, Site, plain_sites
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.model import Request

resource = pytest.importorskip("resource")

COMMAND = (
    *("crawl", "--seeding-strategy", "none", "--strategy", "fixed", "--delay", "0.02"),
    *("--max-rate", "unlimited"),
)

# Crawls with so many MB of address space more than it has when it begins to fetch.
SHORT_OF_MEMORY = """
import json, resource, sys
from pathlib import Path
from mannerly.crawler.crawl import run_crawl
from tests.crawler.runtime.harness import modest
megabytes, seeds, data_dir = json.loads(sys.argv[1])
told = set()
def watch(stats, _elapsed_s):
    if not told:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20), resource.RLIM_INFINITY))
    told.add(str(stats.now.trouble))
run_crawl(modest(concurrency=64, delay_s=0.01, duration_s=3.0), seeds, data_dir, watch=watch)
print(json.dumps(sorted(told)))
"""

# Lets every worker process lack memory in its first turn.
NO_MEMORY_FOR_WORKERS = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "mannerly.crawler.runtime.worker_process":
            from mannerly.crawler.runtime.engine import Engine
            def turn(self, longest_s=0.0):
                raise MemoryError
            Engine.turn = turn
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.processes
@pytest.mark.parametrize("processes", ["1", "2"])
def test_few_descriptors_mean_fewer_requests_at_once(processes: str, tmp_path: Path) -> None:
    """The crawl says so, does not hang, and is complete."""
    with DemoWeb(plain_sites(20, pages=6)) as web:
        words = ["--processes", processes, "--data-dir", str(tmp_path / "crawl")]
        few = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (48, 48))
        done = run(*COMMAND, *words, *web.seeds(), preexec_fn=few)

        assert done.returncode == 0, done.stderr
        assert "only 48 files may be open at once" in done.stderr
        assert sorted(kept(tmp_path / "crawl").urls) == sorted(real_pages(web))


@pytest.mark.processes
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_lack_of_memory_is_no_error_of_a_page(tmp_path: Path) -> None:
    """What could not be received is still queued, and the operator is told why it waits."""
    big = Site(name="big", pages=2, size=9_000_000, disallow=())
    with DemoWeb([*plain_sites(4, pages=10), big]) as web:
        order = json.dumps([3, web.seeds(), str(tmp_path / "crawl")])
        path = f"{SOURCE_PATH}{os.pathsep}{ROOT}"
        words = ("-c", SHORT_OF_MEMORY, order)
        done = run(*words, program=PYTHON, env=environment(PYTHONPATH=path))
        left = kept(tmp_path / "crawl")

        assert done.returncode == 0, done.stderr
        assert "out of memory" in done.stdout
        assert {page.error for page in left.pages} == {None}
        assert left.pending > 0


@pytest.mark.processes
@pytest.mark.parametrize("processes", [1, 2])
def test_a_data_directory_that_is_removed_ends_the_crawl(processes: int, tmp_path: Path) -> None:
    """Open files outlive their directory: the crawl would go on and keep nothing."""
    with (
        DemoWeb(plain_sites(4, pages=500)) as web,
        Crawler(modest(processes=processes), web.seeds(), tmp_path / "crawl") as crawler,
    ):
        eventually(lambda: len(page_requests(web.log())) > 8)
        shutil.rmtree(tmp_path / "crawl")
        left = crawler.left()

    assert left.answer["error"] in ("StoreError", "StoreMissing")
    assert "was removed while the crawl was running" in left.answer["text"]


def test_a_lack_of_memory_has_one_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """2, as for other things that the machine lacks, wherever the memory was needed."""
    with pytest.raises(terminal.click.exceptions.Exit) as ended, terminal.failing_clearly():
        raise MemoryError

    assert ended.value.exit_code == 2
    assert "lower --memory-limit or --concurrency" in capsys.readouterr().err


@pytest.mark.processes
def test_workers_without_memory_end_the_run_with_that_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is replaced; when they die too often, it is a lack of memory and not a crash."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(NO_MEMORY_FOR_WORKERS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    told: list[str] = []

    with DemoWeb(plain_sites(4, pages=2)) as web, pytest.raises(MemoryError):
        run_crawl(
            modest(processes=2),
            web.seeds(),
            tmp_path / "crawl",
            watch=lambda stats, _elapsed_s: told.append(stats.now.trouble or ""),
        )

    assert any("died with a lack of memory and is replaced" in each for each in told)


class _Moments:
    """The clock of an engine."""

    def __init__(self) -> None:
        self.clock = VirtualClock()

    def now(self) -> float:
        return self.clock.now

    def wall(self) -> float:
        return self.clock.now


def test_two_lacks_of_descriptors_with_time_between_are_two() -> None:
    """The patience of five minutes begins anew if nothing lacked for half a minute."""
    time, lacks = _Moments(), [True]
    world = ShardWorld(
        *(f"https://a.example/{number}" for number in range(3)), settings=brisk(ignore_robots=True)
    )
    lack = FakeReply(error=LocalError.NO_DESCRIPTORS, latency_s=0.0)
    slow = FakeReply(error=ErrorKind.TIMEOUT, latency_s=4.0)
    fetcher = FakeFetcher(time.clock, lambda _request: lack if lacks[0] else slow)
    engine = Engine(fetcher, [world.shard], time, PageBudget(None), concurrency=4)

    engine.turn()
    engine.is_paused = True  # the operator makes room
    time.clock.advance(FULL_PATIENCE_S + 1.0)
    engine.is_paused = False
    for _ in range(40):
        engine.turn()
    lacks[0] = False
    for _ in range(200):
        engine.turn()
    fetcher.close()

    assert engine.is_idle
    assert world.stats.pages == 3


def test_a_lack_that_does_not_end_ends_the_run() -> None:
    """After five minutes, with what to do."""
    time = _Moments()
    world = ShardWorld("https://a.example/", settings=brisk(ignore_robots=True))
    lack = FakeReply(error=LocalError.NO_DESCRIPTORS, latency_s=0.0)
    fetcher = FakeFetcher(time.clock, lambda _request: lack)
    engine = Engine(fetcher, [world.shard], time, PageBudget(None), concurrency=4)

    def run() -> None:
        while time.now() < 2 * FULL_PATIENCE_S:
            engine.turn()

    with pytest.raises(OSError, match="out of file descriptors"):
        run()
    fetcher.close()

    assert FULL_PATIENCE_S <= time.now() < FULL_PATIENCE_S + 10.0


def test_a_refusal_that_came_while_the_process_was_stopped_is_read_first() -> None:
    """The next page is due by then, and would be sent inside the Retry-After."""
    time, asked = _Moments(), []

    def answer(request: Request) -> FakeReply:
        asked.append(time.now())
        headers = {"retry-after": "30"} if len(asked) == 1 else {}
        return FakeReply(429 if headers else 200, b"", headers, latency_s=0.05)

    world = ShardWorld(
        "https://a.example/", "https://a.example/1", settings=brisk(ignore_robots=True)
    )
    fetcher = FakeFetcher(time.clock, answer)
    engine = Engine(fetcher, [world.shard], time, PageBudget(None), concurrency=4)

    engine.turn(0.0)
    time.clock.advance(5.0)  # stopped: the answer waits in the socket
    while not engine.is_idle:
        engine.turn()
    fetcher.close()

    assert len(asked) == 3
    assert asked[1] - asked[0] >= 30.0


def test_a_disk_that_stays_full_is_no_damage(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and what to do: the state is sound, and the same command resumes."""
    with pytest.raises(terminal.click.exceptions.Exit) as ended, terminal.failing_clearly():
        raise StoreFull("no room to write shard-0.db: free some disk space")

    assert ended.value.exit_code == 2
    assert "free some disk space, and run the same command again" in capsys.readouterr().err
