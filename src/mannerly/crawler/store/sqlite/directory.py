"""The entry points that callers used before there was a `CrawlStore`; new code opens that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from mannerly.crawler.store.base import Manifest

from .crawl import SqliteCrawl
from .manifest import LOCK, MANIFEST

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

__all__ = ["LOCK", "MANIFEST", "CrawlDirectory", "Manifest", "is_crawl", "read_manifest", "wipe"]


class CrawlDirectory(SqliteCrawl):
    """A crawl that is held from `create` or `open` until `close`."""

    @classmethod
    def create(cls, location: str | Path, manifest: Manifest) -> Self:
        """Create a crawl, and hold it."""
        crawl = super().create(str(location), manifest)
        crawl.hold()
        return crawl

    @classmethod
    def open(cls, location: str | Path) -> Self:
        """Open a crawl, and hold it."""
        crawl = super().open(str(location))
        crawl.hold()
        return crawl

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def is_crawl(path: Path) -> bool:
    """Return whether there is a crawl to resume."""
    return SqliteCrawl.exists(str(path))


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a crawl; one of an earlier release is migrated first."""
    return SqliteCrawl.open(str(path)).manifest


def wipe(path: Path) -> None:
    """Remove a crawl."""
    SqliteCrawl.wipe(str(path))
