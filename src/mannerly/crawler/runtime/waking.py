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
    """Wakes a loop that sleeps on descriptors. It has no lock: a signal handler may call `wake`."""

    def __init__(self) -> None:
        self._sender, self._receiver = socket.socketpair()
        self._sender.setblocking(False)
        self._receiver.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor, readable after `wake`."""
        return self._receiver.fileno()

    def wake(self) -> None:
        """Wake the loop. Any thread may call this; after `close` it does nothing."""
        with suppress(OSError):  # it is full, so it is awake; or closed
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
        self._sender, self._receiver = socket.socketpair()
        self._sender.setblocking(False)
        self._receiver.setblocking(False)
        self._is_closed = False

    def fileno(self) -> int:
        """Return the descriptor, readable while there are items."""
        return self._receiver.fileno()

    def put(self, items: Iterable[T]) -> None:
        """Add items, and wake the loop. Any thread may call this; after `close` it does nothing."""
        with self._lock:
            if self._is_closed:
                return
            was_empty = not self._items
            self._items.extend(items)
            if was_empty and self._items:
                self._sender.send(b"!")

    def take(self) -> list[T]:
        """Return all items, without waiting."""
        if not self._items:
            return []
        with self._lock:
            items, self._items = self._items, []
            self._receiver.recv(1)
        return items

    def close(self) -> None:
        """Close the descriptors; closing twice is harmless."""
        with self._lock:
            self._is_closed = True
            self._sender.close()
            self._receiver.close()
