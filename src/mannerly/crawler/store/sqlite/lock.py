"""Let a file have one owner at a time, by a lock that ends with its process.

The kernel holds the lock, so a process that was killed leaves no obstacle; the file only tells the
pid of the owner. Two ways to get one:

    flock          where there is `fcntl`
    a transaction  of SQLite on a small database beside the file (`NAME.db`), everywhere else:
                   SQLite knows the locks of every system that it runs on

flock goes first because SQLite's locks on Unix are POSIX locks, and a process loses those when any
part of it opens and closes the same file (a backup, for instance).

`is_held` takes a shared lock for some microseconds, and an owner that starts in this moment is
refused by the kernel. So owners try again: for PATIENCE_S, and for LOOKER_S if the file names no
process that runs. Then the lock has no owner, and is held by one that only looks: on a busy
machine it may have lost the processor in that moment. An owner that ends takes its pid out of the
file.

A process never opens a lock's file while it holds that lock: network file systems turn flock into
POSIX locks. So it keeps a list of what it holds.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreError, StoreInUse
from mannerly.database.files import check_regular, open_regular, read_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    import apsw

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    fcntl = None

PATIENCE_S = 0.25
LOOKER_S = 30.0
_PAUSE_S = 0.005
_PID_DIGITS = 20

_held_by: dict[Path, int] = {}  # the pid: a forked child inherits the list, and holds nothing


class OwnerLock:
    """A lock that is held from creation to `release`.

    `what` is named in errors. With more `patience_s` a longer operation of another process is
    waited for.

    Raises:
        StoreInUse: another process has it; the message names the process.
        StoreError: the file cannot be made or locked.
    """

    def __init__(self, path: Path, *, what: Path, patience_s: float = PATIENCE_S) -> None:
        self._path = path.absolute()
        self._release: Callable[[], None] | None = None
        began = time.monotonic()
        while True:
            try:
                self._release = None if _is_ours(path) else _take(path)
            except OSError as error:
                raise StoreError(f"cannot lock {what}: {error.strerror}") from error
            if self._release is not None:
                _held_by[self._path] = os.getpid()
                return
            waited_s = time.monotonic() - began
            if waited_s >= patience_s and (waited_s >= LOOKER_S or _is_owned(path)):
                owner = os.getpid() if _is_ours(path) else _owner(path)
                raise StoreInUse(f"{what} is in use by pid {owner}")
            time.sleep(_PAUSE_S)

    def release(self) -> None:
        """Release the lock; releasing twice is harmless."""
        if self._release is not None:
            _held_by.pop(self._path, None)
            self._release()
            self._release = None


def is_held(path: Path) -> bool:
    """Return whether a process holds this lock."""
    if _is_ours(path):
        return True
    if fcntl is None:
        return _is_in_transaction(path)
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except (OSError, StoreError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)
    return False


def _is_ours(path: Path) -> bool:
    return _held_by.get(path.absolute()) == os.getpid()


def _is_owned(path: Path) -> bool:
    """Return whether a lock that is held has an owner, as far as can be told here."""
    if _is_ours(path) or sys.platform == "win32":  # there is no harmless signal
        return True
    pid = _owner(path)
    if not pid.isdigit() or int(pid) in (0, os.getpid()):
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
    return True


def _owner(path: Path) -> str:
    """Return the pid in a lock's file. Anything may be in there: it is shown to people."""
    with suppress(OSError, StoreError):
        pid = read_file(path).strip()
        return pid.decode() if pid.isdigit() and len(pid) < _PID_DIGITS else "unknown"
    return "unknown"


def _take(path: Path) -> Callable[[], None] | None:
    """Take the lock, and write our pid to the file; None: another process has it."""
    return _transaction(path) if fcntl is None else _flock(path)


def _flock(path: Path) -> Callable[[], None] | None:
    assert fcntl is not None
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    if os.fstat(descriptor).st_nlink > 1:
        os.close(descriptor)
        raise StoreError(f"{path} is another file, too (a hard link): remove it")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.lstat()):
            with suppress(OSError):  # a full disk must not keep a crawl from going on
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return lambda: _end(descriptor)
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)  # held, or removed by `wipe` while we waited for it
    return None


def _end(descriptor: int) -> None:
    """Take our pid out of the file, and release the lock."""
    try:
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _transaction(path: Path) -> Callable[[], None] | None:
    """Take the lock by a transaction that is never committed."""
    connection = _begin(path)
    if connection is None:
        return None
    with (
        suppress(OSError),
        os.fdopen(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file,
    ):
        file.write(f"{os.getpid()}\n")
    return lambda: _end_transaction(connection, path)


def _end_transaction(connection: apsw.Connection, path: Path) -> None:
    """Take our pid out of the file, and release the lock."""
    with suppress(OSError, StoreError):
        os.close(open_regular(path, os.O_WRONLY | os.O_TRUNC))
    connection.close()


def _begin(path: Path) -> apsw.Connection | None:
    """Begin a transaction; None: another process has one."""
    import apsw

    connection: apsw.Connection | None = None
    try:
        check_regular(_database(path))
        connection = apsw.Connection(str(_database(path)))
        connection.set_busy_timeout(0)
        connection.execute("CREATE TABLE IF NOT EXISTS lock (unused)")
        connection.execute("BEGIN IMMEDIATE")
    except apsw.Error as error:
        if connection is not None:
            connection.close()
        if isinstance(error, apsw.BusyError):
            return None
        raise OSError(0, str(error)) from error
    return connection


def _is_in_transaction(path: Path) -> bool:
    """Try to begin three times: another process that only looks has the lock for a moment."""
    for _ in range(3):
        if not _database(path).exists():
            return False
        try:
            connection = _begin(path)
        except OSError:
            return False
        if connection is not None:
            connection.close()
            return False
        time.sleep(_PAUSE_S)
    return True


def _database(path: Path) -> Path:
    return path.with_name(path.name + ".db")
