"""A worker is idle only when its inboxes are empty: links of other shards are work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crawler.runtime.harness import modest

from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.coordinator import FixedShards
from mannerly.crawler.runtime.worker import Worker
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, Manifest, ShardOptions
from mannerly.crawler.store.contract.values import candidate

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = ShardOptions(frontier_limit=1000)


def test_a_worker_with_links_in_its_inbox_is_not_idle(tmp_path: Path) -> None:
    """They were delivered by another process, and the worker has not looked yet."""
    settings = modest()
    owner = Sharding(2).shard_of("a.example")  # of the seed: the other shard has nothing to do
    manifest = Manifest.new(
        seeds=["https://a.example/"], settings={}, shards=2, created_at=1_800_000_000.0
    )
    store = create_crawl(tmp_path / "crawl", manifest)
    worker = Worker(store, settings, FixedShards([1 - owner], PageBudget(None)), is_resumed=False)
    sender = store.claim(owner, OPTIONS)

    nothing = worker.coordinator.is_finished
    sender.commit(Batch(outgoing=[(1 - owner, candidate("/x", host="b.example"))]))
    sender.pass_links(1)
    delivered = worker.coordinator.is_finished

    sender.close()
    worker.close()
    store.close()
    assert (nothing, delivered) == (True, False)
