"""Settle lists: what they name goes into the batch, a slice with every commit.

A sitemap names up to 50,000 URLs, and one commit of them would stop the loop. The record of a list
goes with its last slice. Until then it counts as in flight, and a crash has it fetched again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mannerly.crawler.events import ListSettled

if TYPE_CHECKING:
    from mannerly.crawler.host.inflight import InFlight
    from mannerly.crawler.model import Entry, RawExchange
    from mannerly.crawler.page.record import Harvest

    from .parts import Parts

SLICE = 5000  # URLs of lists that one commit takes: 30 ms


class Lists:
    """The lists of a shard that are being settled, in the order in which they came."""

    def __init__(self) -> None:
        self._lists: deque[tuple[InFlight, Entry, Harvest, RawExchange | None]] = deque()

    def add(
        self, flight: InFlight, entry: Entry, found: Harvest, exchange: RawExchange | None = None
    ) -> None:
        """Take a list that was read; `exchange` is its answer if that is kept."""
        self._lists.append((flight, entry, found, exchange))

    def settle(self, parts: Parts) -> None:
        """Fill the batch up to a slice, and settle the lists that are finished."""
        batch, lists = parts.pending.batch, self._lists
        while lists and (room := SLICE - len(batch.found) - len(batch.outgoing)) > 0:
            flight, entry, found, exchange = lists[0]
            candidates = found.found
            parts.routes.links(candidates[:room], batch)
            del candidates[:room]
            if candidates:  # known ones leave room for more of the list
                continue
            lists.popleft()
            parts.flights.settle(flight)
            batch.pages.append((entry, found.record))
            batch.listed += found.listed
            for settle in parts.plugins.settle:
                settle(entry, found, exchange, parts.pending)
            parts.emit(ListSettled(entry, found.record, found.passed_over))
