"""Links between shards: at least once, deduplicated on arrival, so that a crash loses none.

    sender      commit: page + link batches in the outbox   one transaction, in the sender's file
                post: batches into the owner's inbox        one transaction, in the inbox, ON DISK
                forget: batches out of the outbox
    owner       take: their links into the queue            one transaction, owner's file, ON DISK
                remove: batches out of the inbox

A copy is removed only when the next one is safe; whatever is repeated after a crash is known by
then and changes nothing. "On disk" matters because the two files are written out independently: if
a power cut could take the new copy and spare the removal of the old one, the link would be gone.
So these two commits, and no others, wait for the disk.

An inbox is a small file per receiving shard: any number of processes add to it, its owner alone
removes. One that is busy is left for the next round, since nothing here may hold up a crawl.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from .database import connect, connect_reader, on_disk, shut, transaction, translated
from .link_batch import decode_links
from .schema import INBOX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mannerly.crawler.model import Candidate

    from .link_batch import LinkBatch

_CACHE_BYTES = 1 << 20

# Another sender holds an inbox for one short transaction: a few flushes of a slow disk.
_BUSY_MS = 200

_POST = "INSERT INTO link_batches (count, links) VALUES (?, ?)"
_READ = "SELECT id, links FROM link_batches ORDER BY id"


class Inbox:
    """One shard's incoming links, in the order in which they were posted.

    Raises:
        StoreError: the file is missing, not ours, or damaged.
        StoreBusy: by any method, when another process has the file at this moment.
    """

    def __init__(self, directory: Path, shard: int, *, vfs: str | None = None) -> None:
        self._path = inbox_path(directory, shard)
        self._connection = connect(
            self._path,
            INBOX,
            durable=False,
            cache_bytes=_CACHE_BYTES,
            busy_ms=_BUSY_MS,
            vfs=vfs,
        )

    def post(self, batches: Iterable[LinkBatch]) -> None:
        """Add these; they are on disk when this returns."""
        with on_disk(self._connection, self._path), transaction(self._connection, self._path):
            self._connection.executemany(_POST, batches)

    def read(self, limit: int) -> tuple[int, list[Candidate]]:
        """Return the links of the oldest batches: `limit` of them or the rest of a batch more.

        And the number by which to remove them; nothing is removed here. However many there are,
        no more are looked at than it takes.
        """
        last = 0
        found: list[Candidate] = []
        with translated(self._connection, self._path):
            rows: Any = self._connection.execute(_READ)  # the schema says what the columns hold
            with closing(rows):
                for last, links in rows:  # noqa: B007 - of the last one that was read
                    found += decode_links(links)
                    if len(found) >= limit:
                        break
        return last, found

    def remove(self, last: int) -> None:
        """Remove what was read, up to the number that `read` gave.

        What is posted in the meantime has a larger number, because numbers are given out under
        the file's write lock, and only from beyond the largest one present.
        """
        with transaction(self._connection, self._path):
            self._connection.execute("DELETE FROM link_batches WHERE id <= ?", (last,))

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        shut(self._connection)


def inbox_path(directory: Path, shard: int) -> Path:
    """Return the file of a shard's inbox."""
    return directory / f"inbox-{shard}.db"


def unread(directory: Path, shard: int) -> int:
    """Return how many links wait in a shard's inbox: a crawl with any is not finished."""
    return sum(count for (count,) in _asked(directory, shard, "SELECT count FROM link_batches"))


def unread_links(directory: Path, shard: int) -> Iterator[Candidate]:
    """Yield the links that wait in a shard's inbox."""
    for (links,) in _asked(directory, shard, "SELECT links FROM link_batches ORDER BY id"):
        yield from decode_links(links)


def _asked(directory: Path, shard: int, query: str) -> list[tuple[Any, ...]]:
    """Ask an inbox beside its owner."""
    path = inbox_path(directory, shard)
    connection = connect_reader(path, INBOX)
    try:
        with translated(connection, path):
            return connection.execute(query).fetchall()
    finally:
        shut(connection)
