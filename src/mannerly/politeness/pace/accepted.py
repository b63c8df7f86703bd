"""What a host has let through: the only honest measure of its limit.

Between two moments in the same state (a bucket just emptied, a window just opened) a server that
limits its rate to r has accepted r·Δt requests, whatever we did in between; overshooting does not
bias that. So all that is kept is a running count, two checkpoints for the recent delivery rate
(over the last 20 to 40 accepts, O(1) memory instead of a ring), and, until the first refusal, the
count at every step of the climb.

The climb answers "what is the limit?" at the very first refusal. For every step taken as the
start, accepted/elapsed (the pause after the refusal included) is an average that a limit of that
kind allows; the largest of them is the estimate. Short pauses favour the last steps (a bucket),
long ones the first (a quota per minute), with no threshold between the two.
"""

from __future__ import annotations

from struct import iter_unpack, pack
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..model import Instant

CHECKPOINT_EVERY = 20  # accepts
_STEP = "=fL"  # age in seconds, requests accepted by then


class Average(NamedTuple):
    """Accepts a second since `since`, when `accepted` had been accepted."""

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
        self._climb: bytes | None = b""  # packed steps: a list would cost ten times as much

    def add(self, now: Instant) -> None:
        """Count an accepted request."""
        count = self.count + 1
        self.count = count
        if count - self._count_when >= CHECKPOINT_EVERY:
            self._then, self._count_then = self._when, self._count_when
            self._when, self._count_when = now, count

    def delivery(self, now: Instant) -> float:
        """Accepts a second over the last 20 to 40 of them."""
        return (self.count - self._count_then) / max(1e-6, now - self._then)

    @property
    def is_climbing(self) -> bool:
        """Nothing was refused so far."""
        return self._climb is not None

    def step(self, now: Instant) -> None:
        """Remember a step of the climb."""
        if self._climb is not None:
            self._climb += pack(_STEP, now - self.born_at, self.count)

    def best_average(self, now: Instant) -> Average:
        """The largest average from any step of the climb until now. Ends the climb."""
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
        """The limit is known from elsewhere."""
        self._climb = None
