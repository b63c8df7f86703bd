"""A shard's durable state in one SQLite file, written by one owner.

A commit is one transaction (`change`), appended to the write-ahead log. What is asked most, "new or
known?", is answered in four steps, each cheaper than the next:

    recent      a set of the URLs that arrived lately; the table `arrivals`, in memory
    confirmed   URLs that were asked about lately and known: a site's menu is on every page
    doubts      a Bloom filter: what it has never seen is new, and needs no look at the disk
    seen        the index on disk, asked once per batch and in order

Arrivals are carried over into the index when there are CARRY_OVER of them: one sorted pass instead
of a random page per URL (see `schema`). Known stays known, so neither set can be wrong, and both
are bounded, so that memory does not grow with the crawl.

Only this class writes. The parent process holds the directory's lock and the owner the shard's, so
that a worker that outlived its parent keeps others out for as long as it can write.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from mannerly.crawler.store.base import Batch, Committed, StoreError
from mannerly.crawler.web.dedup import Doubts

from .change import Applied, Change, HostIds
from .database import (
    START_OVER,
    StoreBusy,
    closed_on_error,
    connect,
    create,
    on_disk,
    shut,
    transaction,
)
from .inbox import Inbox, inbox_path
from .link_batch import Letter
from .lock import OwnerLock
from .reader import Row, SqliteReader, shard_path
from .schema import INBOX, SHARD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import apsw

    from mannerly.crawler.model import Entry

# 20,000 URLs are 4 MB of memory, and carrying them over takes about 0.1 s of a core.
CARRY_OVER = 20_000
_CONFIRMED_KEPT = 20_000
# Looking one URL up costs as much as reading so many into the filter: whichever is needed more in
# the end, no more than twice the least is spent.
CATCH_UP = 8

# Five million queued URLs of a thousand hosts then need some 80 MB in all, Python included.
_CACHE_BYTES = 48 << 20
_OUTBOX_SLICE = 100  # letters

_OUTBOX = "SELECT id, shard, links, text FROM outbox WHERE id > ? ORDER BY id LIMIT ?"

# OR ROLLBACK: to undo one statement alone SQLite would keep a copy of every page that it touches,
# 60 MB here.
_CARRY_OVER = """
    INSERT OR ROLLBACK INTO seen SELECT url, seq, host, priority FROM arrivals ORDER BY url;
    DELETE FROM arrivals;
