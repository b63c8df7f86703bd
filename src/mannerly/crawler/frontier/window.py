"""One host's queue: a window of it in memory, the rest on disk.

    order      robots.txt, due retries, then the window in order of (priority, seq)
    cursor     the window holds everything queued up to the cursor, and nothing beyond it

So an arrival at or before the cursor belongs in the window, and a later one is only counted: the
next read past the cursor will find it. When a window outgrows its limit its tail is let go and the
cursor moves back; the store still has those entries, because being read removes nothing. What was
handed out meanwhile may then lie beyond the cursor, so a refill is told what is outstanding.

Lists exist only while they hold something: most hosts of a broad crawl have one URL, and an empty
deque alone would cost 750 bytes. This file knows no time, no politeness and no other host.
"""

from __future__ import annotations

from bisect import insort
from enum import Enum
from typing import TYPE_CHECKING

from mannerly.crawler.model import RobotsRequest

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from mannerly.crawler.model import Entry
    from mannerly.politeness.model import Instant, Reason


class Place(Enum):
    """Where a host is. It is in exactly one place, and only from IDLE may it be forgotten."""

    IDLE = "idle"  # its turn is being taken; afterwards it is in another place, or forgotten
    HEAP = "heap"
    BUSY = "busy"  # in its group's line: one of the group's requests must come back first
    HUNGRY = "hungry"  # its turn came, its window is empty, and the store has more
    ROBOTS_LINE = "robots_line"  # its turn came for a robots.txt, and too many are being fetched
    ASLEEP = "asleep"  # until `wake`


class HostQueue:
    """The queue of one host, and where the host is."""

    __slots__ = (
        "cursor_priority",
        "cursor_seq",
        "due",
        "front",
        "host",
        "on_disk",
        "place",
        "reason",
        "window",
    )

    def __init__(self, host: str, on_disk: int = 0) -> None:
        self.host = host
        self.on_disk = on_disk
        self.front: list[Entry | RobotsRequest] | None = None
        self.window: list[Entry] | None = None  # last goes first
        # Two numbers that the last entry holds anyway, where a tuple would cost its own memory.
        self.cursor_priority = -1
        self.cursor_seq = -1
        self.place = Place.IDLE
        self.reason: Reason | None = None  # what it said it waits for, while it is in the heap
        self.due: Instant | None = None  # when to ask it, while it is in the heap

    def __repr__(self) -> str:
        return f"<HostQueue {self.host} {self.place.value}, {len(self)} here, {self.on_disk} there>"

    def __len__(self) -> int:
        """How many items are in memory."""
        return len(self.front or ()) + len(self.window or ())

    @property
    def is_spent(self) -> bool:
        """Nothing is left to hand out, here or on disk."""
        return not self.on_disk and self.front is None and self.window is None

    @property
    def cursor(self) -> tuple[int, int]:
        """The last (priority, seq) that the window covers."""
        return self.cursor_priority, self.cursor_seq

    # ------------------------------------------------------------------ in

    def add(self, entry: Entry, room: int) -> int:
        """Take in an arrival; returns by how much the window grew.

        It grows to at most `room` entries, but an arrival before the cursor always finds a place.
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
        """Take in what the store has past the cursor; returns how many were not outstanding."""
        fresh = [entry for entry in entries if entry.seq not in outstanding]
        if fresh:
            self.window = fresh[::-1] + (self.window or [])
        if entries:
            self._move_cursor(entries[-1])
        # A short read proves the end; a full one proves nothing, so at least one more is assumed.
        # A count that was wrong for any reason is thereby put right, in both directions.
        self.on_disk = 0 if is_end else max(1, self.on_disk - len(fresh))
        return len(fresh)

    def push_robots(self, request: RobotsRequest) -> None:
        """Queue a request for a robots.txt, before retries: one may be waiting for these rules."""
        self.front = [request, *(self.front or ())]

    def pull_robots(self, request: RobotsRequest) -> bool:
        """Take a request for a robots.txt out again; return whether it was still here."""
        if self.front is None or request not in self.front:
            return False
        self.front.remove(request)
        self.front = self.front or None
        return True

    def push_retry(self, entry: Entry) -> None:
        """A retry goes behind the retries that were due before it, ahead of the window."""
        if self.front is None:
            self.front = [entry]
        else:
            self.front.append(entry)

    # ------------------------------------------------------------------ out

    def peek(self, index: int) -> Entry | RobotsRequest | None:
        """The item that is `index` places from its turn."""
        front, window = self.front, self.window
        if front is not None:
            if index < len(front):
                return front[index]
            index -= len(front)
        return window[-1 - index] if window is not None and index < len(window) else None

    def remove(self, index: int) -> None:
        """Take out what `peek` showed."""
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
        """Let everything go; return the requests for robots.txt, which are stored nowhere else."""
        requests = [item for item in self.front or () if isinstance(item, RobotsRequest)]
        self.front = self.window = None
        self.on_disk = 0
        return requests

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
