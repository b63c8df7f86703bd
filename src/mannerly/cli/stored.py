"""A stored crawl as the commands that look at it see it, wherever it is kept.

Readers stand beside the owner, so all of this works while the crawl runs. A location without a
crawl is the user's mistake (exit 2); a crawl that cannot be read is damage (exit 4).
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple, NoReturn

import typer

from .terminal import fail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import CrawlStore, Manifest, ShardReader

Location = Annotated[str, typer.Argument(metavar="DIR", show_default=False)]
"""The argument that names a crawl: a directory, or SCHEME:REST for another store."""


class StoredCrawl(NamedTuple):
    """A crawl, and a reader for each of its shards."""

    store: CrawlStore
    readers: tuple[ShardReader, ...]

    @property
    def manifest(self) -> Manifest:
        """The identity, seeds and settings of the crawl."""
        return self.store.manifest

    def shard_of(self, host: str) -> int:
        """Return the shard that has everything about a host."""
        from mannerly.crawler.frontier.sharding import Sharding

        return Sharding(len(self.readers)).shard_of(host)

    def reader_of(self, host: str) -> ShardReader:
        """Return the reader of that shard."""
        return self.readers[self.shard_of(host)]


@contextmanager
def opened(location: str | Path) -> Iterator[StoredCrawl]:
    """Open a crawl to look at it, or end with a sentence if there is none.

    Raises:
        StoreError: it is damaged, or of another version.
    """
    from mannerly.crawler.store import open_crawl
    from mannerly.crawler.store.base import StoreMissing

    with ExitStack() as stack:
        try:
            store = open_crawl(location)
        except StoreMissing as error:
            _fail_missing(error)
        stack.callback(store.close)
        shards = range(store.manifest.shards)
        readers = tuple(stack.enter_context(store.read(shard)) for shard in shards)
        yield StoredCrawl(store, readers)


def require_crawl(location: str | Path) -> None:
    """End with a sentence if there is no crawl at a location."""
    from mannerly.crawler.store import exists

    if not exists(location):
        _fail_missing(f"there is no crawl in {location}")


def settings_of(manifest: Manifest) -> CrawlSettings:
    """Return the settings that the crawl began with.

    Raises:
        StoreError: they make no sense to this version.
    """
    import msgspec

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import StoreError

    try:
        return msgspec.convert(manifest.settings, CrawlSettings, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise StoreError(f"the crawl's stored settings cannot be used: {error}") from error


def _fail_missing(why: object) -> NoReturn:
    fail(f"{why}: give the --data-dir of one")
