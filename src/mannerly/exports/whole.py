"""Write a file under a temporary name, and rename it when it is complete.

So readers see the earlier export or the new one, never a part. Pipes and devices are written
directly. A symbolic link to a file is replaced by the export; the file that it points to stays as
it is.

The temporary file has a random name and is readable by its owner only, so that no other account can
guess it or put a link in its place. The complete file gets the mode that the umask allows. It is
locked while it is written, so that the next export can remove what a killed one has left.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from contextlib import contextmanager, suppress
from glob import escape
from typing import TYPE_CHECKING, BinaryIO

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

_BUFFER_BYTES = 1 << 20
_YOUNG_S = 10.0
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_NEW |= getattr(os, "O_BINARY", 0)


@contextmanager
def whole_file(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Yield a file that becomes `path` if no exception is raised.

    Without `sync` it is not waited for until it is on the disk: for thousands of small files.

    Raises:
        OSError: it cannot be written; the earlier file is kept.
    """
    if _is_stream(path):
        with path.open("wb") as file:
            yield file
        return
    if sync:  # not for each of thousands
        _tidy(path)
    beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.new")
    descriptor = os.open(beside, _NEW, 0o600)
    try:
        with os.fdopen(descriptor, "wb", buffering=_BUFFER_BYTES) as file:
            if fcntl is not None:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def _tidy(path: Path) -> None:
    """Remove the temporary files of exports to the same file that were killed: none is locked."""
    if fcntl is None:
        return
    with suppress(OSError):
        for file in path.parent.glob(f".{escape(path.name[:100])}.{'[0-9a-f]' * 16}.new"):
            with suppress(OSError), file.open("rb") as left:
                fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A younger one may not be locked yet.
                if time.time() - os.fstat(left.fileno()).st_mtime > _YOUNG_S:
                    file.unlink()


def _is_stream(path: Path) -> bool:
    """Return whether it is a pipe, a socket or a device, or a link to one."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _umask() -> int:
    """Return the umask. It cannot be read without setting it: to the strictest, for a moment."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
