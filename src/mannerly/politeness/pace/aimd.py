"""`aimd`: a token bucket with additive increase and multiplicative decrease of its rate.

    fast success     rate ← min(max_rate, rate + α)    α 0.05, for requests after the last cut
    throttle, slow   rate ← max(min_rate, rate·β)      β 0.7, at most once per round trip
    503              the same, unless `aimd_cut_on_503` is off; the breaker counts it, too
    slow             latency ≥ degrade factor × target  (factor 2)

With a server limit r, the rate oscillates between r·β and slightly above r forever, and each cycle
costs a refusal: 0.4–18 % of requests on tuning servers, which is why it is not the default. Eight
refusals in flight cut the rate once, not by β⁸: a response to a request sent before the last cut
says nothing new. The latency target is 1.5 times the lowest median of 15 latencies so far, unless
it is set; an average would rise with the latency that it should limit.

`burst` is the bucket's capacity. The host uses it only if no minimum delay is in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import NEVER, Outcome
from ..stats import decode_latency
from .base import Effect, Lesson, PaceChange
from .latency import MEDIAN_OF, SLACK_S

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..stats import HostStats

UNAVAILABLE = 503


class AimdStrategy:
    """Additive increase, multiplicative decrease of the request rate."""

    __slots__ = (
        "_cut_at",
        "_lowest",
        "_refusals",
        "_settings",
        "burst",
        "concurrency",
        "rate",
    )
    may_defer_first = False
    known_limits = ()
    trial_only = False
    phase = "steady"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.rate = min(settings.rate_ceiling, 1.0 / settings.start_delay_s)
        self.concurrency = settings.max_concurrency
        self.burst = settings.aimd_burst
        self._cut_at: Instant = NEVER
        self._lowest = 0  # lowest median so far, as a level (see `stats`)
        self._refusals = 0

    def on_sample(self, sample: Sample, stats: HostStats) -> Effect | None:
        """Cut the rate after a throttle, a 503 or a slow response; add α after a success."""
        if sample.outcome is Outcome.THROTTLE:
            self._refusals += 1
            pause_s = min(self._settings.max_delay_s, 0.5 * 2.0 ** min(self._refusals, 10))
            return self._cut(sample, block_s=pause_s)
        if sample.status == UNAVAILABLE and self._settings.aimd_cut_on_503:
            return self._cut(sample)
        if sample.outcome is not Outcome.OK:
            return None
        recovered, self._refusals = self._refusals > 0, 0
        if self._is_slow(sample, stats):
            return self._cut(sample)
        if sample.sent_at > self._cut_at:
            self.rate = min(self._settings.rate_ceiling, self.rate + self._settings.aimd_increase)
        return Effect(change=PaceChange.RECOVERED) if recovered else None

    def _is_slow(self, sample: Sample, stats: HostStats) -> bool:
        target_s = self._settings.aimd_latency_target_s
        if target_s is None:
            if stats.samples % MEDIAN_OF == 0:
                median = stats.median_level(MEDIAN_OF)
                self._lowest = min(median, self._lowest or median)
            if not self._lowest:
                return False
            target_s = 1.5 * decode_latency(self._lowest) + SLACK_S
        return sample.latency_s >= self._settings.aimd_degrade_factor * target_s

    def _cut(self, sample: Sample, block_s: float = 0.0) -> Effect | None:
        if sample.sent_at <= self._cut_at:
            return Effect(block_s=block_s) if block_s else None
        self._cut_at = sample.done_at
        settings = self._settings
        self.rate = max(settings.aimd_min_rate, self.rate * settings.aimd_decrease)
        return Effect(block_s=block_s, change=PaceChange.SLOWED)

    def restart(self, now: Instant) -> None:
        """Continue at half the rate."""
        self._cut_at = now
        self.rate = max(self._settings.aimd_min_rate, 0.5 * self.rate)

    def configure(self, settings: Settings) -> None:
        """Keep the rate, up to the new maximum."""
        self._settings = settings
        self.rate = min(settings.rate_ceiling, self.rate)
        self.concurrency = settings.max_concurrency
        self.burst = settings.aimd_burst

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Start at the geometric mean of remembered rate and start rate, weighted by `trust`."""
        if lesson.delay_s > 0.0:
            remembered = 0.9 / lesson.delay_s
            self.rate = min(
                self._settings.rate_ceiling,
                remembered**trust * self.rate ** (1.0 - trust),
            )

    def lesson(self) -> Lesson:
        """Return the rate, as a delay."""
        return Lesson(delay_s=1.0 / self.rate)
