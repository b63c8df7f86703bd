"""`fixed`: the operator's word.

    gap = delay_s, else start_delay_s; "unlimited" where max_rate says so and no delay is given

It never learns. The server's and robots.txt's wishes and the breaker still hold, because they
are clocks of the host's admission rule, not of the strategy. Without a Retry-After, a refusal
pauses the host for the current gap, doubled with every refusal in a row (at most max_delay_s).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..model import OK, THROTTLE
from .base import Effect, Lesson

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..stats import HostStats

PAUSE_BASE_S = 1.0  # the default gap of decision 7


class FixedStrategy:
    """A constant rate."""

    __slots__ = ("_max_pause_s", "_refusals", "concurrency", "rate")
    burst = 1
    may_defer_first = True
    trial_only = False
    phase = "fixed"

    def __init__(self, settings: Settings) -> None:
        if settings.delay_s is not None:
            self.rate = 1.0 / settings.delay_s
        elif settings.rate_ceiling == math.inf:
            self.rate = math.inf
        else:
            self.rate = 1.0 / settings.start_delay_s
        self.concurrency = settings.max_concurrency
        self._max_pause_s = settings.max_delay_s
        self._refusals = 0

    def on_sample(self, sample: Sample, stats: HostStats) -> Effect | None:  # noqa: ARG002
        """Back off on refusals; the rate itself never changes."""
        if sample.outcome is OK:
            self._refusals = 0
            return None
        if sample.outcome is not THROTTLE:
            return None
        base_s = max(PAUSE_BASE_S, 1.0 / self.rate)
        pause_s = min(self._max_pause_s, base_s * 2.0 ** min(self._refusals, 10))
        self._refusals += 1
        return Effect(block_s=pause_s)

    def restart(self, now: Instant) -> None:
        """Nothing: the operator's word stands."""

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Nothing: the operator's word stands."""

    def lesson(self) -> Lesson:
        """Nothing was learned."""
        return Lesson()
