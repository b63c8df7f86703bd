"""Wake a loop that sleeps on descriptors, with items for it or without."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")


class Waker:
    """Wakes a loop that sleeps on descriptors. It has no lock, so a signal handler may call it."""

    def __init__(self) -> None:
        self._sender, self._receiver = socket.socketpair()
        self._sender.setblocking(False)
        self._receiver.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor, readable from `wake` to `clear`."""
        return self._receiver.fileno()

    def wake(self) -> None:
        """Wake the loop. Any thread may call this; after `close` it does nothing."""
        with suppress(OSError):  # it is full, so the loop is awake already; or closed
            self._sender.send(b"!")

    def clear(self) -> None:
        """Let the loop sleep again."""
        with suppress(BlockingIOError):
            self._receiver.recv(4096)

    def close(self) -> None:
        """Close the descriptors; closing twice is harmless."""
        self._sender.close()
        self._receiver.close()


class WakingQueue(Generic[T]):
    """Takes items from any thread to a loop that sleeps on descriptors.

    The lock keeps two things together, the items and the byte that wakes the loop: it is there
    exactly while there are items. A byte too few would let the loop sleep, one too many would keep
    it from sleeping at all.
    """

    def __init__(self) -> None:
        self._items: list[T] = []
        self._lock = threading.Lock()
        self._waker = Waker()
        self.fileno = self._waker.fileno  # readable while there are items
        self._is_closed = False

    def put(self, items: Iterable[T]) -> None:
        """Add items, and wake the loop. Any thread may call this; after `close` it does nothing."""
        with self._lock:
            if self._is_closed:
                return
            was_empty = not self._items
            self._items.extend(items)
            if was_empty and self._items:
                self._waker.wake()

    def take(self) -> list[T]:
        """Return all items, without waiting."""
        if not self._items:
            return []
        with self._lock:
            items, self._items = self._items, []
            self._waker.clear()
        return items

    def close(self) -> None:
        """Close the descriptors; closing twice is harmless."""
        with self._lock:
            self._is_closed = True
            self._waker.close()
