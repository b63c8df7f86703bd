"""A crawl's directory as the commands that only look at it see it.

Readers stand beside the owner, so all of this works while the crawl runs. A directory without a
crawl is the user's mistake (exit 2); a crawl that cannot be read is damage (exit 4).
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .terminal import fail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.sqlite.directory import Manifest
    from mannerly.crawler.store.sqlite.reader import SqliteReader

_LOCKS = Path("/proc/locks")  # Linux; elsewhere nobody tells


class StoredCrawl(NamedTuple):
    """A crawl's manifest, and a reader for each of its shards."""

    path: Path
    manifest: Manifest
    readers: tuple[SqliteReader, ...]

    def owner_of(self, host: str) -> int:
        """The shard that has everything about a host."""
        from mannerly.crawler.frontier.sharding import Sharding

        return Sharding(len(self.readers)).shard_of(host)


@contextmanager
def opened(path: Path) -> Iterator[StoredCrawl]:
    """Look into a crawl.

    Raises:
        StoreError: it is damaged, or of another version.
    """
    from mannerly.crawler.store.sqlite.directory import read_manifest
    from mannerly.crawler.store.sqlite.reader import SqliteReader

    require_crawl(path)
    manifest = read_manifest(path)
    with ExitStack() as stack:
        readers = tuple(
            stack.enter_context(SqliteReader.beside(path, shard))
            for shard in range(manifest.shards)
        )
        yield StoredCrawl(path, manifest, readers)


def require_crawl(path: Path) -> None:
    """End with a sentence if there is no crawl in a directory."""
    from mannerly.crawler.store.sqlite.directory import is_crawl

    if not is_crawl(path):
        fail(f"there is no crawl in {path}: give the --data-dir of one")


def settings_of(manifest: Manifest) -> CrawlSettings:
    """What the crawl was told when it began.

    Raises:
        StoreError: the manifest's settings make no sense to this version.
    """
    import msgspec

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import StoreError

    try:
        return msgspec.convert(manifest.settings, CrawlSettings, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise StoreError(f"the settings in crawl.json cannot be used: {error}") from error


def pid_at_work(path: Path) -> int | None:
    """The process that holds the crawl's lock, where the system tells without our trying it.

    Trying the lock, for however short a time, could make a crawl that starts just then fail.
    """
    from mannerly.crawler.store.sqlite.directory import LOCK

    try:
        inode = (path / LOCK).stat().st_ino
        rows = [line.split() for line in _LOCKS.read_text(encoding="ascii").splitlines()]
    except OSError:
        return None
    for row in rows:
        # Number, kind, mode, access, process, device:inode, and the range.
        if len(row) >= 6 and row[1] == "FLOCK" and row[5].endswith(f":{inode}"):
            return int(row[4])
    return None
