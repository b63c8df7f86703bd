"""Which host may be asked next: soonest first, in order among equals.

    a line for each instant, in order of asking; a heap of the instants that have a line
    a place in a line is live iff queue.due is that line's instant

Many hosts share an instant (what a page or a list brings is due at once), and where they do not,
numbers are compared faster than hosts. Bringing a host forward gives it a place in another line and
leaves the old one behind as waste, which is passed over when its turn comes and swept when it
exceeds half of all places. Putting a host back by a *later* instant does nothing: it is asked too
early once, and then says itself until when to wait. So no host overtakes one that waits longer.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant

    from .window import HostQueue

_TOLERATED_WASTE = 64


class HostHeap:
    """Hosts by the instant at which each may next be asked."""

    __slots__ = ("_instants", "_lines", "_live", "_passed", "_places")

    def __init__(self) -> None:
        self._lines: dict[Instant, list[HostQueue]] = {}
        self._instants: list[Instant] = []
        self._passed = 0  # places at the beginning of the first line whose turn is over
        self._places = 0  # in all lines, without those
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def put(self, queue: HostQueue, due: Instant) -> None:
        """Ask this host at `due`, or earlier if that was agreed before."""
        if queue.due is None:
            self._live += 1
        elif due >= queue.due:
            return
        queue.due = due
        self._places += 1
        line = self._lines.get(due)
        if line is not None:
            line.append(queue)
        else:
            self._open(due, queue)
        if self._places - self._live > _TOLERATED_WASTE + self._places // 2:
            self._sweep()

    def remove(self, queue: HostQueue) -> None:
        """Forget when to ask this host, if that was agreed."""
        if queue.due is not None:
            queue.due = None
            self._live -= 1

    def pop_due(self, now: Instant) -> HostQueue | None:
        """The next host whose instant has come; it is in no line any more."""
        instants = self._instants
        while instants and instants[0] <= now:
            line, place = self._lines[instants[0]], self._passed
            if place == len(line):
                self._close()
                continue
            queue = line[place]
            self._passed = place + 1
            self._places -= 1
            if queue.due == instants[0]:
                queue.due = None
                self._live -= 1
                return queue
        return None

    def next_due(self) -> Instant | None:
        """When the next host is to be asked."""
        instants = self._instants
        while instants:
            line = self._lines[instants[0]]
            while self._passed < len(line):
                if line[self._passed].due == instants[0]:
                    return instants[0]
                self._passed += 1
                self._places -= 1
            self._close()
        return None

    def count_due(self, now: Instant, at_most: int) -> int:
        """How many hosts could be asked now. Only the due part of the heap is walked."""
        instants, found, branches = self._instants, 0, [0]
        while branches and found < at_most:
            at = branches.pop()
            if at < len(instants) and instants[at] <= now:
                first = self._passed if at == 0 else 0
                line = islice(self._lines[instants[at]], first, first + at_most)
                found += sum(queue.due == instants[at] for queue in line)
                branches += (2 * at + 1, 2 * at + 2)
        return min(found, at_most)

    def check(self) -> None:
        """Assert that every place but the waste is live, and the waste is bounded."""
        lines = self._lines.items()
        live = {queue.host for due, line in lines for queue in line if queue.due == due}
        assert len(live) == self._live
        assert self._places == sum([len(line) for _, line in lines]) - self._passed
        assert sorted(self._lines) == sorted(self._instants)
        assert 0 <= self._places - self._live <= _TOLERATED_WASTE + 1 + self._places // 2

    def _open(self, due: Instant, queue: HostQueue) -> None:
        """Begin a line, which may become the first."""
        if self._passed and due < self._instants[0]:
            self._trim()
        self._lines[due] = [queue]
        heappush(self._instants, due)

    def _close(self) -> None:
        """Everybody in the first line has had a turn."""
        del self._lines[heappop(self._instants)]
        self._passed = 0

    def _trim(self) -> None:
        """Let go of the places that were passed."""
        if self._passed:
            del self._lines[self._instants[0]][: self._passed]
            self._passed = 0

    def _sweep(self) -> None:
        self._trim()
        live = {
            due: [queue for queue in line if queue.due == due] for due, line in self._lines.items()
        }
        self._lines = {due: line for due, line in live.items() if line}
        self._instants = list(self._lines)
        heapify(self._instants)
        self._places = sum(map(len, self._lines.values()))
