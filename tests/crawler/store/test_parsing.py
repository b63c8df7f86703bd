"""The page that kills its reader is known after the kill."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.store.contract import candidate, enter, new_manifest, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.crawler.store.base import CrawlStore

OPTIONS = ShardOptions(frontier_limit=9)
KILLED = """
import os, signal, sys
from mannerly.crawler.store import open_crawl
from mannerly.crawler.store.base import ShardOptions
store = open_crawl(sys.argv[1]).claim(0, ShardOptions(9))
store.parsing(int(sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[CrawlStore]:
    crawl = create_crawl(tmp_path / "crawl", new_manifest())
    yield crawl
    crawl.close()


def kill_while_parsing(crawl: CrawlStore, seq: int) -> None:
    command = [sys.executable, "-c", KILLED, crawl.location, str(seq)]
    assert subprocess.run(command, check=False, timeout=60).returncode == -9


@pytest.mark.processes
def test_every_kill_is_counted_until_the_page_is_committed(crawl: CrawlStore) -> None:
    """Whatever else was committed in between."""
    store = crawl.claim(0, OPTIONS)
    deadly, other = enter(store, candidate("/deadly"), candidate("/other"))
    store.close()
    counted = []
    for _ in range(2):
        kill_while_parsing(crawl, deadly.seq)
        store = crawl.claim(0, OPTIONS)
        counted.append(dict(store.suspects))
        store.commit(Batch(found=[candidate("/more")]))
        store.close()

    store = crawl.claim(0, OPTIONS)
    store.commit(Batch(pages=[(other, page(other))]))
    kept = dict(store.suspects)
    record = page(deadly, status=None, error="crash")
    store.commit(Batch(pages=[(deadly, record)]))

    assert counted == [{deadly.seq: 1}, {deadly.seq: 2}]
    assert kept == {deadly.seq: 2}
    assert dict(store.suspects) == {}


def test_a_lost_or_foreign_note_is_no_obstacle(crawl: CrawlStore, tmp_path: Path) -> None:
    """It is made anew: it holds nothing that cannot be done without."""
    note = tmp_path / "crawl" / "shard-0.parsing"
    for damage in (
        note.unlink,
        lambda: note.write_bytes(b""),
        lambda: note.write_bytes(b"long" * 9),
    ):
        damage()
        with crawl.claim(0, OPTIONS) as store:
            assert dict(store.suspects) == {}


def test_noting_a_page_is_cheap(crawl: CrawlStore) -> None:
    """It is done for every page: no system call, some hundred nanoseconds."""
    with crawl.claim(0, OPTIONS) as store:
        began = time.process_time()
        for number in range(100_000):
            store.parsing(number)
        seconds = time.process_time() - began
        store.parsing(0)

    assert seconds / 100_000 < 5e-6
