"""A memory in one SQLite file, with the standard library only.

It has one table, `hosts`, with delays in float seconds (whole seconds could not describe a host
that allows more than one request per second). It uses the rollback journal, not a write-ahead log
(WAL): there is one small transaction every 30 seconds, so concurrent readers do not matter, there
is only one file, and it cannot be corrupted at a WAL reset, which happens in the SQLite of many
Python installations (3.40 among them). A crash during a write leaves the previous state.

`application_id` marks the file as ours and `user_version` is its schema version; other files are
refused before anything is written to them.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import PolitenessError
from ..pace.base import Lesson
from .base import Remembered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

APPLICATION_ID = 0x6D6E6E72  # "mnnr"
SCHEMA_VERSION = 2

_CREATE = """
CREATE TABLE hosts (
    host TEXT PRIMARY KEY NOT NULL,
    adaptive_delay_seconds REAL NOT NULL DEFAULT 0,
    adaptive_delay_floor_seconds REAL NOT NULL DEFAULT 0,
    allowance REAL NOT NULL DEFAULT 0,
    block_seconds REAL NOT NULL DEFAULT 0,
    concurrency INTEGER NOT NULL DEFAULT 0,
    proven INTEGER NOT NULL DEFAULT 0,
    crawl_delay_seconds REAL NOT NULL DEFAULT 0,
    blocked_until REAL NOT NULL DEFAULT 0,
    updated_at REAL NOT NULL DEFAULT 0,
    failing_since REAL NOT NULL DEFAULT 0,
    failures_in_a_row INTEGER NOT NULL DEFAULT 0,
    breaker_opens INTEGER NOT NULL DEFAULT 0,
    breaker_until REAL NOT NULL DEFAULT 0
) WITHOUT ROWID
"""
_FROM_VERSION_1 = (
    "ALTER TABLE hosts ADD COLUMN failing_since REAL NOT NULL DEFAULT 0",
    "ALTER TABLE hosts ADD COLUMN failures_in_a_row INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE hosts ADD COLUMN breaker_opens INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE hosts ADD COLUMN breaker_until REAL NOT NULL DEFAULT 0",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_LOAD = """
SELECT adaptive_delay_seconds, adaptive_delay_floor_seconds, allowance, block_seconds,
       concurrency, proven, crawl_delay_seconds, blocked_until, updated_at, failing_since,
       failures_in_a_row, breaker_opens, breaker_until
FROM hosts WHERE host = ?
"""
_SAVE = "INSERT OR REPLACE INTO hosts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class MemoryFileError(PolitenessError):
    """The file cannot be used as a memory: another format, a newer version, or unreadable."""


class SqliteMemory:
    """A memory in a file. Usable from any thread; several processes may share the file.

    Raises:
        MemoryFileError: the file has another format, or cannot be opened.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise MemoryFileError(f"cannot open {self.path}: {error}") from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            raise MemoryFileError(f"{self.path} cannot be used as memory: {error}") from error
        except MemoryFileError:
            self._connection.close()
            raise

    def __repr__(self) -> str:
        return f"<SqliteMemory {self.path}>"

    def load(self, host: str) -> Remembered | None:
        """Return the record of one host; None if there is none."""
        with self._lock:
            row = self._connection.execute(_LOAD, (host,)).fetchone()
        return None if row is None else _record(host, row)

    def save(self, records: Iterable[Remembered]) -> None:
        """Save all of these records in one transaction."""
        rows = [_row(record) for record in records]
        with self._transaction() as connection:
            connection.executemany(_SAVE, rows)

    def forget(self, host: str) -> None:
        """Remove a host's record."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM hosts WHERE host = ?", (host,))

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _prepare(self) -> None:
        """Check the format of the file; create the table if it is empty, convert an older one."""
        with self._transaction() as connection:
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                connection.execute(_CREATE)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            elif self._pragma("application_id") != APPLICATION_ID:
                raise MemoryFileError(
                    f"{self.path} is a database of another program: choose another file"
                )
            elif (version := self._pragma("user_version")) == 1:
                for statement in _FROM_VERSION_1:
                    connection.execute(statement)
            elif version != SCHEMA_VERSION:
                raise MemoryFileError(
                    f"{self.path} has schema version {version}; this version of mannerly needs "
                    f"{SCHEMA_VERSION}: update mannerly, or choose another file"
                )

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])


def _row(record: Remembered) -> tuple[str | float, ...]:
    """Return a record as a row, in the order of the table's columns."""
    lesson = record.lesson
    return (
        record.host,
        lesson.delay_s,
        lesson.floor_s,
        lesson.allowance,
        lesson.block_s,
        lesson.concurrency,
        lesson.is_proven,
        record.crawl_delay_s,
        record.blocked_until,
        record.updated_at,
        record.failing_since,
        record.failures_in_a_row,
        record.breaker_opens,
        record.breaker_until,
    )


def _record(host: str, row: tuple[float, ...]) -> Remembered:
    delay_s, floor_s, allowance, block_s, concurrency, is_proven = row[:6]
    crawl_delay_s, blocked_until, updated_at, failing_since = row[6:10]
    failures, opens, breaker_until = row[10:]
    return Remembered(
        host=host,
        lesson=Lesson(
            delay_s=delay_s,
            floor_s=floor_s,
            allowance=allowance,
            block_s=block_s,
            concurrency=concurrency,  # type: ignore[arg-type]
            is_proven=bool(is_proven),
        ),
        crawl_delay_s=crawl_delay_s,
        blocked_until=blocked_until,
        updated_at=updated_at,
        failing_since=failing_since,
        failures_in_a_row=failures,  # type: ignore[arg-type]
        breaker_opens=opens,  # type: ignore[arg-type]
        breaker_until=breaker_until,
    ).within_bounds()
