"""A host that slows down instead of refusing: notice the queue before it is full.

Compare like with like: the median of the newest 15 latencies with the lowest such median of the
last ten minutes. Averages of the same latency that is judged (document 002) protect nothing,
because they follow the queue up; a single slow page is no queue, so one sample decides nothing.

    queueing  ⇔  median > 2·lowest + 20 ms

15 samples: the median's noise at a log-normal spread of 0.25 is 8 %, far from a factor of 2.
20 ms: below that, differences are the machine's own. Only answers to requests sent after the last
action count, or one queue would be punished once per answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..model import Instant
    from ..vitals import Vitals

MEDIAN_OF = 15
FACTOR = 2.0
SLACK_S = 0.02
HORIZON_S = 300.0  # two of them are remembered, so a baseline lives five to ten minutes
LOOK_EVERY = 5  # samples; a median costs a microsecond


class LatencyGuard:
    """The lowest recent median, and whether the newest one is far above it."""

    __slots__ = ("_lowest_s", "_previous_s", "_since", "_turned_at")

    def __init__(self, now: Instant) -> None:
        self._lowest_s = 0.0
        self._previous_s = 0.0
        self._turned_at = now
        self._since = 0  # samples since the last action

    def queueing_s(self, vitals: Vitals, now: Instant) -> float:
        """The median latency if the host is queueing, else 0. Call once per success."""
        since = self._since + 1
        self._since = since
        if since < MEDIAN_OF or since % LOOK_EVERY:
            return 0.0
        if now - self._turned_at > HORIZON_S:
            self._previous_s, self._lowest_s = self._lowest_s, 0.0
            self._turned_at = now
        median_s = vitals.median_s(MEDIAN_OF)
        if not self._lowest_s or median_s < self._lowest_s:
            self._lowest_s = median_s
        lowest_s = self._lowest_s
        if self._previous_s:
            lowest_s = min(lowest_s, self._previous_s)
        return median_s if median_s > FACTOR * lowest_s + SLACK_S else 0.0

    def acted(self) -> None:
        """The pace was changed: judge only what was sent after that."""
        self._since = 0
