"""One host's queue: a window of it in memory, the rest on disk.

    order      robots.txt, due retries, then the window in order of (priority, seq)
    cursor     the window holds everything queued up to the cursor, and nothing beyond it

So a new entry at or before the cursor belongs in the window, and a later one is only counted: the
next read past the cursor will find it. When a window outgrows its limit, its tail is dropped and
the cursor moves back; the store still has those entries, because reading removes nothing. Entries
that were taken meanwhile may then lie beyond the cursor, so a refill is told which are outstanding.

Lists exist only while they hold something: most hosts of a broad crawl have one URL, and an empty
deque alone takes 750 bytes. This module knows no time, no politeness and no other host.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import RobotsRequest

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from mannerly.crawler.model import Entry


class HostQueue:
    """The queue of one host."""

    __slots__ = ("cursor_priority", "cursor_seq", "front", "name", "on_disk", "window")

    def __init__(self, name: str, on_disk: int = 0) -> None:
        self.name = name
        self.on_disk = on_disk
        self.front: list[Entry | RobotsRequest] | None = None
        self.window: list[Entry] | None = None  # the last entry is the next one
        # Two numbers instead of a tuple, which would take more memory.
        self.cursor_priority = -1
        self.cursor_seq = -1

    @property
    def in_memory(self) -> int:
        """Return the number of items in memory."""
        return len(self.front or ()) + len(self.window or ())

    @property
    def urls(self) -> int:
        """Return how many URLs wait, in memory and on disk."""
        robots = sum(isinstance(item, RobotsRequest) for item in self.front or ())
        return self.queued - robots

    @property
    def queued(self) -> int:
        """Return the number of items in memory and on disk."""
        return self.in_memory + self.on_disk

    @property
    def is_spent(self) -> bool:
        """Return whether nothing is queued, in memory or on disk."""
        return not self.on_disk and self.front is None and self.window is None

    @property
    def cursor(self) -> tuple[int, int]:
        """Return the last (priority, seq) that the window covers."""
        return self.cursor_priority, self.cursor_seq

    # ------------------------------------------------------------------ in

    def add(self, entry: Entry, room: int) -> int:
        """Add a new entry; return by how much the window grew.

        It grows to at most `room` entries, but an entry before the cursor is always added.
        """
        window = self.window
        if (entry.priority, entry.seq) <= (self.cursor_priority, self.cursor_seq):
            if window is None:
                self.window = [entry]
                return 1
            insort(window, entry, key=_backwards)
            return 1 - self._cut(max(1, room))
        if not self.on_disk and (0 if window is None else len(window)) < room:
            if window is None:
                self.window = [entry]
            else:
                window.insert(0, entry)
            self._move_cursor(entry)
            return 1
        self.on_disk += 1
        return 0

    def refill(self, entries: Sequence[Entry], outstanding: Container[int], *, is_end: bool) -> int:
        """Add entries that the store has past the cursor; return how many were not outstanding."""
        fresh = [entry for entry in entries if entry.seq not in outstanding]
        if fresh:
            self.window = fresh[::-1] + (self.window or [])
        if entries:
            self._move_cursor(entries[-1])
        # A short read proves the end. After a full one, at least one more entry is assumed. Either
        # way a count that was wrong for any reason is corrected.
        self.on_disk = 0 if is_end else max(1, self.on_disk - len(fresh))
        return len(fresh)

    def push_robots(self, request: RobotsRequest) -> None:
        """Queue a request for a robots.txt, before retries: one may be waiting for these rules."""
        self.front = [request, *(self.front or ())]

    def pull(self, item: Entry | RobotsRequest) -> bool:
        """Take out again what was queued ahead of the window; return whether it was still here."""
        if self.front is None or item not in self.front:
            return False
        self.front.remove(item)
        self.front = self.front or None
        return True

    def push_retry(self, entry: Entry) -> None:
        """Queue a retry: behind earlier retries, ahead of the window."""
        if self.front is None:
            self.front = [entry]
        else:
            self.front.append(entry)

    # ------------------------------------------------------------------ out

    def peek(self, index: int) -> Entry | RobotsRequest | None:
        """Return the item at `index`, in order of their turn; None if there is none."""
        front, window = self.front, self.window
        if front is not None:
            if index < len(front):
                return front[index]
            index -= len(front)
        return window[-1 - index] if window is not None and index < len(window) else None

    def link_to(self, url: str) -> Entry | None:
        """Return the link to a URL that is in the window; None if there is none."""
        for entry in self.window or ():
            if entry.url == url and KINDS[entry.kind].is_link:
                return entry
        return None

    def remove(self, index: int) -> None:
        """Remove the item at `index`, as `peek` returned it."""
        if self.front is not None:
            if index < len(self.front):
                del self.front[index]
                self.front = self.front or None
                return
            index -= len(self.front)
        window = self.window
        assert window is not None
        del window[-1 - index]
        if not window:
            self.window = None

    def clear(self) -> list[RobotsRequest]:
        """Remove everything; return the requests for robots.txt, which are stored nowhere else."""
        requests = [item for item in self.front or () if isinstance(item, RobotsRequest)]
        self.front = self.window = None
        self.on_disk = 0
        return requests

    def begin_anew(self, on_disk: int) -> None:
        """Count the entries of an empty queue that the store has; none of them is in memory."""
        self.on_disk = on_disk
        self.cursor_priority = self.cursor_seq = -1

    # ------------------------------------------------------------------ the window

    def _cut(self, room: int) -> int:
        assert self.window is not None
        excess = max(0, len(self.window) - room)
        if excess:
            del self.window[:excess]
            self.on_disk += excess
            self._move_cursor(self.window[0])
        return excess

    def _move_cursor(self, last: Entry) -> None:
        self.cursor_priority, self.cursor_seq = last.priority, last.seq

    def check(self) -> None:
        """Assert the order of the window and the meaning of the cursor."""
        window = self.window
        if window is not None:
            last = window[0]
            assert (last.priority, last.seq) <= self.cursor
            if len(window) > 1:
                keys = [(entry.priority, entry.seq) for entry in reversed(window)]
                assert keys == sorted(set(keys))
        assert self.front is None or self.front
        assert self.on_disk >= 0


def _backwards(entry: Entry) -> tuple[int, int]:
    return -entry.priority, -entry.seq
