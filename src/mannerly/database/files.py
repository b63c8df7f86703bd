"""Open the files of a data directory without trusting what lies there.

Every account that may write to the directory may put a link, a pipe or a device in place of a file.
So links are never followed, only regular files are opened, and no open waits. Files are made for
their owner alone (mode 600), whatever the umask.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from .errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600

# Not every system has these.
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_LARGEST = 256 << 20  # bytes that are read at once: a seed list of millions of URLs


def check_regular(path: Path) -> None:
    """Raise StoreError if there is something else than a regular file; a missing one is fine."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot use {path}: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise StoreError(f"{path} is not a regular file: remove it, or choose another --data-dir")


def open_regular(path: Path, flags: int) -> int:
    """Open a file, or make it with O_CREAT, and return its descriptor.

    Raises:
        OSError: it cannot be opened.
        StoreError: it is not a regular file.
    """
    check_regular(path)
    descriptor = os.open(path, flags | _SAFELY, FILE_MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is not a regular file: remove it, or choose another --data-dir")
    return descriptor


def read_file(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read, or it is too large.
        StoreError: it is not a regular file.
    """
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        # As many bytes as there are: reading up to the limit would ask for that much memory.
        content = file.read(min(os.fstat(file.fileno()).st_size, _LARGEST) + 1)
    if len(content) > _LARGEST:
        raise OSError(0, f"it is larger than {_LARGEST >> 20} MB")
    return content


def write_file(path: Path, content: bytes) -> None:
    """Replace a file in one step: a crash leaves the old content or the new.

    Raises:
        OSError: it cannot be written.
    """
    new = path.with_name(f"{path.name}.new")
    with suppress(FileNotFoundError):
        new.unlink()
    with os.fdopen(open_regular(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def make_private(path: Path) -> None:
    """Take away what others may do with a directory and the regular files in it."""
    with suppress(OSError):  # another account's, or a file system without modes
        path.chmod(DIRECTORY_MODE)
        for file in path.iterdir():
            if stat.S_ISREG(file.lstat().st_mode):
                file.chmod(FILE_MODE)
