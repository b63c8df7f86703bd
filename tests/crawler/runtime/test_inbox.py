"""A worker is idle only when its inboxes are empty, too: a link is always somewhere."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from tests.crawler.shard.shard_world import brisk

from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Candidate
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.worker import Worker
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, Manifest, ShardOptions

if TYPE_CHECKING:
    from pathlib import Path

SHARDING = Sharding(2)
HERE, THERE = (
    next(
        host
        for host in (f"{letter}.example" for letter in "abcdefgh")
        if SHARDING.shard_of(host) == number
    )
    for number in (0, 1)
)


def test_a_worker_with_an_unread_inbox_is_not_idle(tmp_path: Path) -> None:
    """A link that another process has delivered is work, although this one has not looked yet."""
    manifest = Manifest.new(seeds=[f"http://{HERE}/"], settings={}, shards=2, created_at=0.0)
    link = Candidate(f"http://{THERE}/linked", THERE, 1, 0, f"http://{HERE}/")
    with closing(create_crawl(str(tmp_path / "crawl"), manifest)) as store:
        with closing(store.claim(0, ShardOptions(frontier_limit=9))) as other:
            other.commit(Batch(outgoing=[(1, link)]))
            worker = Worker(store, brisk(), [1], PageBudget(0), is_resumed=False)
            before = worker.is_idle
            other.deliver()
        after = worker.is_idle
        worker.close()

    assert (before, after) == (True, False)
