"""The queue of a Scrapy spider in one file: requests, what was seen, items, cookies.

    waiting      to be asked, in the order of the priority and of the turn
    taken        asked, and not handled to its end; the next process asks again
    sent         the same, of a method that is not repeated; it becomes `unanswered`
    unanswered   was in flight when its process ended: it stays as a record, and is not sent again
    memory       cannot be stored: it ends with its process

A page ends in one transaction: its request goes, and its items and new requests appear. Whatever
Scrapy calls a request is a blob here; this module does not know Scrapy, so that items can be
exported without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from mannerly.database.errors import StoreBusy, StoreError
from mannerly.database.files import DIRECTORY_MODE
from mannerly.database.sqlite import Database, FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WAITING, TAKEN, SENT, UNANSWERED, MEMORY = range(5)

_KIND = FileKind(
    "spider queue",
    0x6D6E7371,
    1,
    """
    CREATE TABLE spider (name TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE requests (
        id INTEGER PRIMARY KEY, state INTEGER NOT NULL, priority INTEGER NOT NULL,
        turn INTEGER NOT NULL, url TEXT NOT NULL, fingerprint BLOB, body BLOB);
    CREATE INDEX ready ON requests (priority DESC, turn) WHERE state = 0;
    CREATE TABLE seen (fingerprint BLOB PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE started (identity BLOB PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE items (id INTEGER PRIMARY KEY, url TEXT NOT NULL, item BLOB NOT NULL);
    CREATE TABLE cookies (jar BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
    """,
)
_FILE = "spider.db"
_LOCK = FileKind("lock", 0x6D6E736C, 1, "CREATE TABLE lock (unused INTEGER)")
_CACHE_BYTES = 16 << 20
_LATELY = 50_000  # fingerprints in memory: 5 MB
_AFTER_ALL = 1 << 60  # added to the turns of start requests: others of their priority go first

Order = Literal["lifo", "fifo"]


class QueuedRequest(NamedTuple):
    """A request that is to be kept."""

    url: str
    priority: int
    body: bytes | None  # None: it cannot be stored
    fingerprint: bytes | None = None  # None: it is asked for, however often it was seen
    started: bytes | None = None  # its identity, if it comes from the start of the spider
    goes_last: bool = False  # after others of its priority, in the order of arrival


@dataclass(slots=True)
class PageEnd:
    """All that appears with the end of a page, or without a page."""

    entries: list[QueuedRequest] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)  # JSON
    started: list[bytes] = field(default_factory=list)
    cookies: dict[bytes, bytes] = field(default_factory=dict)


class Left(NamedTuple):
    """The URLs of requests that the process before has left."""

    unanswered: list[str]
    lost: list[str]  # requests that could not be stored


class KeptItem(NamedTuple):
    """The items of one answer, as an export reads them."""

    items: tuple[bytes, ...]
    error: None = None


def is_spider(location: str | Path) -> bool:
    """Return whether a location is a directory with the queue of a spider."""
    return Path(location, _FILE).is_file()


def extracted(folder: Path) -> Iterator[tuple[str, KeptItem]]:
    """Yield every item with the URL of its page; the spider may be running."""
    database = Database.read(folder / _FILE, _KIND)
    try:
        last = 0
        while rows := database.rows(
            "SELECT id, url, item FROM items WHERE id > ? ORDER BY id LIMIT 1000", (last,)
        ):
            last = rows[-1][0]
            for _, url, item in rows:
                yield url, KeptItem((item,))
    finally:
        database.close()


def identity_of(item: bytes) -> bytes:
    """Return what an item that came from no page is known by in the next process."""
    return blake2b(item, digest_size=20, person=b"item").digest()


class SpiderQueue:
    """The queue, held by one process.

    Raises:
        StoreError: another process has it, it is another spider's, or it cannot be used.
    """

    def __init__(self, folder: Path, spider: str, order: Order = "lifo") -> None:
        self._newest_first = order == "lifo"
        self._lately: set[bytes] = set()  # fingerprints that are in the file, some of them
        try:
            folder.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make {folder}: {error.strerror}") from error
        self._lock = _held(folder)
        with self._lock.closed_on_error():
            self._database = _opened(folder / _FILE, _KIND)
            with self._database.closed_on_error():
                self._claim(folder, spider)
                self.left = self._recovered()
                self._prepare()

    def _claim(self, folder: Path, spider: str) -> None:
        row = self._database.row("SELECT name FROM spider")
        self.is_new = row is None
        if row is None:
            with self._database.transaction():
                self._database.execute("INSERT INTO spider VALUES (?)", (spider,))
        elif row[0] != spider:
            raise StoreError(
                f"{folder} has the queue of spider {row[0]!r}, not of {spider!r}: "
                "choose another MANNERLY_DIR"
            )

    def _recovered(self) -> Left:
        """Put back what was taken; say what cannot be asked again."""
        database = self._database
        with database.transaction():
            lost = database.execute(
                "DELETE FROM requests WHERE state = ? RETURNING url, fingerprint", (MEMORY,)
            ).fetchall()
            database.executemany(
                "DELETE FROM seen WHERE fingerprint = ?", [(row[1],) for row in lost if row[1]]
            )
            unanswered = database.execute(
                "UPDATE requests SET state = ?, body = NULL WHERE state = ? RETURNING url",
                (UNANSWERED, SENT),
            ).fetchall()
            database.execute("UPDATE requests SET state = ? WHERE state = ?", (WAITING, TAKEN))
        return Left([str(row[0]) for row in unanswered], [str(row[0]) for row in lost])

    def _prepare(self) -> None:
        row = self._database.row("SELECT count(*) FROM requests WHERE state = ?", (WAITING,))
        self.waiting = 0 if row is None else int(row[0])
        last = self._database.row("SELECT max(id) FROM requests")
        self._last = 0 if last is None or last[0] is None else int(last[0])

    def knows(self, fingerprint: bytes) -> bool:
        """Return whether a request was seen before."""
        if fingerprint in self._lately:
            return True
        row = self._database.row("SELECT 1 FROM seen WHERE fingerprint = ?", (fingerprint,))
        if row is not None:
            self._note_lately(fingerprint)
        return row is not None

    def _note_lately(self, fingerprint: bytes) -> None:
        """Note that the file has it: most links of a page are links of the pages before."""
        if len(self._lately) >= _LATELY:
            self._lately.clear()
        self._lately.add(fingerprint)

    def times_started(self, identity: bytes) -> int:
        """Return how often the start of the spider has given this, in all processes before."""
        row = self._database.row("SELECT times FROM started WHERE identity = ?", (identity,))
        return 0 if row is None else int(row[0])

    def take(self) -> int | None:
        """Return the number of the next request; None: none waits."""
        if not self.waiting:
            return None
        row = self._database.row(
            "UPDATE requests SET state = ? WHERE id = (SELECT id FROM requests WHERE state = 0 "
            "ORDER BY priority DESC, turn LIMIT 1) RETURNING id",
            (TAKEN,),
        )
        if row is None:
            self.waiting = 0
            return None
        self.waiting -= 1
        return int(row[0])

    def body_of(self, number: int) -> bytes:
        """Return a request that was taken, as it was stored."""
        row = self._database.row("SELECT body FROM requests WHERE id = ?", (number,))
        assert row is not None, "it stays until it was handled"
        return bytes(row[0])

    def note_sent(self, number: int) -> None:
        """Note that a request leaves now which must not be repeated; it is on the disk then."""
        with self._database.transaction(on_disk=True):
            self._database.execute(
                "UPDATE requests SET state = ? WHERE id = ? AND state = ?", (SENT, number, TAKEN)
            )

    def finish(self, number: int | None, url: str, outcome: PageEnd) -> list[int | None]:
        """End a page; return the numbers of its entries, None for one that was seen before.

        Without a number, what appears came from no page.
        """
        database = self._database
        last, added = self._last, 0
        numbers: list[int | None] = []
        with database.transaction():
            if number is not None:
                database.execute("DELETE FROM requests WHERE id = ?", (number,))
            for entry in outcome.entries:
                if entry.fingerprint is not None:
                    database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (entry.fingerprint,))
                    if not database.changes():
                        numbers.append(None)
                        continue
                last += 1
                state = MEMORY if entry.body is None else WAITING
                added += state == WAITING
                database.execute(
                    "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        last,
                        state,
                        entry.priority,
                        self._turn(last, entry),
                        entry.url,
                        entry.fingerprint if state == MEMORY else None,
                        entry.body,
                    ),
                )
                numbers.append(last)
                if entry.started is not None and state == WAITING:
                    self._note_started(entry.started)
            for identity in outcome.started:
                self._note_started(identity)
            for item in outcome.items:
                database.execute("INSERT INTO items (url, item) VALUES (?, ?)", (url, item))
            for jar, content in outcome.cookies.items():
                database.execute("INSERT OR REPLACE INTO cookies VALUES (?, ?)", (jar, content))
        self._last = last
        self.waiting += added
        for entry, given in zip(outcome.entries, numbers, strict=True):
            if entry.fingerprint is not None and (given is None or entry.body is not None):
                self._note_lately(entry.fingerprint)
        return numbers

    def _turn(self, number: int, entry: QueuedRequest) -> int:
        if entry.goes_last:
            return _AFTER_ALL + number
        return -number if self._newest_first else number

    def _note_started(self, identity: bytes) -> None:
        self._database.execute(
            "INSERT INTO started VALUES (?, 1) "
            "ON CONFLICT (identity) DO UPDATE SET times = times + 1",
            (identity,),
        )

    def cookies(self) -> Iterable[tuple[bytes, bytes]]:
        """Return the jars that were kept."""
        return [(row[0], row[1]) for row in self._database.rows("SELECT jar, content FROM cookies")]

    def close(self) -> None:
        """Let another process have the queue."""
        self._database.close()
        self._lock.close()


def _opened(path: Path, kind: FileKind, cache_bytes: int = _CACHE_BYTES) -> Database:
    if not path.exists():
        Database.create(path, kind).close()
    return Database.open(path, kind, cache_bytes=cache_bytes)


def _held(folder: Path) -> Database:
    """Return a file in a transaction that never ends: the kernel ends it with the process."""
    try:
        lock = _opened(folder / "lock.db", _LOCK, 1 << 16)
        with lock.closed_on_error():
            lock.wait_for(0)
            with lock.translated():
                lock.execute("BEGIN IMMEDIATE")
    except StoreBusy as error:
        raise StoreError(
            f"{folder} is in use by another process: let it end, or choose another MANNERLY_DIR"
        ) from error
    return lock
