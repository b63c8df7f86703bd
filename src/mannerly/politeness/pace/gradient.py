"""`gradient`: control the number of requests in flight by latency (Netflix Gradient2).

    gradient = clamp(tolerance · long / short, 0.5, 1)        tolerance 1.5
    limit ← (1 − s)·limit + s·(limit·gradient + queue)         s = 0.2, queue 4
    throttle: limit ← limit/2, rate ← rate/2, once per round trip; the rate grows 1 % a success

`short` is the latest latency, `long` its slow average. While short ≈ long, the gradient is 1 and
the limit grows slowly by the queue; when the load rises, `short` grows and the limit shrinks; when
it falls, `long` is lowered faster, so that an old slow hour does not hide new queueing.

The rate starts at `max_rate` and stays there until the host refuses: a refusal is a definite sign
of overload that no latency shows. The rate grows until the next refusal, so a server that counts
requests refuses one in about 70, and more at first. Use it for hosts that become slow instead of
refusing, such as your own.
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
SHORTEST_S = 1e-6  # a latency of 0 s says nothing
MOST_RECALLED = 1000.0  # requests a second that stand for an unlimited rate
RECOVERY = 1.01  # factor on the rate a success: 70 of them undo one refusal


class GradientStrategy:
    """A concurrency limit that follows the latency gradient."""

    __slots__ = ("_cut_at", "_limit", "_long_s", "_refusals", "_settings", "concurrency", "rate")
    burst = 1
    known_limits = ()
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
        """Change the limit by the gradient; halve limit and rate after a throttle."""
        if sample.outcome is Outcome.THROTTLE:
            return self._throttled(sample)
        if sample.outcome is not Outcome.OK:
            return None
        recovered, self._refusals = self._refusals > 0, 0
        if sample.sent_at > self._cut_at:
            self.rate = min(self._settings.rate_ceiling, self.rate * RECOVERY)
        short_s = max(sample.latency_s, SHORTEST_S)
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
        # The rate may be unlimited: what is in flight at this latency is the rate in use.
        used = sample.in_flight / max(sample.latency_s, SHORTEST_S)
        self.rate = max(1.0 / self._settings.max_delay_s, 0.5 * min(self.rate, used))
        return Effect(block_s=pause_s, change=PaceChange.SLOWED)

    def restart(self, now: Instant) -> None:
        """Continue at half the limit."""
        self._cut_at = now
        self._set_limit(0.5 * self._limit)

    def configure(self, settings: Settings) -> None:
        """Keep the concurrency limit, up to the new maximum; grow again from an old maximum."""
        was_capped = self._limit >= self._settings.max_concurrency
        was_unpaced = self.rate >= self._settings.rate_ceiling
        self._settings = settings
        ceiling = settings.rate_ceiling
        self.rate = ceiling if was_unpaced else min(self.rate, ceiling)
        self._set_limit(max(self._limit, START_LIMIT) if was_capped else self._limit)

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Start between the defaults and the remembered values, weighted by `trust`."""
        ceiling = self._settings.rate_ceiling
        if lesson.delay_s > 0.0 and 1.0 / lesson.delay_s < ceiling:
            usual = min(ceiling, MOST_RECALLED)
            self.rate = min(ceiling, usual ** (1.0 - trust) / lesson.delay_s**trust)
        if lesson.concurrency:
            start = self._limit + trust * (lesson.concurrency - self._limit)
            self._set_limit(start)

    def lesson(self) -> Lesson:
        """Return the concurrency limit, and the rate as a delay if the host has refused."""
        is_paced = self.rate < self._settings.rate_ceiling
        return Lesson(concurrency=self.concurrency, delay_s=1.0 / self.rate if is_paced else 0.0)
