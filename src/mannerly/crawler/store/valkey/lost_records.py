"""The URLs of one shard whose record is lost, found in portions, and left to its owner.

A record is lost if it is in no log that can be read. The owner cannot find that out, because it has
its own logs only. So `retry --missing` does, with the directories that it was given. It leaves the
URLs in the server:

    m     list: blocks of entries (`fetched`), each with a mark; the owner queues one at a time
    mb    bits, by the number of the URL: it is in `m`

A URL that is queued again keeps its number, and has the mark of one with a record (`a`). So it goes
from `m` to `a` to a log, and marks are asked for before logs are read: what is in neither is lost
and was not asked for.

**Two commands at once.** `recall.lua` takes a portion only if no URL was left or brought back since
the marks were read (`recalls` counts that). Otherwise marks and logs are read again. So each URL is
left once. A command that was killed has left some portions: the next one finds their marks, and
goes on.

**--max-urls.** Pages that are fetched again were granted before, so they are given back. The limit
may be in another server of a cluster than the shard. So the shard counts what was ever left to it
(`recalled`), in the same write, and `refund.lua` gives back what was not given back yet of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.database.client import hash_pieces

from .fetched import BLOCK, pack_block, packed_text, recorded_portions
from .packing import as_text, unpack_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mannerly.crawler.model import Entry
    from mannerly.crawler.store.records.reader import LogReader
    from mannerly.database.client import Payload

    from .client import ValkeyServer

FETCHED, FAILED = b"+", b"-"  # before the blocks of `m`: has the URL failed?


class LostRecords:
    """The lost records of one shard; `records` returns the logs as they are committed now."""

    def __init__(self, server: ValkeyServer, base: str, records: Callable[[], LogReader]) -> None:
        self._server = server
        self._base = base
        self._records = records

    def pages(self) -> int:
        """Return how many pages have lost their record, as far as URLs are kept."""
        return sum(KINDS[entry.kind].is_page for entry, _ in self.urls())

    def urls(self) -> Iterator[tuple[Entry, bool]]:
        """Yield the URLs whose record cannot be read here, and whether they had failed."""
        if self._records().missing_segments:
            for mark, portion in self._portions():
                for entry in self._lost(mark, portion):
                    yield entry, mark == FAILED

    def recall(self, crawl: str, host: str | None) -> int:
        """Leave those of one host, or of all, to the owner; return how many pages are new there."""
        if not self._records().missing_segments:
            return 0
        pages = 0
        for mark, portion in self._portions():
            wanted = [entry for entry in portion if host in (None, entry.host)]
            pages += self._recall(crawl, mark, wanted)
        return pages

    def _recall(self, crawl: str, mark: bytes, portion: list[Entry]) -> int:
        while True:
            recalls, found = self._not_asked(mark, portion)
            if not found:
                return 0
            pages = sum(KINDS[entry.kind].is_page for entry in found)
            payload: Payload = {
                "id": crawl,
                "recalls": recalls,
                "blocks": [
                    as_text(mark + pack_block([packed_text(entry) for entry in block]))
                    for block in (found[at : at + BLOCK] for at in range(0, len(found), BLOCK))
                ],
                "seqs": [entry.seq for entry in found],
                "pages": pages,
            }
            if self._server.call("recall", [self._base + "s"], payload):
                return pages

    def _portions(self) -> Iterator[tuple[bytes, list[Entry]]]:
        """Yield all URLs with a record, a portion at a time."""
        key = self._base + "fe"
        for fields in hash_pieces(self._server, key):
            entries = [unpack_entry(data.partition(b" ")[2], key) for _, data in fields]
            yield FAILED, entries
        for entries in recorded_portions(self._server, self._base):
            yield FETCHED, entries

    def _lost(self, mark: bytes, portion: list[Entry]) -> list[Entry]:
        """Return those without a record in the logs."""
        lost = _without_record(portion, self._records())
        if mark == FAILED or not lost:
            return lost
        # One that failed when it was asked for again is among the failed ones.
        failed = self._server.ask("HMGET", self._base + "fe", *(entry.seq for entry in lost))
        return [entry for entry, data in zip(lost, failed, strict=True) if data is None]

    def _not_asked(self, mark: bytes, portion: list[Entry]) -> tuple[int, list[Entry]]:
        """Return those that were not asked for again, and what `recalls` was before."""
        lost = _without_record(portion, self._records())
        if not lost:
            return 0, []
        seqs = [entry.seq for entry in lost]
        bits = [word for seq in seqs for word in ("GET", "u1", seq)]
        recalls, are_left, queued, failed = self._server.ask_all(
            [
                ("HGET", self._base + "s", "recalls"),
                ("BITFIELD_RO", self._base + "mb", *bits),
                ("HMGET", self._base + "a", *seqs),
                ("HMGET", self._base + "fe", *seqs),
            ]
        )
        found = [
            entry
            for entry, is_left, mark_of_record, data in zip(
                lost, are_left, queued, failed, strict=True
            )
            if not is_left and mark_of_record is None and (data is not None) == (mark == FAILED)
        ]
        return int(recalls or 0), _without_record(found, self._records())


def _without_record(entries: list[Entry], log: LogReader) -> list[Entry]:
    """Return the entries that the logs do not have, each once."""
    return list({entry.seq: entry for entry in entries if not log.has_left(entry.seq)}.values())
