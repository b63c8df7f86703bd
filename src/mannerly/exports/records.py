"""The records of a whole crawl, shard after shard, without holding them.

A page belongs to the shard of its host, so no page is in two shards. A skipped URL is kept by the
shard that came across it, so several may have it, and the shard that it belongs to may even have
fetched it since (it was too deep by one way and not by another). It is given only if no shard has
anything better to say, and then by the first that has it.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Self

from mannerly.crawl.model import Skipped
from mannerly.crawl.store.directory import read_manifest
from mannerly.crawl.store.reader import SqliteReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from mannerly.crawl.model import PageRecord

_SLICE = 1000


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
        for shard, reader in enumerate(self._readers):
            rows = reader.skipped()
            while some := list(islice(rows, _SLICE)):
                told = self._told_elsewhere([row.url for row in some], shard)
                yield from (row for row in some if row.url not in told)

    def _told_elsewhere(self, urls: list[str], shard: int) -> set[str]:
        """Those that another shard fetched or queued, or that an earlier one skipped, too."""
        told: set[str] = set()
        for other, reader in enumerate(self._readers):
            if other == shard:
                continue
            for url in reader.known(urls):
                place = reader.find(url)
                if isinstance(place, Skipped):
                    if other < shard:
                        told.add(url)
                elif place is not None:
                    told.add(url)
        return told
