"""Control records, as a run reads and writes them: what is busy or full is tried again later.

Any process may write control records, and one that was stopped in the middle of that keeps the
others waiting. No run ends for this: what is new is read later, and what this run has to say to its
other workers is kept until it is written.
"""

from __future__ import annotations

from bisect import bisect_right
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING

from mannerly.crawler.control import FetchRobots
from mannerly.crawler.store.base import StoreBusy, StoreFull
from mannerly.crawler.store.fleet import StoreAway

if TYPE_CHECKING:
    from mannerly.crawler.control import Control
    from mannerly.crawler.store.base import CrawlStore
    from mannerly.politeness.model import Instant

# Redirects of robots.txt come from the web, so there is no end of them. Each is asked for within
# seconds or given up: a shard that is opened later needs only the latest ones.
ROBOTS_KEPT = 1000
AGAIN_S = 5.0  # between two tries to write: each may wait for seconds, and the loop with it


class OrderBook:
    """The control records of a crawl, for one reader of its run."""

    def __init__(self, store: CrawlStore) -> None:
        self._store = store
        self.past: list[tuple[int, Control]] = []  # that were read, with their numbers
        self._robots = 0  # of these, the requests for a robots.txt
        self._unsent: list[Control] = []
        self._next_try: Instant = -inf
        self.trouble: str | None = None  # why records cannot be read or written at present

    def news(self) -> list[tuple[int, Control]]:
        """Return the records that are new, with their numbers; nothing while the file is busy."""
        try:
            new = self._store.orders(after=self.last)
        except (StoreBusy, StoreAway) as error:
            self.trouble = str(error)
            return []
        if not self._unsent:
            self.trouble = None
        self.past += new
        self._robots += sum(isinstance(order, FetchRobots) for _, order in new)
        if self._robots > 2 * ROBOTS_KEPT:
            self._forget_robots()
        return new

    def _forget_robots(self) -> None:
        """Keep the latest requests for a robots.txt, and every other record."""
        too_many = self._robots - ROBOTS_KEPT
        kept: list[tuple[int, Control]] = []
        for number, order in self.past:
            if too_many and isinstance(order, FetchRobots):
                too_many -= 1
            else:
                kept.append((number, order))
        self.past, self._robots = kept, ROBOTS_KEPT

    def after(self, number: int) -> list[tuple[int, Control]]:
        """Return the records that were read, past the one with this number."""
        return self.past[bisect_right(self.past, number, key=itemgetter(0)) :]

    @property
    def last(self) -> int:
        """The number of the last one that was read."""
        return self.past[-1][0] if self.past else 0

    @property
    def has_news(self) -> bool:
        """Return whether there may be records to act on, or some that are not written yet."""
        if self._unsent:
            return True
        try:
            return bool(self._store.orders(after=self.last))
        except (StoreBusy, StoreAway):
            return True

    def send(self, *records: Control) -> None:
        """Take in records that `flush` will write."""
        self._unsent += records

    def flush(self, now: Instant) -> None:
        """Write what was sent; what cannot be written now stays for a later turn."""
        if not self._unsent or now < self._next_try:
            return
        try:
            while self._unsent:
                self._store.order(self._unsent[0])
                del self._unsent[0]
            self.trouble = None
        except (StoreBusy, StoreFull, StoreAway) as error:
            self.trouble = str(error)
            self._next_try = now + AGAIN_S
