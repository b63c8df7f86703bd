"""Control records and worker heartbeats, when the disk or another process is in the way."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest

from mannerly.crawler.control import Pause
from mannerly.crawler.store import create_crawl, open_crawl
from mannerly.crawler.store.base import Heartbeat, StoreError
from mannerly.crawler.store.contract import new_manifest

if TYPE_CHECKING:
    from pathlib import Path

CARD = Heartbeat("w1", "here", 1, [0], 0, 0.0)
NO_ROOM = """
import resource, signal, sys
from mannerly.crawler.control import Pause
from mannerly.crawler.store import open_crawl
from mannerly.crawler.store.base import StoreFull, Heartbeat
crawl = open_crawl(sys.argv[1])
crawl.orders()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
crawl.hold()
crawl.renew(Heartbeat("w1", "here", 1, [0], 0, 0.0, "the disk is full"))
crawl.retire("w1")
try:
    crawl.order(Pause())
except StoreFull as error:
    print(error)
crawl.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_crawl(tmp_path / "crawl", new_manifest()).close()
    return tmp_path / "crawl"


@pytest.mark.processes
def test_a_full_disk_stops_no_worker(path: Path) -> None:
    """A heartbeat may be lost; a control record is refused, so that its sender knows."""
    pytest.importorskip("resource")
    command = [sys.executable, "-c", NO_ROOM, str(path)]

    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert "free some disk space" in done.stdout


def test_a_worker_does_not_wait_for_another_writer(path: Path) -> None:
    """A heartbeat that cannot be written at once is left for the next time."""
    other = apsw.Connection(str(path / "control.db"))
    other.execute("BEGIN IMMEDIATE")
    with closing(open_crawl(path)) as crawl, closing(other):
        began = time.monotonic()
        crawl.renew(CARD)

        assert time.monotonic() - began < 2


@pytest.mark.processes
def test_a_sender_waits_for_another_writer(path: Path) -> None:
    """A control record is written when the other one is done."""
    program = """
import sys, time, apsw
other = apsw.Connection(sys.argv[1])
other.execute("BEGIN IMMEDIATE")
print(flush=True)
time.sleep(0.5)
other.execute("COMMIT")
"""
    command = [sys.executable, "-c", program, str(path / "control.db")]
    with (
        closing(open_crawl(path)) as crawl,
        subprocess.Popen(command, stdout=subprocess.PIPE) as other,
    ):
        other.stdout.readline()

        assert crawl.order(Pause()) == 1


def test_a_record_of_a_later_version_is_refused_with_what_to_do(path: Path) -> None:
    """It may be an order to stop: it is not passed over."""
    other = apsw.Connection(str(path / "control.db"))
    other.execute("""INSERT INTO orders (record) VALUES ('{"order": "dance"}')""")
    other.close()

    with (
        closing(open_crawl(path)) as crawl,
        pytest.raises(StoreError, match=r"cannot read.*use the version that wrote it"),
    ):
        crawl.orders()
