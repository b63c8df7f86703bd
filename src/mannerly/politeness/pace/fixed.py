"""`fixed`, or `leaky`: a constant delay, set by the operator. A leaky bucket is nothing else.

    delay = delay_s, else 1 / max_rate; none if max_rate is "unlimited" and delay_s is not set

It never learns. Limits of the server and of robots.txt and the breaker still hold, because the
host applies them, not the strategy. Without a Retry-After, a refusal pauses the host for the delay
(at least 1 s), doubled with every consecutive refusal, at most max_delay_s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import OK, THROTTLE
from .base import Effect, Lesson

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..stats import HostStats

PAUSE_BASE_S = 1.0  # the shortest pause after a refusal


class FixedStrategy:
    """A constant rate, with pauses after refusals."""

    __slots__ = ("_max_pause_s", "_refusals", "concurrency", "rate")
    burst = 1
    known_limits = ()
    may_defer_first = True
    trial_only = False
    phase = "fixed"

    def __init__(self, settings: Settings) -> None:
        self._refusals = 0
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Set the rate that the settings ask for."""
        delay_s = settings.delay_s
        self.rate = settings.rate_ceiling if delay_s is None else 1.0 / delay_s
        self.concurrency = settings.max_concurrency
        self._max_pause_s = settings.max_delay_s

    def on_sample(self, sample: Sample, stats: HostStats) -> Effect | None:  # noqa: ARG002
        """Pause after refusals; the rate itself never changes."""
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
        """Do nothing: the delay is fixed."""

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Do nothing: the delay is fixed."""

    def lesson(self) -> Lesson:
        """Return an empty lesson: nothing is learned."""
        return Lesson()
