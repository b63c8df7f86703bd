"""A third store, written against the contract alone: what it takes to add one.

Shards are those of memory; the crawl itself is kept in dictionaries, and a location is `toy:NAME`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Self

from virtual.store.memory import MemoryStore
from virtual.store.memory_reader import MemoryReader, ShardData

from mannerly.crawler.store.base import StoreError, StoreInUse, StoreMissing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mannerly.crawler.control import Control
    from mannerly.crawler.model import Candidate
    from mannerly.crawler.store.base import (
        Batch,
        Committed,
        Heartbeat,
        Manifest,
        ShardOptions,
        ShardReader,
        ShardStore,
    )

SCHEME = "toy"
IMPLEMENTATION = "tests.crawler.store.toy_store:ToyCrawl"
CRAWLS: dict[str, dict[str, Any]] = {}


class ToyShard(MemoryStore):
    """A shard whose owner is entered in `owners`."""

    def __init__(self, shard: int, crawl: dict[str, Any], limit: int) -> None:
        super().__init__(
            shard, frontier_limit=limit, inboxes=crawl["inboxes"], data=crawl["shards"][shard]
        )
        self.crawl = crawl
        crawl["owners"][shard] = self

    def commit(self, batch: Batch) -> Committed:
        self.crawl["committed_at"] = time.time()
        return super().commit(batch)

    def close(self) -> None:
        if self.crawl["owners"].get(self.shard) is self:
            del self.crawl["owners"][self.shard]


class ToyCrawl:
    """`CrawlStore` in dictionaries."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.crawl = CRAWLS[location]
        self.manifest: Manifest = self.crawl["manifest"]
        self.segment_folder: Path | None = None
        self.answer_folders: Sequence[Path] = ()
        self.fleet = None

    @classmethod
    def create(cls, location: str, manifest: Manifest) -> Self:
        if location in CRAWLS:
            raise StoreError(f"{location} holds a crawl already")
        CRAWLS[location] = {
            "manifest": manifest,
            "shards": [ShardData() for _ in range(manifest.shards)],
            "inboxes": defaultdict(list, {shard: [] for shard in range(manifest.shards)}),
            "owners": {},
            "holder": None,
            "orders": {},
            "heartbeats": {},
            "committed_at": manifest.created_at,
        }
        return cls(location)

    @classmethod
    def open(cls, location: str) -> Self:
        if location not in CRAWLS:
            raise StoreMissing(f"there is no crawl in {location}")
        return cls(location)

    @classmethod
    def exists(cls, location: str) -> bool:
        return location in CRAWLS

    @classmethod
    def wipe(cls, location: str) -> None:
        if location in CRAWLS and cls(location).is_running():
            raise StoreInUse(f"{location} is in use")
        CRAWLS.pop(location, None)

    @classmethod
    def examine(cls, location: str) -> list[str]:
        cls.open(location)
        return []

    repair = examine

    def hold(self) -> None:
        if self.crawl["holder"] not in (None, self):
            raise StoreInUse(f"{self.location} is in use")
        self.crawl["holder"] = self
        self.crawl["heartbeats"].clear()

    def claim(self, shard: int, options: ShardOptions) -> ShardStore:
        if shard in self.crawl["owners"]:
            raise StoreInUse(f"shard {shard} of {self.location} is in use")
        return ToyShard(shard, self.crawl, options.frontier_limit)

    def renew(self, heartbeat: Heartbeat) -> None:
        self.crawl["heartbeats"][heartbeat.id] = heartbeat

    def retire(self, worker: str) -> None:
        self.crawl["heartbeats"].pop(worker, None)

    def workers(self) -> list[Heartbeat]:
        return list(self.crawl["heartbeats"].values()) if self.is_running() else []

    def is_running(self) -> bool:
        return bool(self.crawl["holder"] or self.crawl["owners"])

    def last_activity(self) -> float:
        return self.crawl["committed_at"]

    def read(self, shard: int) -> ShardReader:
        return MemoryReader(self.crawl["shards"][shard])

    def unread(self, shard: int) -> int:
        return len(list(self.unread_links(shard)))

    def unread_links(self, shard: int) -> Iterator[Candidate]:
        return (link for links in self.crawl["inboxes"][shard] for link in links)

    def acknowledge(self, shard: int, seq: int) -> None:
        self.crawl["shards"][shard].acknowledged.add(seq)

    def order(self, control: Control) -> int:
        number = 10 * len(self.crawl["orders"]) + 10  # numbers grow, and may have gaps
        self.crawl["orders"][number] = control
        return number

    def orders(self, *, after: int = 0) -> list[tuple[int, Control]]:
        return [pair for pair in self.crawl["orders"].items() if pair[0] > after]

    def close(self) -> None:
        if self.crawl["holder"] is self:
            self.crawl["holder"] = None
        for store in list(self.crawl["owners"].values()):
            store.close()
