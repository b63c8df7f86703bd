"""The requests of a shard, from the grant of a slot to the commit of the result.

    granted ──► sent ──► (reading) ──► (delivered) ──► settled ──► committed
                   └──► ended: put back for a retry, or a robots.txt

Only this module counts requests in flight; all others ask it. A page counts until
its result is committed: `pending` is what a crash would cost, and what `workers` limits. Where
commits are seldom (`Rhythm.uncommitted`), `workers` limits those that are `unsettled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS, Kind, Limit
from mannerly.crawler.model import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.model import InFlight

_GRANTED, _SENT, _READING = Stage.GRANTED, Stage.SENT, Stage.READING
_DELIVERED, _SETTLED = Stage.DELIVERED, Stage.SETTLED
_PAGES, _SITEMAPS, _ROBOTS = Limit.PAGES, Limit.SITEMAPS, Kind.ROBOTS


class Flights:
    """Counts the requests of one shard by how far they have come."""

    __slots__ = ("_by_kind", "_counts", "_number", "_of_limit", "_unsettled", "unsent")

    def __init__(self, shard: int) -> None:
        self._number = shard
        self._counts = [0] * len(Stage)
        self._unsettled = [0] * len(KINDS)  # requests that are not settled yet, by kind
        # The same by host: those that a limit is for share a count.
        self._of_limit: dict[Limit, dict[str, int]] = {limit: {} for limit in Limit}
        self._by_kind = tuple(self._of_limit[row.limit] for row in KINDS)
        self.unsent: dict[str, InFlight] = {}  # the latest of a budget, while it connects

    def __repr__(self) -> str:
        stages = ", ".join(f"{self._counts[stage]} {stage.name.lower()}" for stage in Stage)
        return f"<Flights {stages}>"

    # ------------------------------------------------------------------ how many

    @property
    def on_wire(self) -> int:
        """Requests that were granted and have not been answered."""
        return self._counts[_GRANTED] + self._counts[_SENT]

    @property
    def reading(self) -> int:
        """Pages that are being parsed in other processes."""
        return self._counts[_READING]

    @property
    def delivered(self) -> int:
        """Pages that the program which iterates over the crawl has not acknowledged."""
        return self._counts[_DELIVERED]

    @property
    def settled(self) -> int:
        """Pages whose result waits for a commit."""
        return self._counts[_SETTLED]

    @property
    def unsettled(self) -> int:
        """Requests that have no result yet."""
        return self.pending - self._counts[_SETTLED]

    @property
    def pending(self) -> int:
        """Requests that a crash now would cost."""
        return sum(self._counts)

    @property
    def hosts(self) -> Iterable[str]:
        """Return the hosts of the pages that are not settled yet."""
        return self._of_limit[_PAGES].keys()

    def pages_of(self, host: str) -> int:
        """Pages of a host that have no result yet."""
        return self._of_limit[_PAGES].get(host, 0)

    def sitemaps_of(self, host: str) -> int:
        """Sitemaps of a host that have no result yet."""
        return self._of_limit[_SITEMAPS].get(host, 0)

    @property
    def robots(self) -> int:
        """Requests for a robots.txt that were not answered."""
        return self._unsettled[_ROBOTS]

    def is_connecting(self, key: str) -> bool:
        """Return whether the latest request of a budget has not left: its gap has not begun.

        A budget without a gap may open several connections at once.
        """
        flight = self.unsent.get(key)
        return flight is not None and flight.permit.host.delay_s > 0.0

    # ------------------------------------------------------------------ from stage to stage

    def begin(self, flight: InFlight) -> None:
        """A slot was granted."""
        flight.shard = self._number
        self._counts[_GRANTED] += 1
        item = flight.item
        self._unsettled[item.kind] += 1
        hosts = self._by_kind[item.kind]
        hosts[item.host] = hosts.get(item.host, 0) + 1
        self.unsent[flight.permit.host.key] = flight

    def sent(self, flight: InFlight) -> None:
        """Its bytes have left."""
        self._has_left(flight)
        self._move(flight, _SENT)

    def read(self, flight: InFlight) -> None:
        """Its page is being parsed elsewhere."""
        self._move(flight, _READING)

    def deliver(self, flight: InFlight) -> None:
        """Its page was handed to the program that iterates over the crawl."""
        self._move(flight, _DELIVERED)

    def settle(self, flight: InFlight) -> None:
        """Its result is in the batch."""
        self._leave_host(flight)
        self._move(flight, _SETTLED)

    def answered(self, flight: InFlight) -> None:
        """An answer or a failure came back: it does not connect any more."""
        if flight.stage is _GRANTED:
            self._has_left(flight)

    def end(self, flight: InFlight) -> None:
        """It has no result: it will be asked for again, was given up, or was a robots.txt."""
        self.answered(flight)
        self._leave_host(flight)
        self._counts[flight.stage] -= 1

    def committed(self) -> None:
        """Everything that was settled is in the store."""
        self._counts[_SETTLED] = 0

    def _move(self, flight: InFlight, stage: Stage) -> None:
        counts = self._counts
        counts[flight.stage] -= 1
        counts[stage] += 1
        flight.stage = stage

    def _has_left(self, flight: InFlight) -> None:
        key = flight.permit.host.key
        if self.unsent.get(key) is flight:
            del self.unsent[key]

    def _leave_host(self, flight: InFlight) -> None:
        item = flight.item
        self._unsettled[item.kind] -= 1
        hosts = self._by_kind[item.kind]
        left = hosts[item.host] - 1
        if left:
            hosts[item.host] = left
        else:
            del hosts[item.host]
