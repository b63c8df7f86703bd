"""When commits slow down, start less: the store sets the pace of the whole crawl.

    commit ≥ 0.5 s     total ← 0.7 · total      (not below 1)
    commit < 0.25 s    total ← total + 5 %      (not above what the operator allowed)

What is controlled is the total number of requests under way, not the free places: those are all
taken while the engine is busy, so taking some of them away would change nothing. It moves at most
once a second, because a commit says nothing about a total that has just been changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant

SLOW_S = 0.5  # half a second of commits per second of crawling would be all the time there is
FAST_S = 0.25
EVERY_S = 1.0


class Governor:
    """How many requests may be under way in this process."""

    __slots__ = ("_changed_at", "_most", "total")

    def __init__(self, most: int) -> None:
        self._most = most
        self.total = most
        self._changed_at: Instant = float("-inf")

    def committed(self, took_s: float, now: Instant) -> None:
        """A commit took this long."""
        if now - self._changed_at < EVERY_S:
            return
        if took_s >= SLOW_S:
            self.total = max(1, int(0.7 * self.total))
            self._changed_at = now
        elif took_s < FAST_S and self.total < self._most:
            self.total = min(self._most, int(1.05 * self.total) + 1)
            self._changed_at = now
