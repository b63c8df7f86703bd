"""Create, open and write the store's files, and translate SQLite's errors.

    disk full, file cannot grow    StoreFull    the batch was rolled back; offer it again later
    another process is writing     StoreBusy    for a moment; only inboxes have two writers
    everything else                StoreError   with the file, the reason and what to do

Files are in WAL mode: a commit appends, readers are never in the way, and a crash leaves the last
commit that reached the disk. With `synchronous` NORMAL a power cut may lose the last commits, each
as a whole; with FULL it loses none.

This module knows only the kind of a file, not its tables.
"""

from __future__ import annotations

import errno
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import apsw

from mannerly.crawler.store.base import StoreError, StoreFull

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .schema import FileKind

# Rows of a crawl are about 100 bytes, and a commit rewrites whole pages.
PAGE_BYTES = 4096

# 4,000 pages are 16 MB: then the log is copied into the file and used again from its start.
CHECKPOINT_PAGES = 4000
_LOG_BYTES_KEPT = 32 << 20

_RECOVERY_MS = 1000  # a reader waits up to this long while the writer recovers its log

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.ConstraintError)
START_OVER = "restore the directory from a copy, or start over with --fresh"


class StoreBusy(StoreError):  # noqa: N818 - named like StoreFull
    """Another process is writing to the file at this moment."""


def create(path: Path, kind: FileKind, *, vfs: str | None = None) -> apsw.Connection:
    """Make an empty file of this kind; the tables and the marks of ownership appear together."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    connection = _connection(path, flags, vfs)
    with closed_on_error(connection), translated(connection, path):
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        with transaction(connection, path):
            connection.execute(kind.tables)
            connection.execute(f"PRAGMA application_id = {kind.application_id}")
            connection.execute(f"PRAGMA user_version = {kind.version}")
        connection.execute("PRAGMA journal_mode = WAL")
    return connection


def connect(
    path: Path,
    kind: FileKind,
    *,
    durable: bool,
    cache_bytes: int,
    busy_ms: int = 0,
    vfs: str | None = None,
) -> apsw.Connection:
    """Open a file for its writer, or for one of several that wait `busy_ms` for each other.

    Raises:
        StoreError: it is missing, another program's, of another version, or damaged.
    """
    connection = _open(path, kind, apsw.SQLITE_OPEN_READWRITE, vfs, busy_ms)
    with closed_on_error(connection), translated(connection, path):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES_KEPT}")
        connection.execute(f"PRAGMA cache_size = {-cache_bytes // 1024}")
        connection.execute("PRAGMA temp_store = MEMORY")
        _synchronise(connection, durable=durable)
    return connection


def connect_reader(path: Path, kind: FileKind) -> apsw.Connection:
    """Open a file beside its writer; nothing can be written through this connection."""
    return _open(path, kind, apsw.SQLITE_OPEN_READONLY, None, _RECOVERY_MS)


@contextmanager
def on_disk(connection: apsw.Connection, path: Path, *, usually: bool = False) -> Iterator[None]:
    """Have the commits in here wait for the disk; everything before them is on it then, too.

    `usually` tells whether those after it do.
    """
    with translated(connection, path):
        _synchronise(connection, durable=True)
        try:
            yield
        finally:
            _synchronise(connection, durable=usually)


def _synchronise(connection: apsw.Connection, *, durable: bool) -> None:
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")


@contextmanager
def transaction(connection: apsw.Connection, path: Path) -> Iterator[None]:
    """Commit everything that is done in here, or roll it back if anything is raised."""
    with translated(connection, path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                # The disk that failed the commit may fail this too; closing rolls back as well.
                with suppress(apsw.Error):
                    connection.execute("ROLLBACK")
            raise


@contextmanager
def translated(connection: apsw.Connection, path: Path) -> Iterator[None]:
    """Turn SQLite's errors into `StoreError`s."""
    try:
        yield
    except apsw.Error as error:
        raise _meaning(error, path, connection.system_errno) from error


@contextmanager
def closed_on_error(connection: apsw.Connection) -> Iterator[None]:
    """Close the file if anything is raised in here."""
    try:
        yield
    except BaseException:
        shut(connection)
        raise


def shut(connection: apsw.Connection) -> None:
    """Close a file and ignore errors of the disk: what was committed is in the log."""
    with suppress(apsw.Error):
        connection.close()


def _open(
    path: Path,
    kind: FileKind,
    flags: int,
    vfs: str | None,
    busy_ms: int,
    *,
    any_version: bool = False,
) -> apsw.Connection:
    if not path.exists():
        raise StoreError(f"{path} is missing: {START_OVER}")
    connection = _connection(path, flags, vfs)
    connection.set_busy_timeout(busy_ms)
    with closed_on_error(connection), translated(connection, path):
        _identify(connection, path, kind, any_version=any_version)
    return connection


def _connection(path: Path, flags: int, vfs: str | None) -> apsw.Connection:
    try:
        return apsw.Connection(str(path), flags=flags, vfs=vfs)
    except apsw.Error as error:
        raise _meaning(error, path, 0) from error


def version_of(path: Path, kind: FileKind) -> int:
    """Return the version of a file of this kind.

    Raises:
        StoreError: it is missing, not ours, or damaged.
    """
    connection = _open(path, kind, apsw.SQLITE_OPEN_READWRITE, None, _RECOVERY_MS, any_version=True)
    try:
        with translated(connection, path):
            return _version(connection)
    finally:
        shut(connection)


def _version(connection: apsw.Connection) -> int:
    return int(str(connection.pragma("user_version")))


def _identify(
    connection: apsw.Connection, path: Path, kind: FileKind, *, any_version: bool
) -> None:
    """Raise StoreError for a file that is not of this kind, before anything is written."""
    if connection.pragma("application_id") != kind.application_id:
        raise StoreError(f"{path} is not a {kind.name} file of mannerly: choose another --data-dir")
    version = _version(connection)
    if version != kind.version and not any_version:
        raise StoreError(
            f"{path} has format {version}, and this version of mannerly knows format "
            f"{kind.version}: use the version that wrote it, or start over with --fresh"
        )


def _meaning(error: apsw.Error, path: Path, system_errno: int) -> StoreError:
    if isinstance(error, apsw.FullError) or (
        isinstance(error, apsw.IOError) and system_errno in _NO_ROOM
    ):
        return StoreFull(f"no room to write {path}: free some disk space")
    if isinstance(error, _DAMAGE):
        return StoreError(
            f"{path} is damaged ({error}): {START_OVER}; `sqlite3 {path.name} .recover`, on a "
            "copy, may save what can still be read"
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusy(f"{path} is in use by another process")
    return StoreError(f"cannot use {path}: {error}; check the disk and the permissions")
