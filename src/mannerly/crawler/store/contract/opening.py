"""Open stores for the tests of the suite."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from mannerly.crawler.store import create_crawl, open_crawl
from mannerly.crawler.store.base import ShardOptions

from .values import new_manifest

if TYPE_CHECKING:
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
