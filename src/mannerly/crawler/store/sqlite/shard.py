"""A shard's durable state in one SQLite file, written by one owner.

A commit is one transaction (`change`), appended to the write-ahead log. What is asked most, "new or
known?", is answered in four steps, each cheaper than the next:

    recent      a set of the URLs that arrived lately; the table `arrivals`, in memory
    confirmed   URLs that were asked about lately and known: a site's menu is on every page
    maybe       a Bloom filter: what it has never seen is new, and needs no look at the disk
    seen        the index on disk, asked once per batch and in order

Arrivals are carried over into the index when there are CARRY_OVER of them (in a resumed crawl at
most twice as many): one sorted pass instead of a random page per URL (see `schema`). Known stays
known, so neither set can be wrong, and both are bounded, so that memory does not grow with the
crawl.

Only this class writes. The run holds the crawl's lock and the owner the shard's, so that a worker
that outlived its parent keeps others out for as long as it can write.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import (
    Batch,
    BroughtBack,
    Committed,
    ShardStore,
    StoreBusy,
    StoreError,
    check_recipients,
)
from mannerly.database.files import write_file
from mannerly.database.sqlite import START_OVER, Database

from .bring_back import bring_back
from .change import Applied, Change, HostIds
from .counters import mend_counters
from .elements import ElementsWriter
from .inbox import Inbox, LinkBatch, inbox_path
from .lock import OwnerLock
from .maybe_known import MaybeKnown
from .notes import (
    NOTHING,
    ParsingNote,
    SentLog,
    parsing_path,
    prune_sent,
    read_acknowledged,
    read_sent,
)
from .reader import SqliteReader, shard_path
from .schema import INBOX, SHARD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from mannerly.crawler.model import Entry
    from mannerly.crawler.store.base import ShardOptions
    from mannerly.database.sqlite import Row

# 20,000 URLs are 4 MB of memory, and carrying them over takes about 0.1 s of a core.
CARRY_OVER = 20_000
_CONFIRMED_KEPT = 20_000
# Looking one URL up costs as much as reading so many into the filter: whichever is needed more in
# the end, no more than twice the least is spent.
CATCH_UP = 8

CHECKED_ALWAYS = 20_000  # URLs in the index: counting less takes some milliseconds

# Five million queued URLs of a thousand hosts then need some 80 MB in all, Python included.
_CACHE_BYTES = 48 << 20
_OUTBOX_SLICE = 100  # batches of links

_OUTBOX = "SELECT id, shard, count, links FROM outbox WHERE id > ? ORDER BY id LIMIT ?"

# OR ROLLBACK: to undo one statement alone SQLite would keep a copy of every page that it touches,
# 60 MB here.
_CARRY_OVER = """
    INSERT OR ROLLBACK INTO seen SELECT url, seq, host, priority FROM arrivals ORDER BY url;
    DELETE FROM arrivals;
"""
# Of a URL that came as a link and then with a label, the label's number stays.
_RELABEL = """
    CREATE TEMP TABLE relabelled AS
        SELECT url FROM arrivals JOIN payloads USING (seq) WHERE takes_place;
    DELETE FROM seen WHERE url IN (SELECT url FROM relabelled);
    DELETE FROM arrivals WHERE url IN (SELECT url FROM relabelled)
        AND seq NOT IN (SELECT max(seq) FROM arrivals GROUP BY url);
    DROP TABLE relabelled;
"""


# A page that has a record or a reason by now was committed before the owner died: not its fault.
_IS_OPEN = "SELECT is_open, (SELECT count(*) FROM (SELECT 1 FROM seen LIMIT ?)) FROM owner"
_SUSPECT = """
    INSERT INTO suspects (seq, deaths)
    SELECT ?1, 1 WHERE NOT EXISTS (SELECT 1 FROM pages WHERE seq = ?1)
                   AND NOT EXISTS (SELECT 1 FROM skipped WHERE seq = ?1)
    ON CONFLICT (seq) DO UPDATE SET deaths = deaths + 1
