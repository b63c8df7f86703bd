"""Learn a host's limit of requests in flight: was a refusal caused by the rate, or by their number?

If a refused request was sent with more requests in flight than any that succeeded in the last one
to two minutes, the number is assumed to be the cause: allow one fewer, pause a quarter of a second,
and keep the rate. So one refusal is enough to find a concurrency limit, while lowering the rate
would cost many. If the assumption was wrong, the next refusal comes at a number that has succeeded
before, and the rate is lowered. One more request in flight is tried again after 30 s; each failure
doubles that time (30 s: twice the first probe's hold; 600 s: as long as other evidence is kept).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .kinds import KnownLimit, LimitKind

if TYPE_CHECKING:
    from ..model import Instant, Sample

EVIDENCE_S = 60.0  # successes of the present and the previous period count
PAUSE_S = 0.25
RETRY_S = 30.0
RETRY_MAX_S = 600.0


class ConcurrencyLearner:
    """Learns how many requests in flight a host accepts; `limit` is the present maximum."""

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

    def configure(self, most: int) -> None:
        """Change the operator's maximum; a lower number that the host accepts is kept."""
        if self._changed_at is None:
            self.limit = most
        self.limit = min(self.limit, most)
        self._most = most

    @property
    def known(self) -> KnownLimit | None:
        """Return the limit if more was refused a second time: one refusal may have been chance."""
        if self._retry_s == RETRY_S or self.limit >= self._most:
            return None
        return KnownLimit(LimitKind.CONCURRENCY, self.limit)

    def on_success(self, sample: Sample) -> None:
        """Record a number of requests in flight that worked; raise the limit if it is time."""
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
        """Lower the limit and return True if the requests in flight caused this refusal."""
        in_flight = sample.in_flight
        if in_flight < 2 or in_flight <= max(self._best, self._previous_best):
            return False
        self.limit = in_flight - 1
        if self._changed_at is not None:
            self._retry_s = min(RETRY_MAX_S, 2.0 * self._retry_s)
        self._changed_at = sample.done_at
        return True
