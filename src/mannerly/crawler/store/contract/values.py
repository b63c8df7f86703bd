"""Open stores for the tests of the suite, and values for them that differ where a test says so."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from mannerly.crawler.model import Candidate, PageRecord
from mannerly.crawler.store import create_crawl, open_crawl
from mannerly.crawler.store.base import Batch, Counts, Manifest, ShardOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.model import Entry
    from mannerly.crawler.store.base import CrawlStore, ShardStore


OPTIONS = ShardOptions(frontier_limit=1000)


class Opening:
    """Opens crawls and shards, and closes them after the test."""

    def setup_method(self) -> None:
        """Begin a test (called by pytest)."""
        self._opened = ExitStack()

    def teardown_method(self) -> None:
        """Close everything that the test has opened (called by pytest)."""
        self._opened.close()

    def create(self, location: str, *, shards: int = 1) -> CrawlStore:
        """Create a crawl."""
        crawl = create_crawl(location, new_manifest(shards))
        self._opened.callback(crawl.close)
        return crawl

    def open(self, location: str) -> CrawlStore:
        """Open a crawl that was created before."""
        crawl = open_crawl(location)
        self._opened.callback(crawl.close)
        return crawl

    def stores(
        self, location: str, shards: int = 1, *, frontier_limit: int = 1000
    ) -> list[ShardStore]:
        """Create a crawl, and claim all its shards."""
        crawl = self.create(location, shards=shards)
        options = ShardOptions(frontier_limit)
        return [crawl.claim(shard, options) for shard in range(shards)]

    def store(self, location: str) -> ShardStore:
        """Create a crawl of one shard, and claim that."""
        return self.stores(location)[0]


START = (-1, -1)  # the cursor before a host's first entry


def candidate(
    path: str = "/", host: str = "a.example", *, priority: int = 1, depth: int = 1, hops: int = 0
) -> Candidate:
    """Return a link to a page of a host."""
    return Candidate(f"https://{host}{path}", host, depth, priority, f"https://{host}/", hops)


def offer(candidates: Iterable[Candidate]) -> Batch:
    """Return a batch that only offers URLs."""
    return Batch(found=list(candidates))


def enter(store: ShardStore, *candidates: Candidate) -> list[Entry]:
    """Commit candidates; return the new entries."""
    return store.commit(offer(candidates)).new


def page(entry: Entry, *, status: int | None = 200, error: str | None = None) -> PageRecord:
    """Return the record of a page, with a value in nearly every field."""
    return PageRecord(
        url=entry.url,
        status=status,
        depth=entry.depth,
        parent=entry.parent,
        title="Ein schöner Titel – \U0001f600",
        content_type="text/html",
        bytes=1234,
        latency_ms=12.5,
        fetched_at=1_800_000_000.25,
        attempts=entry.attempts + 1,
        links=7,
        canonical=None,
        redirect_to=None,
        error=error,
        host=entry.host,
        digest="00ff",
        cache_status="HIT",
        age=3,
        total_ms=20.5,
        noindex=True,
    )


def counts(**changed: int) -> Counts:
    """Return totals that are zero but for these."""
    zero = dict.fromkeys(Counts.__slots__, 0)
    return Counts(**(zero | changed))


def new_manifest(shards: int = 1) -> Manifest:
    """Return the manifest of a crawl."""
    return Manifest.new(
        seeds=["https://a.example/", "https://b.example/ä"],
        settings={"scope": "host", "include": ["*"], "max_depth": None, "delay_s": 0.5},
        shards=shards,
        created_at=1_800_000_000.5,
    )
