"""Read local files that may have been written by others, within limits.

A file of seeds or a configuration file may come with a downloaded directory. So only regular files
are opened (a pipe would block, a device never ends), and reading stops at a limit.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class LocalFileError(ValueError):
    """A file that is not read: the message says why, without the name of the file."""


@contextmanager
def opened_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading.

    Raises:
        LocalFileError: it is a pipe, a device or a socket.
        OSError: it cannot be opened; a directory raises IsADirectoryError.
    """
    # Without O_NONBLOCK, opening a pipe that has no writer would wait for one.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise LocalFileError("is a pipe or a device, not a file")
        yield file


def read_text(path: Path, limit: int) -> str:
    """Return the text of a regular file.

    Raises:
        LocalFileError: it is not a regular file, is longer than `limit` bytes, or is not UTF-8.
        OSError: it cannot be read.
    """
    with opened_regular(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise LocalFileError(f"is longer than {limit:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LocalFileError(f"is not UTF-8 text: {error.reason}") from error
