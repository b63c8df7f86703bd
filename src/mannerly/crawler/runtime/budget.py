"""--max-urls: never more pages than that, however many processes fetch them.

    take(n)      before looking for work: up to n pages are ours, and nobody else's
    settle(m)    m of them were really started; the others go back
    give_back    a page that has to be asked for again was not fetched yet

Between `take` and `settle` pages are on loan. A budget with loans is not spent, since some of them
will come back: whoever takes "nothing left" for the end must not be misled by a loan.

A process may be killed at any instant, even while it holds the lock or a loan. Whoever buries it
calls `bury`: the lock is freed, and its loan is written off, so that no page is counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

# A living process holds the lock for a microsecond; one that has it this long is dead.
BURY_S = 1.0


class LocalBudget:
    """The budget of a single process."""

    def __init__(self, pages: int | None) -> None:
        self._left = pages
        self._loan = 0

    def take(self, wanted: int) -> int:
        """As many as there are."""
        if self._left is None:
            return wanted
        self._loan = min(wanted, self._left)
        self._left -= self._loan
        return self._loan

    def settle(self, used: int) -> None:
        """What was taken and not used goes back."""
        if self._left is not None:
            self._left += self._loan - used
            self._loan = 0

    def give_back(self, pages: int) -> None:
        """These will be asked for again."""
        if self._left is not None:
            self._left += pages

    @property
    def is_spent(self) -> bool:
        """Nothing is left."""
        return self._left is not None and self._left + self._loan <= 0


class SharedBudget:
    """The budget of several processes; each of them uses its own `share`."""

    def __init__(self, context: BaseContext, pages: int | None, processes: int) -> None:
        self._is_limited = pages is not None
        self._lock = context.Lock()
        # What is left, then one loan for each process; the lock is ours to free, not the array's.
        self._pages: Any = context.Array("q", [pages or 0] + [0] * processes, lock=False)

    @property
    def is_spent(self) -> bool:
        """Nothing is left, and nothing will come back from a loan."""
        if not self._is_limited:
            return False
        # The asker is the one who buries the dead, so he must not wait for them.
        if not self._lock.acquire(timeout=BURY_S):
            return False
        try:
            return int(sum(self._pages)) <= 0
        finally:
            self._lock.release()

    def share(self, process: int) -> Share:
        """The budget as this process sees it."""
        return Share(self, process)

    def take(self, process: int, wanted: int) -> int:
        """Lend as many as there are."""
        if not self._is_limited:
            return wanted
        with self._lock:
            granted = int(min(wanted, self._pages[0]))
            self._pages[0] -= granted
            self._pages[1 + process] = granted
        return granted

    def settle(self, process: int, used: int) -> None:
        """End a loan."""
        if self._is_limited:
            with self._lock:
                unused = self._pages[1 + process] - used
                self._pages[1 + process] = 0
                self._pages[0] += unused

    def give_back(self, pages: int) -> None:
        """These will be asked for again."""
        if self._is_limited:
            with self._lock:
                self._pages[0] += pages

    def bury(self, process: int) -> None:
        """A process is dead: free the lock if it had it, and write its loan off."""
        self._lock.acquire(timeout=BURY_S)
        self._pages[1 + process] = 0
        self._lock.release()


class Share:
    """One process's access to a shared budget."""

    def __init__(self, shared: SharedBudget, process: int) -> None:
        self._shared = shared
        self._process = process

    def take(self, wanted: int) -> int:
        """As many as there are."""
        return self._shared.take(self._process, wanted)

    def settle(self, used: int) -> None:
        """What was taken and not used goes back."""
        self._shared.settle(self._process, used)

    def give_back(self, pages: int) -> None:
        """These will be asked for again."""
        self._shared.give_back(pages)

    @property
    def is_spent(self) -> bool:
        """Nothing is left."""
        return self._shared.is_spent
