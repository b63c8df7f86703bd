"""Wake a loop that sleeps on descriptors, with items for it or without."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")


class Bell:
    """Wakes a loop that sleeps on descriptors. It has no lock, so a signal handler may ring it."""

    def __init__(self) -> None:
        self._bell, self._rung = socket.socketpair()
        self._bell.setblocking(False)
        self._rung.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor, readable while it rings."""
        return self._rung.fileno()

    def ring(self) -> None:
        """Wake the loop. Any thread may call this; after `close` it does nothing."""
        with suppress(OSError):  # it is full, so it rings already; or closed
            self._bell.send(b"!")

    def hush(self) -> None:
        """Let the loop sleep again."""
        with suppress(BlockingIOError):
            self._rung.recv(4096)

    def close(self) -> None:
        """Close the descriptors; closing twice is harmless."""
        self._bell.close()
        self._rung.close()


class WakingQueue(Generic[T]):
    """Takes items from any thread to a loop that sleeps on descriptors.

    The lock keeps two things together, the items and the byte that wakes the loop: it is there
    exactly while there are items. A byte too few would let the loop sleep, one too many would keep
    it from sleeping at all.
    """

    def __init__(self) -> None:
        self._items: list[T] = []
        self._lock = threading.Lock()
        self._bell, self._rung = socket.socketpair()
        self._bell.setblocking(False)
        self._rung.setblocking(False)
        self._is_closed = False

    def fileno(self) -> int:
        """Return the descriptor, readable while there are items."""
        return self._rung.fileno()

    def put(self, items: Iterable[T]) -> None:
        """Add items, and wake the loop. Any thread may call this; after `close` it does nothing."""
        with self._lock:
            if self._is_closed:
                return
            was_empty = not self._items
            self._items.extend(items)
            if was_empty and self._items:
                self._bell.send(b"!")

    def take(self) -> list[T]:
        """Return all items, without waiting."""
        if not self._items:
            return []
        with self._lock:
            items, self._items = self._items, []
            self._rung.recv(1)
        return items

    def close(self) -> None:
        """Close the descriptors; closing twice is harmless."""
        with self._lock:
            self._is_closed = True
            self._bell.close()
            self._rung.close()
