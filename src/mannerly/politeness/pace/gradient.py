"""`gradient`: control the number of requests in flight by latency (Netflix Gradient2).

    gradient = clamp(tolerance · long / short, 0.5, 1)        tolerance 1.5
    limit ← (1 − s)·limit + s·(limit·gradient + queue)         s = 0.2, queue 4
    throttle: limit ← limit/2, once per round trip

`short` is the latest latency, `long` its slow average. While short ≈ long, the gradient is 1 and
the limit grows slowly by the queue; when the load rises, `short` grows and the limit shrinks; when
it falls, `long` is lowered faster, so that an old slow hour does not hide new queueing.

The rate is not controlled, it is always `max_rate`: servers that count requests instead of slowing
down refuse nearly half of them. Use it for hosts that never answer 429, such as your own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import NEVER, Outcome
from .base import Effect, Lesson, PaceChange

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..stats import HostStats

QUEUE = 4  # requests that may queue at the server; Gradient2's default
LONG_WEIGHT = 2.0 / 601.0  # an average over 600 samples, as in Gradient2
START_LIMIT = 2.0


class GradientStrategy:
    """A concurrency limit that follows the latency gradient."""

    __slots__ = ("_cut_at", "_limit", "_long_s", "_refusals", "_settings", "concurrency", "rate")
    burst = 1
    may_defer_first = False
    trial_only = False
    phase = "steady"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.rate = settings.rate_ceiling
        self._limit = min(START_LIMIT, float(settings.max_concurrency))
        self.concurrency = int(self._limit)
        self._long_s = 0.0
        self._cut_at: Instant = NEVER
        self._refusals = 0

    def on_sample(self, sample: Sample, stats: HostStats) -> Effect | None:  # noqa: ARG002
        """Change the limit by the gradient; halve it after a throttle."""
        if sample.outcome is Outcome.THROTTLE:
            return self._throttled(sample)
        if sample.outcome is not Outcome.OK:
            return None
        recovered, self._refusals = self._refusals > 0, 0
        short_s = max(sample.latency_s, 1e-6)
        self._long_s += LONG_WEIGHT * (short_s - self._long_s) if self._long_s else short_s
        if self._long_s > 2.0 * short_s:
            self._long_s *= 0.95
        # Never raise a limit that was not used (Netflix: "app limited").
        if 2 * sample.in_flight >= self._limit:
            self._move(short_s)
        return Effect(change=PaceChange.RECOVERED) if recovered else None

    def _move(self, short_s: float) -> None:
        settings = self._settings
        gradient = max(0.5, min(1.0, settings.gradient_tolerance * self._long_s / short_s))
        aim = self._limit * gradient + QUEUE
        smoothing = settings.gradient_smoothing
        moved = (1.0 - smoothing) * self._limit + smoothing * aim
        self._set_limit(moved)

    def _set_limit(self, limit: float) -> None:
        self._limit = max(1.0, min(float(self._settings.max_concurrency), limit))
        self.concurrency = int(self._limit)

    def _throttled(self, sample: Sample) -> Effect:
        self._refusals += 1
        pause_s = min(self._settings.max_delay_s, 0.5 * 2.0 ** min(self._refusals, 10))
        if sample.sent_at <= self._cut_at:
            return Effect(block_s=pause_s)
        self._cut_at = sample.done_at
        self._set_limit(0.5 * self._limit)
        return Effect(block_s=pause_s, change=PaceChange.SLOWED)

    def restart(self, now: Instant) -> None:
        """Continue at half the limit."""
        self._cut_at = now
        self._set_limit(0.5 * self._limit)

    def configure(self, settings: Settings) -> None:
        """Keep the concurrency limit, up to the new maximum; grow again from an old maximum."""
        was_capped = self._limit >= self._settings.max_concurrency
        self._settings = settings
        self.rate = settings.rate_ceiling
        self._set_limit(max(self._limit, START_LIMIT) if was_capped else self._limit)

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Start between the default and the remembered concurrency, weighted by `trust`."""
        if lesson.concurrency:
            start = self._limit + trust * (lesson.concurrency - self._limit)
            self._set_limit(start)

    def lesson(self) -> Lesson:
        """Return the concurrency limit."""
        return Lesson(concurrency=self.concurrency)
