"""The records of a whole crawl, shard after shard, without holding them.

A URL belongs to the shard of its host, so no page and no skipped URL is in two shards.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from mannerly.crawler.store.sqlite.directory import read_manifest
from mannerly.crawler.store.sqlite.reader import SqliteReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from mannerly.crawler.model import PageRecord, Skipped


class Records:
    """What a crawl's directory holds, for exports.

    Raises:
        StoreError: there is no crawl, or it cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        shards = read_manifest(directory).shards
        with ExitStack() as stack:
            self._readers = [
                stack.enter_context(SqliteReader.beside(directory, shard))
                for shard in range(shards)
            ]
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
        """Every page record, each once."""
        for reader in self._readers:
            for _, record in reader.pages():
                yield record

    def skipped(self) -> Iterator[Skipped]:
        """Every skipped URL, each once."""
        for reader in self._readers:
            yield from reader.skipped()
