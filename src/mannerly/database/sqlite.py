"""A file of the store: create, open, ask and write it, and translate SQLite's errors.

    disk full, file cannot grow    StoreFull    the batch was rolled back; offer it again later
    another process is writing     StoreBusy    for a moment; inboxes and `control.db` have many
    no descriptor left to open it  StoreBusy
    no memory                      MemoryError  the batch was rolled back
    everything else                StoreError   with the file, the reason and what to do

Files are in WAL mode: a commit appends, readers are never in the way, and a crash leaves the last
commit that reached the disk. With `synchronous` NORMAL a power cut may lose the last commits, each
as a whole; with FULL it loses none.

This module knows only the kind of a file, not its tables. It is long because every error of SQLite
is translated here.
"""

from __future__ import annotations

import errno
import os
from contextlib import closing, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar

import apsw
import msgspec

from .errors import StoreBusy, StoreError, StoreFull, repair_command
from .files import check_regular, open_regular
from .ranges import Notes, R, mend, out_of_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


# The schema says what the columns hold, where no type checker can see it.
Row = tuple[Any, ...]

T = TypeVar("T")
Schema: TypeAlias = "dict[str, object]"

# Rows of a crawl are about 100 bytes, and a commit rewrites whole pages.
PAGE_BYTES = 4096

# 4,000 pages are 16 MB: then the log is copied into the file and used again from its start.
CHECKPOINT_PAGES = 4000
_LOG_BYTES_KEPT = 32 << 20

# A reader waits up to this long while the writer recovers its log, and the writer while the last
# reader closes the file: SQLite locks it for a moment then.
_RECOVERY_MS = 1000

_SIDE_FILES = ("", "-wal", "-shm", "-journal")

# A file may hold views, triggers and functions in its schema that never end.
_CONFIGURATION = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    # A plan does not depend on the values that are bound. Else a statement with a join is prepared
    # again at every execution, which takes three times as long as to look a record up.
    apsw.SQLITE_DBCONFIG_ENABLE_QPSG: 1,
}

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.ConstraintError)
ANY_VERSION = 0  # as the version of a kind of file that is opened
START_OVER = "restore the directory from a copy, or start over with --fresh"
REBUILT = ".new.db"  # the suffix of a file that a repair builds, until it is put in its place


def repair_advice(path: Path) -> str:
    """Return the command that repairs the crawl of a file, in half a sentence."""
    return f"`{repair_command(path.parent)}` saves what can still be read"


def missing(path: Path) -> StoreError:
    """Return the error about a file that is not there."""
    if path.with_suffix(REBUILT).exists():
        return StoreError(
            f"{path} is missing, because a repair was interrupted: {repair_advice(path)}"
        )
    return StoreError(f"{path} is missing: {START_OVER}")


class FileKind(NamedTuple):
    """A kind of file: its name, SQLite's application id, its version and its tables."""

    name: str
    application_id: int
    version: int
    tables: str


