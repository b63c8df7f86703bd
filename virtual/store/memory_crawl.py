"""Whole crawls in this process: `memory:NAME`.

A crawl lives until `wipe` or the end of the process, and other processes cannot see it: it runs in
one process only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from mannerly.crawler.store.base import StoreError, StoreInUse, StoreMissing

from .memory import MemoryStore
from .memory_reader import MemoryReader, ShardData

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mannerly.crawler.control import Control
    from mannerly.crawler.model import Candidate
    from mannerly.crawler.store.base import Batch, Committed, Heartbeat, Manifest, ShardOptions
    from mannerly.crawler.store.fleet import Fleet

    from .memory import Inboxes


class DatedStore(MemoryStore):
    """A store of a `MemoryCrawl`, which can tell when it was last written to."""

    def commit(self, batch: Batch) -> Committed:
        self._data.committed_at = time.time()
        return super().commit(batch)


@dataclass(slots=True, eq=False)
class CrawlData:
    """Everything that is kept of a crawl."""

    manifest: Manifest
    shards: list[ShardData]
    inboxes: Inboxes
    orders: list[Control] = field(default_factory=list)
    heartbeats: dict[str, Heartbeat] = field(default_factory=dict)
    holder: MemoryCrawl | None = None


crawls: dict[str, CrawlData] = {}  # by location, for the whole process


class MemoryCrawl:
    """`CrawlStore` in memory; every `open` of a name sees the same crawl."""

    def __init__(self, location: str, crawl: CrawlData) -> None:
        self.location = location
        self.manifest = crawl.manifest
        self.segment_folder: Path | None = None
        self.answer_folders: Sequence[Path] = ()
        self.fleet: Fleet | None = None  # one run at a time
        self._crawl = crawl
        self._claimed: list[MemoryStore] = []

    @classmethod
    def create(cls, location: str, manifest: Manifest) -> Self:
        """Create a crawl under a name that is not in use."""
        if location in crawls:
            raise StoreError(f"{location} holds a crawl already: resume it, or start over")
        shards = range(manifest.shards)
        crawls[location] = CrawlData(
            manifest, [ShardData() for _ in shards], {n: [] for n in shards}
        )
        return cls(location, crawls[location])

    @classmethod
    def open(cls, location: str) -> Self:
        """Open a crawl of this process."""
        if location not in crawls:
            raise StoreMissing(f"there is no crawl in {location}")
        return cls(location, crawls[location])

    @classmethod
    def exists(cls, location: str) -> bool:
        """Return whether there is a crawl under this name."""
        return location in crawls

    @classmethod
    def wipe(cls, location: str) -> None:
        """Forget a crawl."""
        if location in crawls:
            if cls(location, crawls[location]).is_running():
                raise StoreInUse(f"{location} is in use by this process")
            del crawls[location]

    @classmethod
    def examine(cls, location: str) -> list[str]:
        """Return nothing: there is no file that can be damaged."""
        cls.open(location)
        return []

    repair = examine

    def __repr__(self) -> str:
        return f"<MemoryCrawl {self.location} of {self.manifest.shards} shards>"

    def hold(self) -> None:
        """Become the one run of this crawl, until `close`."""
        if self._crawl.holder not in (None, self):
            raise StoreInUse(f"{self.location} is in use by this process")
        if self._crawl.holder is None:
            self._crawl.holder = self
            self._crawl.heartbeats.clear()

    def claim(self, shard: int, options: ShardOptions) -> MemoryStore:
        """Become the owner of a shard, until its store is closed."""
        data = self._crawl.shards[shard]
        if data.owner is not None:
            raise StoreInUse(f"shard {shard} of {self.location} is in use by this process")
        store = DatedStore(
            shard, frontier_limit=options.frontier_limit, inboxes=self._crawl.inboxes, data=data
        )
        self._claimed.append(store)
        return store

    def renew(self, heartbeat: Heartbeat) -> None:
        """Show what a worker does."""
        self._crawl.heartbeats[heartbeat.id] = heartbeat

    def retire(self, worker: str) -> None:
        """Take a worker's heartbeat away: it has ended."""
        self._crawl.heartbeats.pop(worker, None)

    def workers(self) -> list[Heartbeat]:
        """Return the heartbeats of the workers; none if the crawl does not run."""
        return sorted(self._crawl.heartbeats.values()) if self.is_running() else []

    def is_running(self) -> bool:
        """Return whether the crawl or one of its shards is held."""
        shards = self._crawl.shards
        return self._crawl.holder is not None or any(shard.owner for shard in shards)

    def last_activity(self) -> float:
        """Return the wall time of the last commit, or of the crawl's beginning."""
        written = max(shard.committed_at for shard in self._crawl.shards)
        return written or self.manifest.created_at

    def read(self, shard: int) -> MemoryReader:
        """Open a reader beside the shard's owner."""
        return MemoryReader(self._crawl.shards[shard])

    def unread(self, shard: int) -> int:
        """Return how many links wait in a shard's inbox."""
        return sum(len(links) for links in self._crawl.inboxes[shard])

    def unread_links(self, shard: int) -> Iterator[Candidate]:
        """Yield the links that wait in a shard's inbox."""
        for links in list(self._crawl.inboxes[shard]):
            yield from links

    def acknowledge(self, shard: int, seq: int) -> None:
        """Note that the program is done with a page."""
        self._crawl.shards[shard].acknowledged.add(seq)

    def order(self, control: Control) -> int:
        """Append a control record; return its number."""
        self._crawl.orders.append(control)
        return len(self._crawl.orders)

    def orders(self, *, after: int = 0) -> list[tuple[int, Control]]:
        """Return the control records with larger numbers, in order."""
        return list(enumerate(self._crawl.orders[after:], after + 1))

    def close(self) -> None:
        """Release the crawl and its claimed shards; closing twice is harmless."""
        for store in self._claimed:
            store.close()
        if self._crawl.holder is self:
            self._crawl.holder = None
