"""The schedule of one host: the instant of the next start, and how many requests at once.

Every limit (the strategy's rate, robots.txt, Retry-After, RateLimit headers, bandwidth, the
operator's minimum delay) is a lower bound on the instant of the next start. The largest bound
holds, so no limit can override another and their order does not matter:

    not_before = max( last start + gap,   gap = max(floor, crawl delay, 1/rate, RateLimit quota)
                      blocked_until )     Retry-After, exhausted quota, bandwidth, backoff

This module has the state of a host and the strategy that sets its rate. It knows neither other
hosts nor the time: `now` is always an argument. Whether a request is refused is decided in `gate`.
"""

from __future__ import annotations

from math import inf, nextafter
from typing import TYPE_CHECKING

from .limits import NO_REQUESTED_LIMITS, RequestedLimits
from .model import NEVER, Reason
from .stats import HostStats

if TYPE_CHECKING:
    from .core import SharedContext
    from .health import HostHealth
    from .model import Instant, Sample
    from .pace.base import Strategy
    from .retry import RetryPolicy


class HostSchedule:
    """The schedule of one host, or of a group of hosts that share one request rate."""

    __slots__ = (
        "_deferred",
        "_gap_s",
        "_gate",
        "_limit",
        "_shared",
        "base_at",
        "health",
        "in_flight",
        "key",
        "last_ok_at",
        "left_at",
        "not_before",
        "requested",
        "requests",
        "stats",
        "strategy",
    )

    def __init__(self, key: str, shared: SharedContext) -> None:
        self.key = key
        self._shared = shared
        # Most hosts of a broad crawl get two requests, robots.txt and a page, and a strategy and
        # statistics take 600 bytes. So the first success is not learned from (docs/adr/0007), and
        # the second is deferred until the third response or a snapshot (`learn_deferred`).
        self.strategy: Strategy | None = None
        self.stats: HostStats | None = None
        self._deferred: Sample | None = None
        self.health: HostHealth | None = None
        self.requested = NO_REQUESTED_LIMITS
        self._gate: Reason | None = None
        self._gap_s = shared.start_gap_s
        self._limit = shared.start_limit
        self.base_at: Instant = NEVER  # the delay counts from here: the last start (burst 1)
        self.left_at: Instant = NEVER  # when the bytes of a request last left: see `may_leave`
        self.not_before: Instant = NEVER
        self.in_flight = 0
        self.requests = 0
        self.last_ok_at: Instant = NEVER

    def __repr__(self) -> str:
        gate = f" {self._gate}" if self._gate else ""
        return (
            f"<HostState {self.key} {self.in_flight}/{self._limit} in flight, "
            f"gap {self._gap_s:.3f} s, not before {self.not_before:.3f}{gate}>"
        )

    @property
    def is_enabled(self) -> bool:
        """Return whether this host is paced at all."""
        return self._shared.settings.enabled

    @property
    def retry_policy(self) -> RetryPolicy:
        """Return when a request to this host is repeated."""
        return self._shared.retry_policy

    @property
    def delay_s(self) -> float:
        """The delay in force between two starts, in seconds."""
        return self._gap_s

    @property
    def limit(self) -> int:
        """The maximum number of requests in flight at present."""
        return self._limit

    @property
    def success_streak(self) -> int:
        """Successes since the latest refusal or failure."""
        return self.requests - self.in_flight if self.health is None else self.health.success_streak

    def tokens(self, now: Instant) -> float:
        """Return how many requests could start at once; between 0 and 1 while the next waits."""
        burst = 1 if self.requested.crawl_delay_s else self._shared.burst
        if self._gap_s == 0.0 or self.not_before == NEVER:
            return float(burst)
        return max(0.0, min(float(burst), 1.0 + (now - self.not_before) / self._gap_s))

    def contacted(self, now: Instant) -> None:
        """Count the delay to the next request from `now`."""
        if now > self.base_at:
            self.base_at = now
            self.not_before = self._next_start()

    def own_requested(self) -> RequestedLimits:
        """Return the host's own `RequestedLimits`, to be changed; created on first use."""
        if self.requested is NO_REQUESTED_LIMITS:
            self.requested = RequestedLimits()
        return self.requested

    # ------------------------------------------------------------------ the strategy

    def use_strategy(self, strategy: Strategy) -> None:
        """Use this strategy, which was prepared from memory, from now on."""
        self.strategy = strategy
        self._reschedule()

    def use(self, shared: SharedContext) -> None:
        """Go on with other settings; what was learned is kept as far as they allow."""
        self.learn_deferred()
        is_same = self._shared.make_strategy is shared.make_strategy
        self._shared = shared
        if self.strategy is not None and is_same:
            self.strategy.configure(shared.settings)
        elif self.strategy is not None:
            strategy = shared.make_strategy(shared.settings)
            strategy.recall(self.strategy.lesson(), 1.0)
            self.strategy = strategy
        self._reschedule()

    def unlearn(self) -> None:
        """Forget what was learned, and a crawl delay; waits that the server asked for stay."""
        self.strategy = None
        self.stats = None
        self._deferred = None
        if self.requested.crawl_delay_s:
            self.own_requested().crawl_delay_s = 0.0
        self._reschedule()

    def learn_deferred(self) -> None:
        """Learn from the deferred sample now, before the state is shown or saved."""
        if self._deferred is not None:
            self._begin_learning()

    def _begin_learning(self) -> tuple[Strategy, HostStats]:
        self.stats = stats = self.stats or HostStats(self._shared.stats_shape)
        self.strategy = strategy = self.strategy or self._shared.make_strategy(
            self._shared.settings
        )
        sample, self._deferred = self._deferred, None
        if sample is not None:
            stats.add_success(sample.latency_s, sample.done_at)
            strategy.on_sample(sample, stats)
        return strategy, stats

    # ------------------------------------------------------------------ the next start

    def _reschedule(self) -> None:
        """Recompute gap, limit and `not_before` after anything that may have changed them."""
        shared, strategy, requested = self._shared, self.strategy, self.requested
        if strategy is None:
            gap_s, limit = shared.start_gap_s, shared.start_limit
        else:
            gap_s = 1.0 / strategy.rate
            limit = 1 if strategy.trial_only else strategy.concurrency
        if requested is not NO_REQUESTED_LIMITS:
            gap_s, limit = requested.bound(gap_s, limit, self.last_ok_at)
        # Comparisons instead of max() and min(): this runs for most responses.
        if gap_s < shared.least_gap_s:
            gap_s = shared.least_gap_s
        if self._gap_s == 0.0 < gap_s:
            # Several starts may share that instant. Moving it keeps `cancel` from taking one of
            # them for the latest and restoring an older `base_at`.
            self.base_at = nextafter(self.base_at, inf)
        if self.health is not None and self.health.is_holding:
            limit = 1
        self._limit = min(shared.max_concurrency, limit)
        self._gap_s = gap_s
        self.not_before = self._next_start()

    def _next_start(self) -> Instant:
        """Return the instant before which no request may start; `inf`: the host is suspended."""
        return inf if self.requested.is_suspended else self.next_start()

    def next_start(self) -> Instant:
        """Return the largest of all bounds on the next start, by this crawl or another."""
        requested, not_before = self.requested, self.base_at + self._gap_s
        burst = self._shared.burst
        if burst > 1 and not requested.crawl_delay_s:
            not_before -= (burst - 1) * self._gap_s
        if not_before < requested.blocked_until:
            not_before = requested.blocked_until
        return not_before

    def wait_reason(self) -> Reason:
        """Return the limit that sets `not_before`."""
        requested = self.requested
        if requested.blocked_until >= self.not_before:
            return requested.blocked_by
        return self.gap_reason

    @property
    def is_at_ceiling(self) -> bool:
        """Return whether the delay in force is the operator's smallest one."""
        return self._gap_s <= 1.001 * self._shared.least_gap_s

    @property
    def gap_reason(self) -> Reason:
        """The limit that sets the delay between two starts."""
        requested, gap_s = self.requested, self._gap_s
        pace_s = 1.0 / self.strategy.rate if self.strategy is not None else self._shared.pace_gap_s
        if gap_s <= requested.crawl_delay_s:
            return Reason.CRAWL_DELAY
        if gap_s <= pace_s:
            return Reason.PACE
        if gap_s <= self._shared.least_gap_s:
            return Reason.MIN_DELAY
        return Reason.RATE_LIMIT_HEADER
