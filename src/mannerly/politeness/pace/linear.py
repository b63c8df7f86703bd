"""`linear`: a delay that grows and shrinks in fixed steps.

    throttle episode    delay ← min(delay + step, cap)            step 1 s, cap 60 s
    20 successes        delay ← max(delay − step, base, floor)    a probe
    a throttle within   delay ← the delay before the probe;
    the probe's first   floor ← that delay
    20 successes
    concurrency         base − ⌊(delay − base delay)/5 s⌋, at least 1

The delay changes in whole steps, so on a host that allows 1.2 requests/s it stays at 1.5 s, and it
is never shorter than the base delay; `learned` has neither restriction. Refusals of requests in
flight together count as one episode: a response to a request sent before the last change says
nothing new. The floor is the delay before the probe, not the refused one. It shrinks by a tenth
with every 1,000 successes, so that one bad minute does not last forever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import NEVER, Outcome
from .base import Effect, Lesson, PaceChange

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..stats import HostStats

FLOOR_AGES_AFTER = 1000  # successes; most of a day at one request per minute


class LinearStrategy:
    """A delay with additive steps, probes and a floor; concurrency falls as the delay grows."""

    __slots__ = (
        "_before_probe_s",
        "_changed_at",
        "_delay_s",
        "_floor_s",
        "_settings",
        "_since_floor",
        "concurrency",
        "error_streak",
        "rate",
        "success_streak",
    )
    burst = 1
    known_limits = ()
    may_defer_first = False
    trial_only = False
    phase = "steady"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._floor_s = 0.0
        self._before_probe_s: float | None = None
        self._changed_at: Instant = NEVER
        self._since_floor = 0
        self.error_streak = 0
        self.success_streak = 0
        self._set_delay(settings.linear_base_delay_s)

    def _set_delay(self, delay_s: float) -> None:
        settings = self._settings
        self._delay_s = delay_s
        self.rate = 1.0 / delay_s
        over_s = max(0.0, delay_s - settings.linear_base_delay_s)
        cut = int(over_s / settings.linear_concurrency_step_s)
        self.concurrency = max(1, settings.max_concurrency - cut)

    def on_sample(self, sample: Sample, stats: HostStats) -> Effect | None:  # noqa: ARG002
        """Lengthen the delay once per episode; try a shorter one after twenty successes."""
        if sample.outcome is Outcome.THROTTLE:
            return self._throttled(sample)
        if sample.outcome is Outcome.OK and sample.sent_at > self._changed_at:
            return self._succeeded(sample)
        return None

    def _throttled(self, sample: Sample) -> Effect | None:
        self.error_streak += 1
        self.success_streak = 0
        if sample.sent_at <= self._changed_at:
            return None
        self._changed_at = sample.done_at
        if self._before_probe_s is not None:
            self._floor_s = self._before_probe_s
            self._since_floor = 0
            self._before_probe_s = None
            self._set_delay(self._floor_s)
        else:
            grown_s = self._delay_s + self._settings.linear_step_s
            self._set_delay(min(grown_s, self._settings.max_delay_s))
        return Effect(block_s=self._delay_s, change=PaceChange.SLOWED)

    def _succeeded(self, sample: Sample) -> Effect | None:
        recovered = self.error_streak > 0
        self.error_streak = 0
        self.success_streak += 1
        self._age_floor()
        if self.success_streak >= self._settings.linear_probe_after:
            self.success_streak = 0
            return self._probe(sample.done_at)
        return Effect(change=PaceChange.RECOVERED) if recovered else None

    def _probe(self, now: Instant) -> Effect | None:
        settings = self._settings
        lowest_s = max(settings.linear_base_delay_s, self._floor_s)
        shorter_s = max(self._delay_s - settings.linear_step_s, lowest_s)
        if shorter_s >= self._delay_s:
            self._before_probe_s = None
            return None
        self._before_probe_s = self._delay_s
        self._changed_at = now
        self._set_delay(shorter_s)
        return Effect(change=PaceChange.PROBING)

    def _age_floor(self) -> None:
        self._since_floor += 1
        if self._since_floor >= FLOOR_AGES_AFTER:
            self._since_floor = 0
            self._floor_s *= 0.9

    def restart(self, now: Instant) -> None:
        """Continue at half the rate."""
        self._changed_at = now
        self._before_probe_s = None
        self.success_streak = 0
        self._set_delay(min(2.0 * self._delay_s, self._settings.max_delay_s))

    def configure(self, settings: Settings) -> None:
        """Keep the delay, within the new bounds."""
        self._settings = settings
        self._set_delay(min(max(self._delay_s, settings.linear_base_delay_s), settings.max_delay_s))

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Start between the base delay and the remembered delay, weighted by `trust`."""
        base_s = self._settings.linear_base_delay_s
        if lesson.delay_s > base_s:
            kept_s = base_s + trust * (lesson.delay_s - base_s)
            self._set_delay(min(kept_s, self._settings.max_delay_s))
        self._floor_s = trust * lesson.floor_s

    def lesson(self) -> Lesson:
        """Return the delay, the floor and the concurrency."""
        return Lesson(delay_s=self._delay_s, floor_s=self._floor_s, concurrency=self.concurrency)
