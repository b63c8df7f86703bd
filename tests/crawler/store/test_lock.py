"""One owner at a time, with and without flock; looking is never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.store import create_crawl, open_crawl
from mannerly.crawler.store.contract import new_manifest
from mannerly.crawler.store.sqlite.lock import OwnerLock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

PATIENCE_S = 60

# Each program gets the directory, and begins with one of these.
WITH = {"flock": "import sys\n", "sqlite": "import sys\nsys.modules['fcntl'] = None\n"}

HOLD = """
from mannerly.crawler.store import open_crawl
from mannerly.crawler.store.base import ShardOptions
crawl = open_crawl(sys.argv[1])
crawl.hold()
store = crawl.claim(0, ShardOptions(9))
print("held", flush=True)
sys.stdin.read()
"""
TRY = """
from mannerly.crawler.store import open_crawl, wipe
from mannerly.crawler.store.base import ShardOptions, StoreInUse
crawl = open_crawl(sys.argv[1])
said = [str(crawl.is_running())]
tries = [crawl.hold, lambda: crawl.claim(0, ShardOptions(9)), lambda: wipe(sys.argv[1])]
for attempt in tries[: int(sys.argv[2])]:
    try:
        attempt()
        said.append("ok")
    except StoreInUse as error:
        said.append(str(error).rpartition(" in use by ")[2])
print(*said, sep="|")
"""
START_AND_STOP = """
from mannerly.crawler.store import open_crawl
for _ in range(20):
    crawl = open_crawl(sys.argv[1])
    crawl.hold()
    assert crawl.is_running()
    crawl.close()
print("started")
"""
LOOK = """
from pathlib import Path
from mannerly.crawler.store import open_crawl
crawl = open_crawl(sys.argv[1])
print("looking", flush=True)
while not Path(sys.argv[2]).exists():
    crawl.is_running()
print("done")
"""


@pytest.fixture(params=sorted(WITH))
def way(request: pytest.FixtureRequest) -> str:
    """How the programs lock."""
    return WITH[request.param]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_crawl(tmp_path / "crawl", new_manifest(2)).close()
    return tmp_path / "crawl"


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    stack.callback(process.wait, PATIENCE_S)
    stack.callback(process.kill)
    stack.enter_context(process.stdout)
    stack.enter_context(process.stdin)
    return process


def said(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=PATIENCE_S)[0].strip()


def test_a_held_crawl_is_refused_with_the_pid(path: Path, way: str, started: ExitStack) -> None:
    """The crawl, its shard, and wiping it."""
    holder = start(started, way + HOLD, path)
    holder.stdout.readline()

    outcome = said(start(started, way + TRY, path, 3))

    assert outcome == "|".join(["True", *[f"pid {holder.pid}"] * 3])


def test_a_killed_process_leaves_no_obstacle(path: Path, way: str, started: ExitStack) -> None:
    """Its crawl is not running, and can be held and claimed at once."""
    holder = start(started, way + HOLD, path)
    holder.stdout.readline()
    holder.kill()
    holder.wait(PATIENCE_S)

    assert said(start(started, way + TRY, path, 2)) == "False|ok|ok"


def test_a_closed_crawl_can_be_wiped(path: Path, way: str, started: ExitStack) -> None:
    """With all its locks."""
    holder = start(started, way + HOLD, path)
    holder.stdout.readline()
    holder.kill()
    holder.wait(PATIENCE_S)
    wiped = "from mannerly.crawler.store import wipe; wipe(sys.argv[1])"

    said(start(started, way + wiped, path))

    assert not path.exists()


def test_looking_never_keeps_a_crawl_from_starting(
    path: Path, way: str, started: ExitStack, tmp_path: Path
) -> None:
    """Two processes look all the time while a third starts and stops the crawl."""
    end = tmp_path / "end"
    onlookers = [start(started, way + LOOK, path, end) for _ in range(2)]
    for onlooker in onlookers:
        assert onlooker.stdout.readline() == "looking\n"

    outcome = said(start(started, way + START_AND_STOP, path))

    end.touch()
    assert outcome == "started"
    assert [said(onlooker) for onlooker in onlookers] == ["done", "done"]


@pytest.mark.parametrize("left", ["", "0\n", "99999999\n", "nobody\n"])
def test_an_owner_waits_for_one_that_only_looks(path: Path, left: str) -> None:
    """However long that one was kept from going on: the file names no process that runs."""
    fcntl = pytest.importorskip("fcntl")
    file = path / "crawl.lock"
    file.write_text(left)
    with ExitStack() as looking:
        descriptor = os.open(file, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        timer = threading.Timer(0.05, os.close, [descriptor])
        looking.callback(timer.join)
        timer.start()

        lock = OwnerLock(file, what=path, patience_s=0.0)

    assert file.read_text() == f"{os.getpid()}\n"
    lock.release()
    assert file.read_text() == ""


def test_asking_for_new_control_records_is_cheap(path: Path) -> None:
    """Every worker asks four times a second: far below a millisecond each."""
    crawl = open_crawl(path)
    crawl.orders()
    began = time.process_time()

    for _ in range(1000):
        crawl.orders(after=5)

    seconds = time.process_time() - began
    crawl.close()
    assert seconds < 1.0  # 0.05