"""


class SqliteStore(SqliteReader):
    """`ShardStore` on disk. Open it in the process that uses it: a fork must not share it."""

    def __init__(
        self,
        directory: Path,
        shard: int,
        connection: apsw.Connection,
        lock: OwnerLock,
        *,
        shards: int,
        frontier_limit: int,
        durable: bool,
        carry_over: int,
        vfs: str | None,
    ) -> None:
        super().__init__(shard_path(directory, shard), connection)
        self.shard = shard
        self._directory = directory
        self._lock = lock
        self._shards = shards
        self._frontier_limit = frontier_limit
        self._durable = durable
        self._carry_over_at = carry_over
        self._vfs = vfs
        self._ids = HostIds(connection)
        with closed_on_error(connection):
            self._check_owner()
            self._recent = self._arrivals()
        self._confirmed: set[str] = set()
        is_new = not self._recent and not self.counts().hosts
        self._doubts = Doubts(None if is_new else self.urls())
        self._inboxes: dict[int, Inbox] = {}

    @classmethod
    def open(
        cls,
        directory: Path,
        shard: int,
        *,
        shards: int,
        frontier_limit: int,
        durable: bool = False,
        carry_over: int = CARRY_OVER,
        check_limit: int | None = None,
        vfs: str | None = None,
    ) -> Self:
        """Become the owner of a shard that `create_shard` made.

        With `durable` every commit waits for the disk, so that a power cut takes none. A smaller
        `carry_over` takes less memory and more writing; a smaller `check_limit` asks the index
        about fewer URLs at once. `vfs` names another view of the disk for SQLite, such as one
        that fails.

        Raises:
            StoreError: in use, missing, of another crawl's shape, of another version, or damaged.
        """
        path = shard_path(directory, shard)
        lock = OwnerLock(directory / f"shard-{shard}.lock", what=path)
        try:
            connection = connect(path, SHARD, durable=durable, cache_bytes=_CACHE_BYTES, vfs=vfs)
            store = cls(
                directory,
                shard,
                connection,
                lock,
                shards=shards,
                frontier_limit=frontier_limit,
                durable=durable,
                carry_over=carry_over,
                vfs=vfs,
            )
        except BaseException:
            lock.release()
            raise
        if check_limit is not None:
            store.check_limit = check_limit
        return store

    def commit(self, batch: Batch) -> Committed:
        """Apply everything that a batch brought, or nothing."""
        if not batch:
            return Committed([], 0)
        for shard, _ in batch.outgoing:
            self._check_recipient(shard)
        self._carry_over()
        self._doubts.catch_up(CATCH_UP * len(batch.found))
        with self._change() as change:
            applied = change.apply(batch, self._fresh)
        return self._believe(applied)

    def known(self, urls: Sequence[str]) -> set[str]:
        """Which of these the store already has."""
        asked = set(urls)
        return asked - self._fresh(asked)

    suspects: dict[int, int] = {}  # noqa: RUF012

    def parsing(self, seq: int) -> None:
        """Not kept yet."""

    def admit_waiting(self, room: int) -> list[Entry]:
        """Move up to `room` URLs from the waiting room into the queue."""
        if room <= 0 or not self.counts().waiting:
            return []
        with self._change() as change:
            return change.admit(room)

    def deliver(self) -> int:
        """Hand outgoing links over to their shards; returns how many were handed over."""
        delivered = last = 0
        while rows := self._rows(_OUTBOX, (last, _OUTBOX_SLICE)):
            last = rows[-1][0]
            for shard in sorted({row[1] for row in rows}):
                delivered += self._hand_over(shard, [row for row in rows if row[1] == shard])
        return delivered

    def receive(self, limit: int) -> Committed:
        """Take over what is in the inbox, a letter at a time until `limit` is reached."""
        inbox = self._inbox(self.shard)
        last, candidates = inbox.read(limit)
        if not candidates:
            return Committed([], 0)
        self._carry_over()
        durably = on_disk(self._connection, self.path, usually=self._durable)
        with durably, self._change() as change:
            applied = change.apply(Batch(found=candidates), self._fresh)
        committed = self._believe(applied)
        with suppress(StoreBusy):  # then they come again, and are known
            inbox.remove(last)
        return committed

    def forget_robots(self, origin: str) -> None:
        """Have an origin's robots.txt fetched anew."""
        with transaction(self._connection, self.path):
            self._connection.execute("DELETE FROM robots WHERE origin = ?", (origin,))

    def close(self) -> None:
        """Let go of the files and of the shard; twice is harmless."""
        for inbox in self._inboxes.values():
            inbox.close()
        super().close()
        self._lock.release()

    @contextmanager
    def _change(self) -> Iterator[Change]:
        """A change in a transaction of its own."""
        try:
            with transaction(self._connection, self.path):
                change = Change(self._connection, self._ids, frontier_limit=self._frontier_limit)
                yield change
                change.finish()
        except BaseException:
            self._ids.roll_back()
            raise

    def _fresh(self, urls: set[str]) -> set[str]:
        """Which of these are in none of the tables."""
        fresh = urls - self._recent - self._confirmed
        known = self._seen(self._doubts.among(fresh))
        if len(self._confirmed) + len(known) > _CONFIRMED_KEPT:
            self._confirmed.clear()
        self._confirmed |= known
        return fresh - known

    def _believe(self, applied: Applied) -> Committed:
        """The transaction is committed: now its URLs are known."""
        self._recent.update(applied.arrived)
        self._doubts.learn(applied.arrived)
        return applied.committed

    def _carry_over(self) -> None:
        """Before a commit rather than after one, which must not fail once it is done."""
        if len(self._recent) < self._carry_over_at:
            return
        with transaction(self._connection, self.path):
            self._connection.execute(_CARRY_OVER)
        self._recent = set()

    def _hand_over(self, shard: int, rows: Sequence[Row]) -> int:
        """Post first, forget then: a crash in between only repeats it."""
        try:
            self._inbox(shard).post(Letter(*row[2:]) for row in rows)
        except StoreBusy:
            return 0
        with self._change() as change:
            return change.forget_outgoing(row[0] for row in rows)

    def _inbox(self, shard: int) -> Inbox:
        if shard not in self._inboxes:
            self._inboxes[shard] = Inbox(self._directory, shard, vfs=self._vfs)
        return self._inboxes[shard]

    def _check_recipient(self, shard: int) -> None:
        if shard == self.shard or not 0 <= shard < self._shards:
            raise ValueError(f"shard {self.shard} of {self._shards} cannot send to shard {shard}")

    def _check_owner(self) -> None:
        """A file that was renamed or copied from another crawl would mix two crawls' URLs."""
        row = self._row("SELECT shard, shards FROM owner")
        if row != (self.shard, self._shards):
            raise StoreError(
                f"{self.path} is not shard {self.shard} of {self._shards}: {START_OVER}"
            )


def create_shard(directory: Path, shard: int, *, shards: int, vfs: str | None = None) -> None:
    """Make the empty files of a shard. Opening never makes one: a lost file must be noticed."""
    path = shard_path(directory, shard)
    connection = create(path, SHARD, vfs=vfs)
    with transaction(connection, path):
        connection.execute("INSERT INTO owner VALUES (?, ?)", (shard, shards))
    shut(connection)
    shut(create(inbox_path(directory, shard), INBOX, vfs=vfs))
