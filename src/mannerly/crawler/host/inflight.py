"""The requests of a shard, from the grant of a slot to the commit of the result.

    granted ──► sent ──► (reading) ──► (delivered) ──► settled ──► committed
                   └──► ended: put back for a retry, or a robots.txt

Only this module counts requests in flight, of a shard and of each host; all others ask it. A page
counts until its result is committed: `pending` is what a crash would cost. `concurrency` limits
`pending`; in a shared crawl it limits `unsettled`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from mannerly.crawler.model import Entry, Request, RobotsRequest
    from mannerly.politeness.model import Permit

    from .host import Host
    from .hosts import Hosts


class Stage(IntEnum):
    """The progress of a request."""

    GRANTED = 0  # it has a slot; its connection may still be opening
    SENT = 1
    READING = 2  # its page is being parsed in another process
    DELIVERED = 3  # its page was handed to the program that iterates over the crawl
    SETTLED = 4  # its result is in the batch that the next commit writes


_GRANTED, _SENT, _READING = Stage.GRANTED, Stage.SENT, Stage.READING
_DELIVERED, _SETTLED = Stage.DELIVERED, Stage.SETTLED
_ROBOTS = Kind.ROBOTS


class InFlight:
    """One request, from the grant of its slot until its result is committed.

    Its host counts it from here until it has a result (`Flights.settle`, `end`). `shard`
    is the number of the shard that it belongs to.
    """

    __slots__ = ("host", "item", "permit", "shard", "stage")

    def __init__(self, item: Entry | RobotsRequest, permit: Permit, host: Host) -> None:
        self.item = item
        self.permit = permit
        self.host = host
        self.shard = 0
        self.stage = _GRANTED
        host.begin(item.kind)

    def __repr__(self) -> str:
        return f"<InFlight {self.item.url} {self.stage.name.lower()}>"


def flight_of(request: Request) -> InFlight:
    """Return the flight that a request of a shard belongs to."""
    flight = request.flight
    assert isinstance(flight, InFlight), "every request of a shard has its flight"
    return flight


class Flights:
    """Counts the requests of one shard by how far they have come."""

    __slots__ = (
        *("_hosts", "_number", "_robots_limit", "_unsettled", "_with_pages"),
        *("delivered", "pending", "reading", "settled"),
    )

    def __init__(self, shard: int, hosts: Hosts, robots_limit: int) -> None:
        self._number = shard
        self._hosts = hosts
        self._robots_limit = robots_limit
        self.pending = 0  # requests that a crash now would cost
        self.reading = 0  # of these, pages that are being parsed in other processes
        self.delivered = 0  # pages with the program that iterates over the crawl
        self.settled = 0  # pages whose result waits for a commit
        self._unsettled = [0] * len(KINDS)  # requests that are not settled yet, by kind
        self._with_pages: set[Host] = set()

    def __repr__(self) -> str:
        away = f"{self.on_wire} on the wire, {self.reading} reading, {self.delivered} delivered"
        return f"<Flights {away}, {self.settled} settled>"

    # ------------------------------------------------------------------ how many

    @property
    def on_wire(self) -> int:
        """Requests that were granted and have not been answered."""
        return self.pending - self.reading - self.delivered - self.settled

    @property
    def unsettled(self) -> int:
        """Requests that have no result yet."""
        return self.pending - self.settled

    @property
    def hosts(self) -> Collection[Host]:
        """Return the hosts of the pages that are not settled yet."""
        return self._with_pages

    @property
    def robots(self) -> int:
        """Requests for a robots.txt that were not answered."""
        return self._unsettled[_ROBOTS]

    @property
    def robots_room(self) -> int:
        """Requests for a robots.txt that may be started beside those."""
        return self._robots_limit - self._unsettled[_ROBOTS]

    # ------------------------------------------------------------------ from stage to stage

    def begin(self, flight: InFlight) -> None:
        """A slot was granted."""
        flight.shard = self._number
        self.pending += 1
        host = flight.host
        self._unsettled[flight.item.kind] += 1
        if host.pages:
            self._with_pages.add(host)
        assert host.budget is not None, "a host is known before it is asked"
        host.budget.connects(flight)

    def sent(self, flight: InFlight) -> None:
        """Its bytes have left."""
        self._has_left(flight)
        flight.stage = _SENT

    def read(self, flight: InFlight) -> None:
        """Its page is being parsed elsewhere."""
        self.reading += flight.stage is not _READING
        flight.stage = _READING

    def deliver(self, flight: InFlight) -> None:
        """Its page was handed to the program that iterates over the crawl."""
        self._come_back(flight)
        self.delivered += 1
        flight.stage = _DELIVERED

    def settle(self, flight: InFlight) -> None:
        """Its result is in the batch."""
        self._leave_host(flight)
        self._come_back(flight)
        self.settled += 1
        flight.stage = _SETTLED

    def answered(self, flight: InFlight) -> None:
        """An answer or a failure came back: it does not connect any more."""
        if flight.stage is _GRANTED:
            self._has_left(flight)

    def end(self, flight: InFlight) -> None:
        """It has no result: it will be asked for again, was given up, or was a robots.txt."""
        self.answered(flight)
        self._leave_host(flight)
        self._come_back(flight)
        self.pending -= 1

    def committed(self) -> None:
        """Everything that was settled is in the store."""
        self.pending -= self.settled
        self.settled = 0

    def _come_back(self, flight: InFlight) -> None:
        """It was with another process, or with the program, perhaps."""
        if flight.stage is _READING:
            self.reading -= 1
        elif flight.stage is _DELIVERED:
            self.delivered -= 1

    def _has_left(self, flight: InFlight) -> None:
        budget = flight.host.budget
        if budget is not None:
            budget.has_left(flight)

    def _leave_host(self, flight: InFlight) -> None:
        host, kind = flight.host, flight.item.kind
        self._unsettled[kind] -= 1
        host.end(kind)
        if host.pages == 0:
            self._with_pages.discard(host)
        if host.under_way == 0 and host.budget is None:
            self._hosts.release(host)
