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

Links travel in batches: many links, one row. A link is encoded once, when its page is committed,
and decoded once, by the shard that it belongs to. A row for each link took four times as long.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mannerly.crawler.model import Candidate
from mannerly.crawler.store.base import StoreError
from mannerly.database.sqlite import START_OVER, Database

from .schema import INBOX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

# A receiver takes whole batches, and what it takes is one transaction.
MAX_LINKS = 500

# Another sender holds an inbox for one short transaction: a few flushes of a slow disk.
_BUSY_MS = 200

_PAYLOAD = 7  # the place in a `Candidate`

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Candidate]).decode


class LinkBatch(NamedTuple):
    """Some links for one shard, as a row of an outbox or an inbox holds them."""

    size: int
    links: bytes


def encode_links(candidates: Sequence[Candidate]) -> Iterator[LinkBatch]:
    """Yield the batches that it takes to send these."""
    for start in range(0, len(candidates), MAX_LINKS):
        part = candidates[start : start + MAX_LINKS]
        # One without a payload has no field for it.
        rows = [each[:_PAYLOAD] if each[_PAYLOAD] is None else each for each in part]
        yield LinkBatch(len(part), _encode(rows))


def decode_links(links: bytes) -> list[Candidate]:
    """Return the links of a batch.

    Raises:
        StoreError: it is damaged.
    """
    try:
        return _decode(links)
    except (msgspec.MsgspecError, TypeError) as error:
        raise StoreError(
            f"a batch of links between two shards is damaged ({error}): {START_OVER}"
        ) from error


class Inbox:
    """One shard's incoming links, in the order in which they were posted.

    Raises:
        StoreError: the file is missing, not ours, or damaged.
        StoreBusy: by any method, when another process has the file at this moment.
    """

    def __init__(self, directory: Path, shard: int, *, vfs: str | None = None) -> None:
        self._database = Database.open(
            inbox_path(directory, shard), INBOX, busy_ms=_BUSY_MS, vfs=vfs
        )
        self.close = self._database.close

    def post(self, batches: Iterable[LinkBatch]) -> None:
        """Add these; they are on disk when this returns."""
        with self._database.transaction(on_disk=True):
            self._database.executemany(
                "INSERT INTO link_batches (count, links) VALUES (?, ?)", batches
            )

    def read(self, limit: int) -> tuple[int, list[Candidate]]:
        """Return the links of the oldest batches: `limit` of them or the rest of a batch more.

        And the number by which to remove them; nothing is removed here. However many there are,
        no more are looked at than it takes.
        """
        last = 0
        found: list[Candidate] = []
        with self._database.translated():
            rows: Any = self._database.execute("SELECT id, links FROM link_batches ORDER BY id")
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
        with self._database.transaction():
            self._database.execute("DELETE FROM link_batches WHERE id <= ?", (last,))


def inbox_path(directory: Path, shard: int) -> Path:
    """Return the file of a shard's inbox."""
    return directory / f"inbox-{shard}.db"


def unread(directory: Path, shard: int) -> int:
    """Return how many links wait in a shard's inbox: a crawl with any is not finished."""
    with closing(Database.read(inbox_path(directory, shard), INBOX)) as inbox:
        counts = inbox.checked(inbox.rows("SELECT count FROM link_batches"), list[tuple[int]])
        return sum(count for (count,) in counts)


def unread_links(directory: Path, shard: int) -> Iterator[Candidate]:
    """Yield the links that wait in a shard's inbox."""
    with closing(Database.read(inbox_path(directory, shard), INBOX)) as inbox:
        for (links,) in inbox.rows("SELECT links FROM link_batches ORDER BY id"):
            yield from decode_links(links)
