"""Which host may be asked next: one live ticket a host, soonest first, in order among equals.

    ticket = (due, number, queue)          live iff queue.ticket is that very tuple

Bringing a host forward makes a new ticket and leaves the old one behind as waste, which is passed
over when it surfaces and swept when it exceeds half the heap. Putting a host back by a *later*
instant does nothing: it is asked too early once, and then says itself until when to wait. So the
order among equal instants is the order of asking, and no host overtakes one that waits longer.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant

    from .window import HostQueue, Ticket

_TOLERATED_WASTE = 64


class HostHeap:
    """Hosts by the instant at which each may next be asked."""

    __slots__ = ("_number", "_tickets", "_waste")

    def __init__(self) -> None:
        self._tickets: list[Ticket] = []
        self._number = 0
        self._waste = 0

    def __len__(self) -> int:
        return len(self._tickets) - self._waste

    def put(self, queue: HostQueue, due: Instant) -> None:
        """Ask this host at `due`, or earlier if that was agreed before."""
        ticket = queue.ticket
        if ticket is not None:
            if due >= ticket[0]:
                return
            self._waste += 1
        self._number += 1
        queue.ticket = ticket = (due, self._number, queue)
        heappush(self._tickets, ticket)
        if self._waste > _TOLERATED_WASTE + len(self._tickets) // 2:
            self._sweep()

    def remove(self, queue: HostQueue) -> None:
        """Forget the host's ticket, if it has one."""
        if queue.ticket is not None:
            queue.ticket = None
            self._waste += 1

    def pop_due(self, now: Instant) -> HostQueue | None:
        """The next host whose instant has come; it has no ticket any more."""
        tickets = self._tickets
        while tickets and tickets[0][0] <= now:
            ticket = heappop(tickets)
            queue = ticket[2]
            if queue.ticket is ticket:
                queue.ticket = None
                return queue
            self._waste -= 1
        return None

    def next_due(self) -> Instant | None:
        """When the next host is to be asked."""
        tickets = self._tickets
        while tickets and tickets[0][2].ticket is not tickets[0]:
            heappop(tickets)
            self._waste -= 1
        return tickets[0][0] if tickets else None

    def count_due(self, now: Instant, at_most: int) -> int:
        """How many hosts could be asked now. Only the due part of the heap is walked."""
        tickets, found, branches = self._tickets, 0, [0]
        while branches and found < at_most:
            at = branches.pop()
            if at < len(tickets) and tickets[at][0] <= now:
                found += tickets[at][2].ticket is tickets[at]
                branches += (2 * at + 1, 2 * at + 2)
        return found

    def check(self) -> None:
        """Assert that every ticket but the waste is live, and the waste is bounded."""
        live = [ticket[2] for ticket in self._tickets if ticket[2].ticket is ticket]
        assert len(live) == len(self) == len({queue.host for queue in live})
        assert 0 <= self._waste <= _TOLERATED_WASTE + 1 + len(self._tickets) // 2

    def _sweep(self) -> None:
        self._tickets = [ticket for ticket in self._tickets if ticket[2].ticket is ticket]
        heapify(self._tickets)
        self._waste = 0