"""


class SqliteStore(SqliteReader, ShardStore):
    """`ShardStore` on disk, of a shard that `create_shard` made.

    Open it in the process that uses it: a fork must not share it. A smaller `carry_over` takes less
    memory and more writing. `vfs` names another view of the disk for SQLite, such as one that
    fails.

    Raises:
        StoreError: in use, missing, of another crawl's shape, of another version, or damaged.
    """

    def __init__(
        self,
        directory: Path,
        shard: int,
        options: ShardOptions,
        *,
        shards: int,
        carry_over: int = CARRY_OVER,
        vfs: str | None = None,
    ) -> None:
        path = shard_path(directory, shard)
        self._lock = OwnerLock(directory / f"shard-{shard}.lock", what=path)
        with ExitStack() as on_error:
            on_error.callback(self._lock.release)
            durable = options.durable
            database = Database.open(
                path, SHARD, durable=durable, cache_bytes=_CACHE_BYTES, vfs=vfs
            )
            on_error.callback(database.close)
            super().__init__(database)
            self.shard = shard
            self._directory = directory
            self._shards = shards
            self._frontier_limit = options.frontier_limit
            self.check_limit = options.check_limit or self.check_limit
            self._carry_over_at = carry_over
            self._vfs = vfs
            self._check_owner()
            self._open_cleanly()
            self._ids = HostIds(database)
            self._elements_writer = ElementsWriter()
            self._recent = self._arrivals()
            # Carried over with as many of our own: the first commit need not wait for it.
            self._inherited = min(len(self._recent), carry_over)
            self._note = ParsingNote(directory, shard)
            self._parsed = self._note.cell
            self.suspects: Mapping[int, int] = self._count_death(self._parsed[0])
            self.acknowledged: AbstractSet[int] = read_acknowledged(directory, shard)
            # After a power cut a number may be noted that the tables do not know any more.
            sent = self.with_payload(read_sent(directory, shard))
            self.unanswered: AbstractSet[int] = sent - self.left_queue(sent)
            prune_sent(directory, shard, self.unanswered)
            self._sent_log: SentLog | None = None  # until something is noted
            self._sent = set(self.unanswered)
            self._durable = durable
            self.has_payloads = self._row("SELECT 1 FROM payloads LIMIT 1") is not None
            self._labels = self._recent_labels()
            self._confirmed: set[str] = set()
            is_new = not self._recent and not self.counts().hosts
            self._maybe_known = MaybeKnown(None if is_new else self.identities())
            self._inboxes: dict[int, Inbox] = {}
            on_error.pop_all()

    def commit(self, batch: Batch) -> Committed:
        """Apply everything that a batch brought, or nothing."""
        if not batch:
            return Committed([], 0)
        check_recipients(batch, self.shard, self._shards)
        self._carry_over()
        self._maybe_known.catch_up(CATCH_UP * len(batch.found))
        cleared = self._cleared(batch) if self.suspects else ()
        with self._change() as change:
            applied = change.apply(batch, self._fresh, self.labelled)
            if cleared:
                change.clear_suspects(cleared)
        if cleared:
            self.suspects = {seq: n for seq, n in self.suspects.items() if seq not in cleared}
        if self._sent:
            for seq in {entry.seq for entry, _ in batch.pages + batch.dropped} & self._sent:
                with suppress(StoreError):  # it is committed; the next claim drops the note
                    self.note_sent(seq, is_refused=True)
        return self._remember(applied)

    def admit_waiting(self, room: int) -> list[Entry]:
        """Move up to `room` URLs from the waiting room into the queue."""
        if room <= 0 or not self.counts().waiting:
            return []
        with self._change() as change:
            return change.admit(room)

    def bring_back(self, limit: int) -> BroughtBack:
        """Queue up to `limit` URLs again that `Batch.retries` asked for."""
        if not self.counts().retries:
            return BroughtBack([], 0, {})
        with self._change() as change:
            return bring_back(change, limit)

    def deliver(self) -> int:
        """Hand outgoing links over to their shards; return how many were handed over."""
        delivered = last = 0
        while rows := self._rows(_OUTBOX, (last, _OUTBOX_SLICE)):
            last = rows[-1][0]
            for shard in sorted({row[1] for row in rows}):
                delivered += self._hand_over(shard, [row for row in rows if row[1] == shard])
        return delivered

    def receive(self, limit: int) -> Committed:
        """Take over what is in the inbox, a batch of links at a time until `limit` is reached."""
        inbox = self._inbox(self.shard)
        last, candidates = inbox.read(limit)
        if not candidates:
            return Committed([], 0)
        self._carry_over()
        with self._change(on_disk=True) as change:
            applied = change.apply(Batch(found=candidates), self._fresh, self.labelled)
        committed = self._remember(applied)
        with suppress(StoreBusy):  # then they come again, and are known
            inbox.remove(last)
        return committed

    def pass_links(self, limit: int) -> Committed:
        """Hand outgoing links over, and take over what is in the inbox."""
        self.deliver()
        return self.receive(limit) if limit > 0 else Committed([], 0)

    def parsing(self, seq: int) -> None:
        """Note that this page is about to be parsed; 0: none is any more."""
        self._parsed[0] = seq

    def note_sent(self, seq: int, *, is_refused: bool = False) -> None:
        """Note, without a commit, that a request leaves now which is sent once, or was refused."""
        if self._sent_log is None:
            self._sent_log = SentLog(self._directory, self.shard, durable=self._durable)
        self._sent_log.add(-seq if is_refused else seq)
        if is_refused:
            self._sent.discard(seq)
            self.unanswered = self.unanswered - {seq}
        else:
            self._sent.add(seq)

    def close(self) -> None:
        """Close the files and release the shard; closing twice is harmless."""
        for inbox in self._inboxes.values():
            inbox.close()
        self._note.close()
        if self._sent_log is not None:
            self._sent_log.close()
        with suppress(StoreError):  # on a full disk the next owner checks for nothing
            self._mark_open(is_open=False)
        super().close()
        self._lock.release()

    @contextmanager
    def _change(self, *, on_disk: bool = False) -> Iterator[Change]:
        """Make a change in a transaction of its own."""
        try:
            with self._database.transaction(on_disk=on_disk):
                change = Change(
                    self._database,
                    self._ids,
                    self._elements_writer,
                    frontier_limit=self._frontier_limit,
                )
                yield change
                change.finish()
        except BaseException:
            self._ids.clear()  # those of a transaction that was rolled back are void
            self._elements_writer.forget()
            raise

    def _fresh(self, urls: set[str]) -> set[str]:
        """Return those that are in none of the tables."""
        fresh = urls - self._recent - self._confirmed
        known = self._seen(self._maybe_known.among(fresh))
        if len(self._confirmed) + len(known) > _CONFIRMED_KEPT:
            self._confirmed.clear()
        self._confirmed |= known
        return fresh - known

    def labelled(self, urls: Sequence[str]) -> set[str]:
        """Return those URLs for which there is a request with a label."""
        return self._labels.intersection(urls) | self._labelled_before(urls)

    def _remember(self, applied: Applied) -> Committed:
        """Count the URLs of a transaction as known, now that it is committed."""
        self._recent.update(applied.arrived)
        self._labels.update(applied.labelled)
        self.has_payloads = self.has_payloads or applied.has_payloads
        self._maybe_known.learn(applied.arrived)
        return applied.committed

    def _carry_over(self) -> None:
        """Move arrivals into the index, before a commit: nothing may fail once that is done."""
        if len(self._recent) - self._inherited < self._carry_over_at:
            return
        with self._database.transaction():
            if self._labels:
                self._database.execute(_RELABEL)
            self._database.execute(_CARRY_OVER)
        self._recent, self._labels, self._inherited = set(), set(), 0

    def _hand_over(self, shard: int, rows: Sequence[Row]) -> int:
        """Post to an inbox, then forget: a crash in between only repeats it."""
        try:
            self._inbox(shard).post(LinkBatch(*row[2:]) for row in rows)
        except StoreBusy:
            return 0
        with self._change() as change:
            return change.forget_outgoing(row[0] for row in rows)

    def _count_death(self, seq: int) -> dict[int, int]:
        """Count that the last owner died while parsing this page; return all such counts."""
        if seq:
            with self._database.transaction(on_disk=True):
                self._database.execute(_SUSPECT, (seq,))
            self._parsed[0] = 0
        rows = self._rows("SELECT seq, deaths FROM suspects")
        return dict(self._checked(rows, list[tuple[int, int]]))

    def _cleared(self, batch: Batch) -> set[int]:
        """Return the suspects that this batch records or drops."""
        return {entry.seq for entry, _ in batch.pages + batch.dropped} & self.suspects.keys()

    def _inbox(self, shard: int) -> Inbox:
        if shard not in self._inboxes:
            self._inboxes[shard] = Inbox(self._directory, shard, vfs=self._vfs)
        return self._inboxes[shard]

    def _open_cleanly(self) -> None:
        """Check the counters, if the last owner did not close the file or there is little in it."""
        row = self._row(_IS_OPEN, (CHECKED_ALWAYS,))
        if row is not None and (row[0] != 0 or row[1] < CHECKED_ALWAYS):
            wrong = mend_counters(self._database)
            if wrong:
                self._database.say(f"mended wrong counters ({', '.join(wrong)})")
        self._mark_open(is_open=True)

    def _mark_open(self, *, is_open: bool) -> None:
        if self._database.is_open:
            with self._database.transaction():
                self._database.execute("UPDATE owner SET is_open = ?", (is_open,))

    def _check_owner(self) -> None:
        """Refuse a file that was renamed or copied from another crawl: it would mix their URLs."""
        row = self._row("SELECT shard, shards FROM owner")
        if row != (self.shard, self._shards):
            raise StoreError(
                f"{self.path} is not shard {self.shard} of {self._shards}: {START_OVER}"
            )


def create_shard(directory: Path, shard: int, *, shards: int, vfs: str | None = None) -> None:
    """Make the empty files of a shard. Opening never makes one: a lost file must be noticed."""
    database = Database.create(shard_path(directory, shard), SHARD, vfs=vfs)
    with closing(database), database.transaction():
        database.execute("INSERT INTO owner (shard, shards) VALUES (?, ?)", (shard, shards))
    Database.create(inbox_path(directory, shard), INBOX, vfs=vfs).close()
    write_file(parsing_path(directory, shard), NOTHING)
