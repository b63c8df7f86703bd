"""Count the requests that a host has accepted, and remember when: they measure its limit.

        N(t)                      Between two moments in the same state (a bucket just emptied, a
          │            ╭──•       window just opened) a server with the limit r has accepted r·Δt
          │      •─────╯ ramp     requests, whatever was sent in between; sending too fast does not
          │   ╭──╯ pause          distort this. So it is enough to keep a running count, and marks
          │ •─╯                   (t, N): every 20 requests, at each change of the rate, and before
          └───────────── t        and after each pause. Between two marks N is a line. They
                                  have ages, in seconds since the first request.

The first estimate comes from the climb. For every step taken as the start, accepted/elapsed
(including the pause after the refusal) is an average that the server allowed; the largest of them
is the estimate. Short pauses favour the last steps (a bucket), long ones the first (a quota per
minute), without a threshold between the two. What a burst b explains is left out in `beyond`:
max (N(now) − N(t) − b) / (now − t) is allowed by every bucket whose burst is at most b, at any
moment. The first request counts as a mark, or a short climb would show only its last step.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model import Instant

CHECKPOINT_EVERY = 20  # accepted requests
MOST_MARKS = 120  # at 8/s, five minutes between two of 20 requests
_MARK = Struct("=dL")  # age, and requests accepted by then: a list would need ten times the memory
_CHECKPOINTS = Struct("=2d")
_NO_MARKS = _CHECKPOINTS.pack(0.0, 0.0)


class Average(NamedTuple):
    """Accepted requests per second since `since`, when the count was `accepted`."""

    rate: float
    since: Instant
    accepted: int


class AcceptedCounter:
    """A running count of accepted requests, and its marks."""

    __slots__ = ("_marks", "born_at", "count", "is_climbing")

    def __init__(self, now: Instant) -> None:
        self.born_at = now
        self.count = 0
        self.is_climbing = True  # nothing was refused so far: marks are steps of the climb only
        self._marks = _NO_MARKS  # after the ages of the older and the newer checkpoint

    def add(self, now: Instant) -> None:
        """Count an accepted request."""
        count = self.count + 1
        self.count = count
        if count % CHECKPOINT_EVERY == 0:
            _, newer_s = _CHECKPOINTS.unpack_from(self._marks)
            checkpoints = _CHECKPOINTS.pack(newer_s, now - self.born_at)
            self._marks = checkpoints + self._marks[_CHECKPOINTS.size :]
            if not self.is_climbing:
                self.mark(now)

    def delivery(self, now: Instant) -> float:
        """Return the requests per second accepted recently, over the last 20 to 40 of them."""
        older_s, _ = _CHECKPOINTS.unpack_from(self._marks)
        recent = min(self.count, CHECKPOINT_EVERY + self.count % CHECKPOINT_EVERY)
        return float(recent / max(1e-6, now - self.born_at - older_s))

    # ------------------------------------------------------------------ marks

    def mark(self, now: Instant) -> None:
        """Remember the present count."""
        first = _CHECKPOINTS.size
        if self._number() == MOST_MARKS:
            first += _MARK.size
        mark = _MARK.pack(now - self.born_at, self.count)
        self._marks = self._marks[: _CHECKPOINTS.size] + self._marks[first:] + mark

    def begins(self) -> tuple[float, int]:
        """Return the oldest mark that is remembered: the first request, or a later one."""
        return (0.0, 0) if self._number() < MOST_MARKS else self._mark(0)

    def marks(self, since_s: float) -> Iterator[tuple[float, int]]:
        """Return the marks from an age on."""
        first = _CHECKPOINTS.size + self._place(since_s) * _MARK.size
        return _MARK.iter_unpack(self._marks[first:])

    def _number(self) -> int:
        return (len(self._marks) - _CHECKPOINTS.size) // _MARK.size

    def _mark(self, place: int) -> tuple[float, int]:
        age_s, count = _MARK.unpack_from(self._marks, _CHECKPOINTS.size + place * _MARK.size)
        return age_s, count

    def _place(self, age_s: float) -> int:
        """Return the place of the first mark that is not before an age."""
        low, high = 0, self._number()
        while low < high:
            middle = (low + high) // 2
            if self._mark(middle)[0] < age_s:
                low = middle + 1
            else:
                high = middle
        return low

    def at(self, age_s: float) -> float:
        """Return how many requests had been accepted by then."""
        begins_s, begins_with = self.begins()
        if age_s <= begins_s:
            return float(begins_with)
        place = self._place(age_s)
        if place == self._number():
            return float(self.count)
        before = self._mark(place - 1) if place else (begins_s, begins_with)
        after = self._mark(place)
        share = (age_s - before[0]) / max(1e-9, after[0] - before[0])
        return float(before[1] + share * (after[1] - before[1]))

    # ------------------------------------------------------------------ averages

    def best_average(self, now: Instant) -> Average:
        """Return the largest average from any mark until now: of the climb, until it has ended."""
        age_s = now - self.born_at
        best = Average(self.count / max(1e-6, age_s), self.born_at, 0)
        for since_s, count in self.marks(0.0):
            rate = (self.count - count) / max(1e-6, age_s - since_s)
            if rate >= best.rate:
                best = Average(rate, self.born_at + since_s, count)
        return best

    def beyond(self, burst: float, since: Instant, now: Instant, count: int) -> float:
        """Return the largest average from any mark since then until a count, without a burst."""
        age_s, since_s = now - self.born_at, since - self.born_at
        begins = [self.begins()] if since_s <= 0.0 else []
        return max(
            (
                (count - then - burst) / (age_s - at_s)
                for at_s, then in (*begins, *self.marks(since_s))
                if at_s < age_s
            ),
            default=0.0,
        )
