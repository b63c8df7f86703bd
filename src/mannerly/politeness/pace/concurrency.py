"""Too fast, or too many at once? A refusal does not say, so the evidence must.

If a refused request was sent with more requests under way than any that succeeded in the last one
to two minutes, the number is the first suspect: allow one fewer, pause a quarter of a second, and
leave the rate alone. One refusal is enough to lock onto a concurrency limit, where a rate
controller would pay for years. If the suspicion was wrong, the next refusal comes at a number that
has succeeded before, and the rate is blamed. A lost place is tried again after 30 s; each failure
doubles that wait (30 s: twice the first probe's hold; 600 s: as long as other evidence is kept).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..model import Instant, Sample

EVIDENCE_S = 60.0  # two such spans are remembered
PAUSE_S = 0.25
RETRY_S = 30.0
RETRY_MAX_S = 600.0


class ConcurrencyLearner:
    """How many requests under way the host has been seen to take."""

    __slots__ = (
        "_best",
        "_changed_at",
        "_most",
        "_previous_best",
        "_retry_s",
        "_turned_at",
        "limit",
    )

    def __init__(self, limit: int, now: Instant) -> None:
        self.limit = limit
        self._most = limit
        self._best = self._previous_best = 0
        self._turned_at = now
        self._changed_at: Instant | None = None
        self._retry_s = RETRY_S

    def on_success(self, sample: Sample) -> None:
        """Remember a number that worked, and give a lost place another chance."""
        now = sample.done_at
        if now - self._turned_at > EVIDENCE_S:
            self._previous_best, self._best = self._best, 0
            self._turned_at = now
        if sample.in_flight > self._best:
            self._best = sample.in_flight
        if (
            self._changed_at is not None
            and self.limit < self._most
            and sample.in_flight >= self.limit
            and now - self._changed_at > self._retry_s
        ):
            self.limit += 1
            self._changed_at = now

    def lower_if_at_fault(self, sample: Sample) -> bool:
        """Whether the number, not the rate, is to learner for this refusal. If so, lower it."""
        in_flight = sample.in_flight
        if in_flight < 2 or in_flight <= max(self._best, self._previous_best):
            return False
        self.limit = in_flight - 1
        if self._changed_at is not None:
            self._retry_s = min(RETRY_MAX_S, 2.0 * self._retry_s)
        self._changed_at = sample.done_at
        return True
