"""A process that is killed while it brings URLs back: each of them comes back once."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.checkup import examine
from tests.crawler.store.killed import KILLED_AT

from mannerly.crawler.control import RetryUrls
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.store.contract import START, candidate, offer, page
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

URLS = 6
CHILD = (
    KILLED_AT
    + """
from pathlib import Path
from mannerly.crawler.store.base import ShardOptions
from mannerly.crawler.store.sqlite.shard import SqliteStore

with SqliteStore(Path(sys.argv[1]), 0, ShardOptions(99), shards=1) as store:
    while store.counts().retries:
        store.bring_back(2)
"""
)


def opened(directory: Path) -> SqliteStore:
    return SqliteStore(directory, 0, ShardOptions(99), shards=1)


def prepared(directory: Path) -> Path:
    """A shard with failed and given-up URLs, and the order to bring them back."""
    directory.mkdir()
    create_shard(directory, 0, shards=1)
    with opened(directory) as store:
        entries = store.commit(offer(candidate(f"/{n}") for n in range(URLS))).new
        store.commit(
            Batch(
                pages=[(each, page(each, status=None, error="dns")) for each in entries[:3]],
                dropped=[(each, "host_retired: x") for each in entries[3:]],
            )
        )
        store.commit(Batch(retries=[RetryUrls()]))
    return directory


def test_a_kill_at_any_statement_costs_no_url(tmp_path: Path) -> None:
    """The next owner finishes the order, and every URL is queued once."""
    kills = 0
    for number in range(20, 400, 12):
        directory = prepared(tmp_path / str(number))
        command = [sys.executable, "-c", CHILD, str(directory), str(number)]
        killed = subprocess.run(command, check=False, timeout=60)
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL
        kills += 1
        with opened(directory) as store:
            while store.counts().retries:
                store.bring_back(2)
            queued = store.queued("a.example", after=START, limit=99)

            assert len({entry.url for entry in queued}) == len(queued) == URLS
            assert list(store.pages()) == list(store.given_up()) == []
        assert examine(directory, 0) == []

    assert kills > 3
