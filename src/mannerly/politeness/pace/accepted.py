"""Count the requests that a host has accepted: they measure its limit.

Between two moments in the same state (a bucket just emptied, a window just opened) a server with
the limit r has accepted r·Δt requests, whatever was sent in between; sending too fast does not
distort this. So it is enough to keep a running count, two checkpoints for the recent rate (over
the last 20 to 40 accepted requests, in O(1) memory), and, until the first refusal, the count at
every step of the climb.

The climb gives an estimate at the first refusal. For every step taken as the start,
accepted/elapsed (including the pause after the refusal) is an average that the server allowed; the
largest of them is the estimate. Short pauses favour the last steps (a bucket), long ones the first
(a quota per minute), without a threshold between the two.
"""

from __future__ import annotations

from struct import iter_unpack, pack
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..model import Instant

CHECKPOINT_EVERY = 20  # accepted requests
_STEP = "=fL"  # seconds since `born_at`, requests accepted by then


class Average(NamedTuple):
    """Accepted requests per second since `since`, when the count was `accepted`."""

    rate: float
    since: Instant
    accepted: int


class AcceptedCounter:
    """A running count of accepted requests."""

    __slots__ = ("_climb", "_count_then", "_count_when", "_then", "_when", "born_at", "count")

    def __init__(self, now: Instant) -> None:
        self.born_at = now
        self.count = 0
        self._when = self._then = now  # the newer and the older checkpoint
        self._count_when = self._count_then = 0
        self._climb: bytes | None = b""  # packed steps: a list would need ten times the memory

    def add(self, now: Instant) -> None:
        """Count an accepted request."""
        count = self.count + 1
        self.count = count
        if count - self._count_when >= CHECKPOINT_EVERY:
            self._then, self._count_then = self._when, self._count_when
            self._when, self._count_when = now, count

    def delivery(self, now: Instant) -> float:
        """Return the requests per second accepted recently, over the last 20 to 40 of them."""
        return (self.count - self._count_then) / max(1e-6, now - self._then)

    @property
    def is_climbing(self) -> bool:
        """Return whether the climb goes on: nothing was refused so far."""
        return self._climb is not None

    def step(self, now: Instant) -> None:
        """Record a step of the climb."""
        if self._climb is not None:
            self._climb += pack(_STEP, now - self.born_at, self.count)

    def best_average(self, now: Instant) -> Average:
        """Return the largest average from any step of the climb until now, and end the climb."""
        climb, self._climb = self._climb, None
        assert climb is not None
        best = Average(self.count / max(1e-6, now - self.born_at), self.born_at, 0)
        for age_s, count in iter_unpack(_STEP, climb):
            since = self.born_at + age_s
            rate = (self.count - count) / max(1e-6, now - since)
            if rate >= best.rate:
                best = Average(rate, since, count)
        return best

    def forget_climb(self) -> None:
        """End the climb without an estimate: the limit is known from another source."""
        self._climb = None
