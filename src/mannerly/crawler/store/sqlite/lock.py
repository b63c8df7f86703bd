"""One owner at a time, by a lock that dies with its process.

The kernel holds the lock (flock), the file only tells who has it; so the file of a process that
was killed is no obstacle, and the file is never removed: whoever waits on a removed file holds a
lock that nobody sees.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreError

if TYPE_CHECKING:
    from pathlib import Path


class OwnerLock:
    """Held from creation to `release`.

    Raises:
        StoreError: another process has it; the message names the process.
    """

    def __init__(self, path: Path, *, what: Path) -> None:
        self._descriptor: int | None = None
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"cannot lock {what}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise StoreError(f"{what} is in use by pid {owner or 'unknown'}") from error
        with suppress(OSError):  # a full disk must not keep a crawl from going on
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let the next owner in; twice is harmless."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
