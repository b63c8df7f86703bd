"""A priority host of hosts by the instant at which each is due; first in, first out among equals.

    a line of hosts for each instant, and a heap of the instants that have a line
    an entry of a line is valid only if host.due is that line's instant

Many hosts share an instant (the links of a page or a list are due at once), and where they do not,
comparing numbers is faster than comparing hosts. Moving a host to an earlier instant adds it to
another line. The old entry becomes invalid: it is skipped when its turn comes, and removed when
more than half of all entries are invalid. Moving a host to a *later* instant does nothing: it is
popped too early once, and the politeness core then says until when to wait. So no host overtakes
another that has waited longer.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.crawler.host.host import Host
    from mannerly.politeness.model import Instant

_TOLERATED_WASTE = 64


class HostHeap:
    """Hosts by the instant at which each is due."""

    __slots__ = ("_instants", "_lines", "_live", "_passed", "_places")

    def __init__(self) -> None:
        self._lines: dict[Instant, list[Host]] = {}
        self._instants: list[Instant] = []
        self._passed = 0  # entries at the beginning of the first line that were popped
        self._places = 0  # entries of all lines, without the popped ones
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def put(self, host: Host, due: Instant) -> None:
        """Add a host with its instant. If it is queued already, the earlier instant counts."""
        if host.due is None:
            self._live += 1
        elif due >= host.due:
            return
        host.due = due
        self._places += 1
        line = self._lines.get(due)
        if line is not None:
            line.append(host)
        else:
            self._open(due, host)
        if self._places - self._live > _TOLERATED_WASTE + self._places // 2:
            self._sweep()

    def remove(self, host: Host) -> None:
        """Remove a host; nothing happens if it is not queued."""
        if host.due is not None:
            host.due = None
            self._live -= 1

    def pop_due(self, now: Instant) -> Host | None:
        """Remove and return the next host that is due; None if there is none."""
        instants = self._instants
        while instants and instants[0] <= now:
            line, place = self._lines[instants[0]], self._passed
            if place == len(line):
                self._close()
                continue
            host = line[place]
            self._passed = place + 1
            self._places -= 1
            if host.due == instants[0]:
                host.due = None
                self._live -= 1
                return host
        return None

    def next_due(self) -> Instant | None:
        """Return the instant of the next host; None if there is none."""
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
        """Return how many hosts are due, up to `at_most`. Only the due part of the heap is read."""
        instants, found, branches = self._instants, 0, [0]
        while branches and found < at_most:
            at = branches.pop()
            if at < len(instants) and instants[at] <= now:
                first = self._passed if at == 0 else 0
                line = islice(self._lines[instants[at]], first, first + at_most)
                found += sum(host.due == instants[at] for host in line)
                branches += (2 * at + 1, 2 * at + 2)
        return min(found, at_most)

    def check(self) -> None:
        """Assert that the counts are right and that invalid entries are bounded."""
        lines = self._lines.items()
        live = {host.name for due, line in lines for host in line if host.due == due}
        assert len(live) == self._live
        assert self._places == sum([len(line) for _, line in lines]) - self._passed
        assert sorted(self._lines) == sorted(self._instants)
        assert 0 <= self._places - self._live <= _TOLERATED_WASTE + 1 + self._places // 2

    def _open(self, due: Instant, host: Host) -> None:
        """Add a line, which may become the first."""
        if self._passed and due < self._instants[0]:
            self._trim()
        self._lines[due] = [host]
        heappush(self._instants, due)

    def _close(self) -> None:
        """Remove the first line: all its entries were popped."""
        del self._lines[heappop(self._instants)]
        self._passed = 0

    def _trim(self) -> None:
        """Remove the popped entries of the first line."""
        if self._passed:
            del self._lines[self._instants[0]][: self._passed]
            self._passed = 0

    def _sweep(self) -> None:
        self._trim()
        live = {
            due: [host for host in line if host.due == due] for due, line in self._lines.items()
        }
        self._lines = {due: line for due, line in live.items() if line}
        self._instants = list(self._lines)
        heapify(self._instants)
        self._places = sum(map(len, self._lines.values()))
