"""Limit the pages of one run (--max-urls), however many processes fetch them.

The engine of each process asks its own `PageBudget`, which never waits:

    take(n)      before looking for work: up to n pages may be started
    settle(m)    m of them were started
    give_back    a page that has to be asked for again was not fetched yet

A single process has the whole limit. Others are granted pages in chunks, by the store of a crawl
that several runs share (`FleetMember`), or by their supervisor. That has the `SharedBudget`, and
grants pages over the same channels as everything else:

    worker → supervisor    ask          it has (nearly) none left
                           returned n   unused pages, because they were recalled
                           used n       pages started since the worker began, with every report
    supervisor → worker    grant n
                           recall       give back what is unused: others wait, or the limit fell

A worker whose hosts are all waiting may hold the last pages while another worker could use them. So
while a worker waits for pages, the others are asked once a tick to return theirs, and those who
have waited longest get them. Two workers that both want the last page get it in turn until one uses
it. A page is never granted to two workers at once.

Pages granted to a worker that died are written off: it may have fetched some after its last report.

"No limit" is a limit that is never reached, with large chunks, so a limit can be set at any time.
If it falls below what was granted, unused pages are recalled; pages that were fetched stay fetched.
This module knows no process, socket or clock.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 64  # pages; a worker that dies costs the run at most so many
FREELY = 1_000_000  # pages; the chunk without a limit
LOW = CHUNK // 2  # ask before the last page is used: a grant takes a turn of the loop to arrive


class PageBudget:
    """The pages that one process may still start.

    A single process has all of `limit`. Another one begins with none (`limit` 0), asks for more
    with `ask`, and takes over what is `granted`.
    """

    def __init__(self, limit: int | None, ask: Callable[[], None] | None = None) -> None:
        self.used = 0  # pages started, less those that were given back
        self._left = _number(limit)
        self._ask = ask
        self._has_asked = False
        self._is_refused = ask is None  # no more can be granted

    def take(self, wanted: int) -> int:
        """Return how many of `wanted` pages may be started; `settle` follows."""
        if self._left <= 0:
            self._ask_once()
        return int(max(0, min(wanted, self._left)))

    def settle(self, used: int) -> None:
        """Count the pages that were started of those that were taken."""
        self._left -= used
        self.used += used
        if used and self._left < LOW:
            self._ask_once()

    def give_back(self, pages: int) -> None:
        """Take back pages that were started, failed and will be asked for again."""
        self.settle(-pages)

    @property
    def is_spent(self) -> bool:
        """Return whether nothing is left, here or where pages are granted."""
        return self._left <= 0 and self._is_refused

    def set_limit(self, limit: int | None) -> None:
        """Change the limit of this run; where pages are granted there may be more now."""
        if self._ask is None:
            self._left = _number(limit) - self.used
        else:
            self._ask()

    def granted(self, pages: int) -> None:
        """Take over what was granted; 0: there is nothing more at present."""
        self._left += pages
        self._has_asked = self._is_refused = pages == 0

    def recalled(self) -> int:
        """Give everything unused back, between two turns of the loop; return how much that is."""
        unused, self._left = int(self._left), 0
        return unused

    def _ask_once(self) -> None:
        if self._ask is not None and not self._has_asked:
            self._has_asked = True
            self._ask()


class SharedBudget:
    """The budget of several workers, as their supervisor keeps it."""

    def __init__(self, limit: int | None, workers: int) -> None:
        self._limit = _number(limit)
        self._out = [0] * workers  # granted and not returned, used or not
        self._used = [0] * workers  # of that, as far as reported
        self._lost = 0  # granted to workers that have died
        self._line: list[int] = []  # waiting workers, the longest wait first

    @property
    def _free(self) -> float:
        return self._limit - self._lost - sum(self._out)

    @property
    def is_spent(self) -> bool:
        """Return whether nothing is left, here or in a worker, as far as they have reported."""
        return self._limit - self._lost - sum(self._used) <= 0

    def asked(self, worker: int) -> None:
        """Put a worker in line."""
        if worker not in self._line:
            self._line.append(worker)

    def returned(self, worker: int, pages: int) -> None:
        """Take back the pages that a worker has not used."""
        self._out[worker] -= pages

    def reported(self, worker: int, used: int) -> None:
        """Note how many pages a worker has started, since it began."""
        self._used[worker] = used

    def died(self, worker: int) -> None:
        """Write off the pages of a worker that died; its successor begins with none."""
        self._lost += self._used[worker] if self._limit == inf else self._out[worker]
        self._out[worker] = self._used[worker] = 0
        self._line = [each for each in self._line if each != worker]

    def set_limit(self, limit: int | None) -> None:
        """Change the limit of this run; `recalls` follow if it fell."""
        self._limit = _number(limit)

    def grants(self) -> list[tuple[int, int]]:
        """Return (worker, pages) for those in line, as far as there are pages."""
        granted = []
        while self._line and self._free >= 1:
            worker = self._line.pop(0)
            pages = self._chunk()
            self._out[worker] += pages
            granted.append((worker, pages))
        return granted

    def recalls(self) -> list[int]:
        """Return the workers that have to return pages: call it once a tick, after `grants`."""
        if not self._line and self._free >= 0:
            return []
        holders = [n for n, out in enumerate(self._out) if out > self._used[n]]
        if self._free < 0:
            return holders
        return [worker for worker in holders if any(other != worker for other in self._line)]

    def _chunk(self) -> int:
        """Return a chunk: small ones at the end, so that all workers get some."""
        free = self._free
        if free == inf:
            return FREELY
        return max(1, min(CHUNK, int(free) // (2 * len(self._out))))


def _number(limit: int | None) -> float:
    return inf if limit is None else limit