class Database:
    """An open file. `create`, `open` and `read` make one.

    `execute`, `executemany` and `changes` are SQLite's own, for use inside `transaction`; `rows`
    and `row` translate errors themselves.
    """

    def __init__(
        self, path: Path, flags: int, vfs: str | None = None, busy_ms: int = _RECOVERY_MS
    ) -> None:
        self.path = path
        self._notes = Notes()
        self.take_mended = self._notes.take
        self.is_open = True
        self._durable = False
        for suffix in _SIDE_FILES:
            check_regular(path.with_name(path.name + suffix))
        # SQLite refuses a link anywhere in the path, and the directory may be reached by one.
        safe = path.parent.resolve() / path.name
        is_fixed = flags & apsw.SQLITE_OPEN_URI
        name = f"{safe.as_uri()}?immutable=1" if is_fixed else str(safe)
        try:
            self._connection = apsw.Connection(
                name, flags=flags | apsw.SQLITE_OPEN_NOFOLLOW, vfs=vfs
            )
        except apsw.Error as error:
            raise _meaning(error, path, 0) from error
        for option, value in _CONFIGURATION.items():
            self._connection.config(option, value)
        self._connection.set_busy_timeout(busy_ms)
        self.wait_for = self._connection.set_busy_timeout
        self.execute = self._connection.execute
        self.executemany = self._connection.executemany
        self.changes = self._connection.changes

    @classmethod
    def create(cls, path: Path, kind: FileKind, *, vfs: str | None = None) -> Self:
        """Make an empty file; the tables and the marks of ownership appear together."""
        if vfs is None:  # made by us, so that no umask widens it; SQLite's side files follow it
            os.close(open_regular(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        database = cls(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, vfs, 0)
        with database.closed_on_error(), database.translated():
            database.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            with database.transaction():
                database.execute(kind.tables)
                database.execute(f"PRAGMA application_id = {kind.application_id}")
                database.execute(f"PRAGMA user_version = {kind.version}")
            database.execute("PRAGMA journal_mode = WAL")
        return database

    @classmethod
    def open(
        cls,
        path: Path,
        kind: FileKind,
        *,
        durable: bool = False,
        cache_bytes: int = 1 << 20,
        busy_ms: int = _RECOVERY_MS,
        vfs: str | None = None,
    ) -> Self:
        """Open a file for its writer, or for one of several that wait `busy_ms` for each other.

        Raises:
            StoreError: it is missing, another program's, of another version, or damaged.
        """
        database = cls._opened(path, kind, apsw.SQLITE_OPEN_READWRITE, vfs, busy_ms)
        with database.closed_on_error(), database.translated():
            database.execute("PRAGMA journal_mode = WAL")
            database.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            database.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES_KEPT}")
            database.execute(f"PRAGMA cache_size = {-cache_bytes // 1024}")
            database.execute("PRAGMA temp_store = MEMORY")
            database._durable = durable
            database._synchronise(durable=durable)
        return database

    @classmethod
    def read(cls, path: Path, kind: FileKind) -> Self:
        """Open a file beside its writer; nothing can be written through it.

        SQLite makes files beside it for that. Where it may not, on a file system that is mounted
        for reading, there is no writer either, and the file is read as it is.
        """
        try:
            return cls._opened(path, kind, apsw.SQLITE_OPEN_READONLY)
        except StoreError:
            if os.access(path.parent, os.W_OK) or _has_log(path):
                raise
        return cls._opened(path, kind, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)

    @classmethod
    def unchecked(cls, path: Path) -> Self:
        """Open a file that may be damaged, to read what can be read."""
        return cls(path, apsw.SQLITE_OPEN_READWRITE)

    @classmethod
    def roll_back(cls, path: Path) -> None:
        """Undo what a kill left half done while a file was made: a reader may not do that."""
        if path.with_name(path.name + "-journal").exists():
            with closing(cls.unchecked(path)) as database:
                database.rows("SELECT count(*) FROM sqlite_schema")

    @classmethod
    def _opened(
        cls,
        path: Path,
        kind: FileKind,
        flags: int,
        vfs: str | None = None,
        busy_ms: int = _RECOVERY_MS,
    ) -> Self:
        if not path.exists():
            raise missing(path)
        database = cls(path, flags, vfs, busy_ms)
        with database.closed_on_error(), database.translated():
            database._identify(kind)
        return database

    def _identify(self, kind: FileKind) -> None:
        """Raise StoreError for a file that is not of this kind, before anything is written."""
        if self._pragma("application_id") != kind.application_id:
            raise StoreError(
                f"{self.path} is not a {kind.name} file of mannerly: choose another --data-dir"
            )
        version = self.version
        if kind.version not in (version, ANY_VERSION):
            raise StoreError(
                f"{self.path} has format {version}, and this version of mannerly knows format "
                f"{kind.version}: use the version that wrote it, or start over with --fresh"
            )
        if kind.version == version and self._schema() != _schema_of(kind):
            raise StoreError(f"{self.path} is damaged (its tables are not ours): {START_OVER}")

    def _schema(self) -> Schema:
        """Return the tables with their columns, and everything else in the schema as it is.

        A table that was converted differs from a new one in its text, not in its columns.
        """
        found: dict[str, object] = {}
        for kind, name, sql in self.execute("SELECT type, name, sql FROM sqlite_schema"):
            if kind == "table" and str(sql).startswith("CREATE TABLE "):
                columns = self.execute("SELECT * FROM pragma_table_xinfo(?)", (name,))
                found[str(name)] = {(row[1], row[2], row[3], row[5], row[6]) for row in columns}
            else:
                found[str(name)] = (kind, sql)
        return found

    def _pragma(self, name: str) -> int:
        return int(str(self._connection.pragma(name)))

    @property
    def version(self) -> int:
        """The version of the file's tables."""
        with self.translated():
            return self._pragma("user_version")

    def rows(self, query: str, values: Sequence[apsw.Binding] = ()) -> list[Row]:
        """Return all rows of a query."""
        with self.translated():
            return self.execute(query, values).fetchall()

    def row(self, query: str, values: Sequence[apsw.Binding] = ()) -> Row | None:
        """Return the first row of a query."""
        with self.translated():
            return self.execute(query, values).fetchone()

    @contextmanager
    def transaction(self, *, on_disk: bool = False) -> Iterator[None]:
        """Commit everything that is done in here, or roll it back if anything is raised.

        With `on_disk` the commit waits for the disk; everything before it is on it then, too.
        """
        waits = on_disk and not self._durable
        with self.translated():
            if waits:
                self._synchronise(durable=True)
            try:
                self.execute("BEGIN IMMEDIATE")
                yield
                self.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    # The disk that failed the commit may fail this too; closing rolls back as well.
                    with suppress(apsw.Error):
                        self.execute("ROLLBACK")
                raise
            finally:
                if waits:
                    self._synchronise(durable=False)

    def _synchronise(self, *, durable: bool) -> None:
        self.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn SQLite's errors into `StoreError`s."""
        try:
            yield
        except apsw.Error as error:
            raise _meaning(error, self.path, self._connection.system_errno) from error
        except UnicodeDecodeError as error:
            raise self.damaged("text that is not UTF-8") from error

    def damaged(self, why: object) -> StoreError:
        """Return the error for a file whose content makes no sense."""
        return StoreError(
            f"{self.path} is damaged ({why}): {repair_advice(self.path)}, or {START_OVER}"
        )

    def checked(self, rows: object, shape: type[T]) -> T:
        """Return rows as records, if their values have the right types and believable sizes.

        Raises:
            StoreError: they do not.
        """
        try:
            records = msgspec.convert(rows, shape, strict=False)
        except msgspec.ValidationError as error:
            raise self.damaged(error) from error
        rows_of: list[Any] = records if isinstance(records, list) else [records]
        for row in rows_of:
            wrong = out_of_range(row) if isinstance(row, tuple) else None
            if wrong is not None:
                raise self.damaged(f"the number {wrong:g}")
        return records

    def record(self, row: Sequence[object], shape: type[R]) -> R:
        """Return a row as a record whose numbers are in range; what had to be mended is said.

        Raises:
            StoreError: a value without which there is no record has the wrong type.
        """
        try:
            return self.checked(row, shape)
        except StoreError:
            pass
        try:
            record, mended = mend(row, shape)
        except ValueError as error:
            raise self.damaged(error) from error
        self.say(f"{record[0]}: {mended}")
        return record

    def say(self, words: str) -> None:
        """Note something in this file that was wrong and is put right."""
        self._notes.add(f"{self.path}: {words}")

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Close the file if anything is raised in here."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file and ignore errors of the disk: what was committed is in the log."""
        self.is_open = False
        with suppress(apsw.Error):
            self._connection.close()


@cache
def _schema_of(kind: FileKind) -> Schema:
    """Return the schema that a file of this kind has."""
    database = Database.__new__(Database)
    database.execute = apsw.Connection(":memory:").execute
    database.execute(kind.tables)
    return database._schema()


def _meaning(error: apsw.Error, path: Path, system_errno: int) -> StoreError | MemoryError:
    extended: int = getattr(error, "extendedresult", 0)
    if isinstance(error, apsw.NoMemError) or extended == apsw.SQLITE_IOERR_NOMEM:
        return MemoryError(f"no memory for {path}")
    if isinstance(error, apsw.FullError) or (
        isinstance(error, apsw.IOError) and system_errno in _NO_ROOM
    ):
        return StoreFull(f"no room to write {path}: free some disk space")
    if isinstance(error, _DAMAGE):
        return StoreError(f"{path} is damaged ({error}): {repair_advice(path)}, or {START_OVER}")
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusy(f"{path} is in use by another process")
    if isinstance(error, apsw.CantOpenError) and _lacks_descriptors():
        return StoreBusy(f"no file descriptor is left to open {path}: raise the limit (ulimit -n)")
    return StoreError(f"cannot use {path}: {error}; check the disk and the permissions")


def _has_log(path: Path) -> bool:
    """Return whether commits are in the log that are not in the file itself."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except OSError:
        return False


def library_version() -> tuple[int, ...]:
    """Return the version of SQLite."""
    return tuple(map(int, apsw.sqlite_lib_version().split(".")))


def _lacks_descriptors() -> bool:
    """Return whether this process may open no file any more: SQLite does not say why it failed."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False
