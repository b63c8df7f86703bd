"""Read the records of a whole crawl, shard after shard, without keeping them in memory.

A URL belongs to the shard of its host, so no page and no skipped URL is in two shards. Only pages
are records: sitemaps and public indexes are counted, not exported.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from mannerly.crawler.store import open_crawl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from mannerly.crawler.model import PageRecord, Skipped


class Records:
    """The records of a stored crawl, for exports.

    Raises:
        StoreError: there is no crawl, or it cannot be read.
    """

    def __init__(self, location: str | Path) -> None:
        with ExitStack() as stack:
            crawl = open_crawl(location)
            stack.callback(crawl.close)
            shards = range(crawl.manifest.shards)
            self._readers = [stack.enter_context(crawl.read(shard)) for shard in shards]
            self._open = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def pages(self) -> Iterator[PageRecord]:
        """Yield every page record, each once."""
        for reader in self._readers:
            for _, record in reader.pages():
                yield record

    def skipped(self) -> Iterator[Skipped]:
        """Yield every skipped URL, each once."""
        for reader in self._readers:
            yield from reader.skipped()
