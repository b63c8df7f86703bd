"""The state of one host, and the rule that admits or delays its requests.

Every limit (the strategy's rate, robots.txt, Retry-After, RateLimit headers, bandwidth, the
operator's minimum delay) is a lower bound on the instant of the next start. The largest bound
holds, so no limit can override another and their order does not matter:

    not_before = max( last start + gap,   gap = max(floor, crawl delay, 1/rate, RateLimit quota)
                      blocked_until )     Retry-After, exhausted quota, bandwidth, backoff
    admit iff now ≥ not_before  and  in flight < limit  and  gate is None

The gate is the reason to refuse instead of delay: the breaker is not closed, or the host is
parked, paused or retired. It is None for a healthy host, so the common path is three comparisons.

Invariants, asserted or property-tested:
- a host is never contacted before `not_before`;
- `blocked_until` never decreases;
- in flight ≤ limit at every grant; at most one probe while half-open;
- every permit is reported or cancelled exactly once.

This module knows neither other hosts nor the time: `now` is always an argument. It is long because
all transitions of a host are in one place.
"""

from __future__ import annotations

from math import inf, nextafter
from typing import TYPE_CHECKING

from . import events
from .breaker import BreakerEvent, BreakerState
from .classify import FORBIDDEN, SUCCESS, classify
from .errors import PermitError
from .headers import RELEVANT, lowered, rate_limits, retry_after_s
from .health import BreakerChange, HostHealth
from .limits import NO_REQUESTED_LIMITS, RequestedLimits
from .model import (
    NEUTRAL,
    NEVER,
    OK,
    OVERLOAD,
    THROTTLE,
    Grant,
    Permit,
    Reason,
    Refuse,
    Sample,
    Wait,
)
from .pace.base import Effect, PaceChange
from .stats import HostStats

if TYPE_CHECKING:
    from .breaker import Breaker
    from .core import SharedContext
    from .model import Decision, Instant, Outcome, Response
    from .pace.base import Strategy
    from .retry import RetryBudget, RetryPolicy

# For these statuses, Retry-After is searched for in any spelling; otherwise in the usual ones only.
_MAY_CARRY_RETRY_AFTER = frozenset({403, 429, 503})
# Only `revive` ends these; the breaker cannot.
_SET_BY_OPERATOR = frozenset({Reason.PAUSED, Reason.RETIRED})
_GATES = {
    BreakerState.CLOSED: None,
    BreakerState.OPEN: Reason.BREAKER_OPEN,
    BreakerState.HALF_OPEN: Reason.HALF_OPEN,
}
# A 403 within this time after a success counts as a throttle (docs/adr/0005): see `HostHealth`.
SUCCESS_IS_RECENT_S = 60.0


class HostState:
    """The state of one host, or of a group of hosts that share one request rate."""

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

    # ------------------------------------------------------------------ admission

    def reserve(self, now: Instant) -> Decision:
        """Return a permit to start now, or until when to wait and why."""
        if now < self.not_before or self.in_flight >= self._limit or self._gate is not None:
            return self._reserve_slowly(now)
        return Grant(self.grant(now))

    def grant(self, now: Instant, *, is_probe: bool = False) -> Permit:
        """Return a permit for a request that starts now, and count the delay from it."""
        in_flight = self.in_flight + 1
        self.in_flight = in_flight
        self.requests += 1
        health = self.health
        generation = 0
        if health is not None:
            health.retry_budget.earn(self._shared.retry_policy)
            generation = health.breaker.generation
        permit = Permit(self, now, in_flight, generation, self.base_at, is_probe)
        shared = self._shared
        if shared.burst == 1 or self.requested.crawl_delay_s:
            self.base_at = now
            self.not_before = now + self._gap_s
        else:  # GCRA: the theoretical arrival time may run ahead by burst − 1 gaps
            self.base_at = max(self.base_at + self._gap_s, now)
            self.not_before = self.base_at - (shared.burst - 2) * self._gap_s
        return permit

    def _reserve_slowly(self, now: Instant) -> Decision:
        gate = self._gate
        if gate is Reason.PARKED and now >= self.requested.blocked_until:
            gate = self._gate = None
        if gate is Reason.BREAKER_OPEN or gate is Reason.HALF_OPEN:
            return self._reserve_probe(now)
        if gate is Reason.PARKED:
            return Refuse(self.requested.blocked_until, gate)
        if gate is not None:
            return Refuse(None, gate)
        return self._wait(now) or Grant(self.grant(now))

    def _wait(self, now: Instant) -> Wait | None:
        """Return the reason to wait, if there is one."""
        if now < self.not_before:
            return Wait(self.not_before, self._wait_reason())
        if self.in_flight >= self._limit:
            is_trial = self.strategy is not None and self.strategy.trial_only
            return Wait(None, Reason.TRIAL if is_trial else Reason.IN_FLIGHT)
        return None

    def _reserve_probe(self, now: Instant) -> Decision:
        """Reserve while the breaker is not closed: one probe at a time, with a lease."""
        assert self.health is not None
        breaker = self.health.breaker
        if breaker.state is BreakerState.OPEN:
            if now < breaker.reopen_at:
                return Refuse(breaker.reopen_at, Reason.BREAKER_OPEN)
            breaker.move(BreakerEvent.OPEN_TIME_OVER)
            self._gate = Reason.HALF_OPEN
            self._shared.emit(events.HalfOpened(self.key, now))
        if breaker.probe is not None:
            if now < breaker.lease_until:
                return Wait(breaker.lease_until, Reason.HALF_OPEN)
            breaker.probe.is_abandoned = True
            self.in_flight -= 1
            breaker.open(BreakerEvent.PROBE_FAILED, now, self._shared.settings, self._shared.rng)
            self._on_open(breaker, now)
            return self._reserve_slowly(now)
        if now < self.not_before:
            return Wait(self.not_before, self._wait_reason())
        # The response that opened the breaker freed a place, and only probes were granted since:
        # so there is room, unless the operator has lowered the limit meanwhile (`use`).
        if self.in_flight >= self._shared.max_concurrency:
            return Wait(None, Reason.IN_FLIGHT)
        permit = self.grant(now, is_probe=True)
        breaker.lease(permit, now, self._shared.settings)
        return Grant(permit)

    def may_leave(self, permit: Permit, now: Instant) -> bool:
        """Return whether a granted request may be sent now; if so, the delay counts from now.

        Opening a connection takes time, and meanwhile the host may have asked for a pause, the
        breaker may have opened, or the operator may have paused the host.
        """
        gate = self._gate
        if (
            now < self.requested.blocked_until
            or permit.is_abandoned
            or (gate is not None and not (gate is Reason.HALF_OPEN and self._is_probe(permit)))
        ):
            return False
        if now < self.left_at + self._gap_s and (
            self._shared.burst == 1 or self.requested.crawl_delay_s
        ):
            return False
        self.left_at = now
        self.contacted(now)
        return True

    def _is_probe(self, permit: Permit) -> bool:
        return self.health is not None and self.health.breaker.probe is permit

    def ready_at(self, now: Instant) -> Instant:
        """Return the earliest instant at which `reserve` may grant; `inf` if not known yet."""
        is_full = self.in_flight >= self._limit
        if self.health is None and self._gate is None:  # true for nearly every host
            return inf if is_full else max(now, self.not_before)
        if is_full and self.health is not None:
            # A probe is allowed beyond the limit, and its lease expires without a report.
            is_full = self.health.breaker.state is BreakerState.CLOSED
        return inf if is_full else self.free_at(now)

    def free_at(self, now: Instant) -> Instant:
        """Return the earliest instant for a start, ignoring requests in flight."""
        if self._gate in _SET_BY_OPERATOR:
            return inf
        earliest = max(now, self.not_before)
        health = self.health
        if health is None or health.breaker.state is BreakerState.CLOSED:
            return earliest
        return max(earliest, health.breaker.next_probe_at)

    # ------------------------------------------------------------------ results

    def report(self, permit: Permit, response: Response, now: Instant) -> Outcome:
        """Settle a permit with its response, and learn from it."""
        if permit.is_settled:
            raise PermitError(f"{permit!r} was already reported or cancelled")
        status, latency_s, headers = response.status, response.latency_s, response.headers
        if not 0.0 <= latency_s < inf:
            raise ValueError(f"latency_s must be finite and at least 0, not {latency_s!r}")
        relevant: dict[str, str] | None = None
        retry_s: float | None = None
        if headers and (not RELEVANT.isdisjoint(headers) or status in _MAY_CARRY_RETRY_AFTER):
            relevant = lowered(headers)
            retry_s = _retry_after(relevant, response)
        if status == SUCCESS and retry_s is None:
            outcome = OK  # the common case
        else:
            outcome = classify(response, has_retry_after=retry_s is not None)
            if status == FORBIDDEN and outcome is NEUTRAL:
                outcome = self._classify_403(now)
        permit.is_settled = True
        if permit.is_abandoned:
            # The response came too late to learn from it, but its headers are obeyed.
            if relevant is not None:
                self._apply_headers(relevant, retry_s, response, now)
                self._reschedule()
            return outcome
        self.in_flight -= 1
        if relevant is not None:
            self._apply_headers(relevant, retry_s, response, now)
        if outcome is OK:
            self.last_ok_at = now
            if relevant is None and self.requests == 1 and self.health is None:
                return outcome  # see __init__: nothing to learn yet
            if self.strategy is None and self._can_defer_sample(permit):
                self._deferred = Sample(OK, permit.sent_at, now, latency_s, permit.in_flight)
                return outcome
        self._learn(permit, outcome, retry_s, response, now)
        return outcome

    def _can_defer_sample(self, permit: Permit) -> bool:
        """Return whether learning from this success now could change neither delay nor limit."""
        return (
            self._shared.can_defer
            and permit.in_flight == 1
            and self._deferred is None
            and self.stats is None
            and self.health is None
            and self.requested.quota is None
        )

    def learn_deferred(self) -> None:
        """Learn from the deferred sample now, before the state is shown or saved."""
        if self._deferred is not None:
            self._begin_learning()

    def cancel(self, permit: Permit, now: Instant, *, was_sent: bool = False) -> None:
        """Give a permit back. If it was the latest and was not sent, its slot is free again."""
        if permit.is_settled:
            raise PermitError(f"{permit!r} was already reported or cancelled")
        permit.is_settled = True
        if permit.is_abandoned:
            return
        self.in_flight -= 1
        if self.health is not None and self.health.breaker.probe is permit:
            self.health.breaker.probe = None  # the lease is free again; nothing was learned
        if not was_sent:
            self.requests -= 1
            taken = permit.sent_at
            if self._shared.burst > 1 and not self.requested.crawl_delay_s:
                taken = max(permit.previous_base + self._gap_s, taken)
            if self.base_at == taken:
                self.base_at = permit.previous_base
        self._reschedule()
        self._shared.emit(events.Cancelled(self.key, now))

    def _learn(
        self,
        permit: Permit,
        outcome: Outcome,
        retry_s: float | None,
        response: Response,
        now: Instant,
    ) -> None:
        shared = self._shared
        strategy, stats = self.strategy, self.stats
        if strategy is None or stats is None:
            strategy, stats = self._begin_learning()
        rate, concurrency = strategy.rate, strategy.concurrency
        latency_s = response.latency_s
        if outcome is OK:
            stats.add_success(latency_s, now)
            if self.health is not None:
                if self.health.has_failures:
                    shared.mark_dirty(self)
                self._update_breaker(self.health, permit, OK, now)
        else:
            stats.add_answer(now, failed=outcome is OVERLOAD)
            self._record_bad_answer(permit, outcome, response, retry_s, now)
        effect = strategy.on_sample(
            Sample(outcome, permit.sent_at, now, latency_s, permit.in_flight, retry_s), stats
        )
        if effect is not None:
            self._apply_effect(effect, retry_s, now)
        if strategy.concurrency != concurrency:
            shared.emit(events.ConcurrencyChanged(self.key, now, strategy.concurrency, concurrency))
        if shared.has_size_or_duration_limits or self.requested.quota is not None:
            self._apply_size_and_duration(permit, response, now)
        elif (
            effect is None
            and strategy.rate == rate
            and strategy.concurrency == concurrency
            and retry_s is None
        ):
            return  # neither delay nor limit can have changed
        self._reschedule()

    def _begin_learning(self) -> tuple[Strategy, HostStats]:
        self.stats = stats = self.stats or HostStats()
        self.strategy = strategy = self.strategy or self._shared.make_strategy(
            self._shared.settings
        )
        sample, self._deferred = self._deferred, None
        if sample is not None:
            stats.add_success(sample.latency_s, sample.done_at)
            strategy.on_sample(sample, stats)
        return strategy, stats

    def _apply_size_and_duration(self, permit: Permit, response: Response, now: Instant) -> None:
        """Delay the next request after a slow or large response (`delay_factor`, bandwidth)."""
        settings, requested = self._shared.settings, self.own_requested()
        requested.block(now + settings.delay_factor * response.latency_s, Reason.DURATION_FACTOR)
        bandwidths = (
            settings.max_bandwidth,
            requested.quota.bytes_per_s if requested.quota else None,
        )
        for bandwidth in filter(None, bandwidths):
            requested.block(permit.sent_at + response.bytes / bandwidth, Reason.BANDWIDTH)

    def _record_bad_answer(
        self,
        permit: Permit,
        outcome: Outcome,
        response: Response,
        retry_s: float | None,
        now: Instant,
    ) -> None:
        health = self._ensure_health()
        if outcome is not NEUTRAL or health.has_failures:
            self._shared.mark_dirty(self)
        if outcome is THROTTLE:
            self._shared.emit(events.Throttled(self.key, now, response.status, retry_s))
        self._update_breaker(health, permit, outcome, now)
        if outcome is NEUTRAL:
            return
        health.note_bad(response, retry_s, now)
        if health.is_newly_stalled(self._gap_s, now, self._shared.settings):
            self._shared.emit(events.Stalled(self.key, now, health.throttle_streak))
        bad_s = now - health.bad_since
        if bad_s >= self._shared.settings.give_up_after_s:
            self.give_up(f"no success for {bad_s:.0f} s, latest answer {health.latest}", now)

    def _ensure_health(self) -> HostHealth:
        if self.health is None:
            self.health = HostHealth(self._shared.retry_policy)
        return self.health

    def retry_budget(self) -> RetryBudget:
        """Return the retry budget of this host."""
        return self._ensure_health().retry_budget

    def _apply_effect(self, effect: Effect, retry_s: float | None, now: Instant) -> None:
        """Turn the effect of a sample into a pause and an event."""
        if effect.block_s and retry_s is None:
            self.own_requested().block(now + effect.block_s, Reason.BACKOFF)
        if effect.change is None:
            return
        self._shared.mark_dirty(self)
        self._reschedule()
        emit, delay_s = self._shared.emit, self._gap_s
        if effect.change is PaceChange.SLOWED:
            streak = self.health.throttle_streak if self.health is not None else 0
            emit(events.Slowed(self.key, now, delay_s, streak))
        elif effect.change is PaceChange.SPED_UP:
            emit(events.SpedUp(self.key, now, delay_s))
        elif effect.change is PaceChange.PROBING:
            emit(events.Probing(self.key, now, delay_s))
        else:
            emit(events.Recovered(self.key, now, delay_s))

    def _classify_403(self, now: Instant) -> Outcome:
        """Classify a 403 without Retry-After: a throttle up to three times soon after a success."""
        if now - self.last_ok_at > SUCCESS_IS_RECENT_S:
            return NEUTRAL
        return THROTTLE if self._ensure_health().suspects_block() else NEUTRAL

    # ------------------------------------------------------------------ limits set by the server

    def _apply_headers(
        self, headers: dict[str, str], retry_s: float | None, response: Response, now: Instant
    ) -> None:
        """Apply Retry-After and RateLimit headers."""
        requested = self.own_requested()
        if retry_s is not None and retry_s < inf:
            # The jitter only adds, so that many workers do not start at the same instant.
            jitter_s = self._shared.rng.uniform(0.0, min(1.0, 0.1 * retry_s))
            requested.block(now + retry_s + jitter_s, Reason.RETRY_AFTER)
            self._shared.mark_dirty(self)
            self._park_if_long(now)
        elif retry_s is not None:
            self.give_up("its Retry-After is too large to read", now)
        if self._shared.settings.rate_limit_headers:
            received_at = response.received_at
            quota = rate_limits(headers, in_flight=self.in_flight, received_at=received_at)
            if quota is not None:
                requested.set_quota(quota, now)

    def own_requested(self) -> RequestedLimits:
        """Return the host's own `RequestedLimits`, to be changed; created on first use."""
        if self.requested is NO_REQUESTED_LIMITS:
            self.requested = RequestedLimits()
        return self.requested

    def set_crawl_delay(self, delay_s: float, now: Instant) -> None:
        """Set the Crawl-delay of robots.txt; in a group of hosts the longest one holds."""
        settings = self._shared.settings
        asked_s = delay_s
        if asked_s > settings.max_crawl_delay_s:
            if settings.long_crawl_delay == "skip_host" and self.give_up(
                f"crawl-delay of {asked_s:g} s", now
            ):
                return
            if settings.long_crawl_delay == "cap":
                delay_s = settings.max_crawl_delay_s
        if settings.group_by != "host":
            delay_s = max(delay_s, self.requested.crawl_delay_s)
        if delay_s == self.requested.crawl_delay_s:
            return
        if asked_s > settings.max_crawl_delay_s:
            self._shared.emit(events.LongCrawlDelay(self.key, now, asked_s, delay_s))
        self.own_requested().crawl_delay_s = delay_s
        self._shared.mark_dirty(self)
        self._reschedule()

    # ------------------------------------------------------------------ the breaker

    def _update_breaker(
        self, health: HostHealth, permit: Permit, outcome: Outcome, now: Instant
    ) -> None:
        shared, stats, strategy = self._shared, self.stats, self.strategy
        assert stats is not None
        assert strategy is not None
        change = health.on_answer(permit, outcome, stats, now, shared.settings, shared.rng)
        if change is BreakerChange.OPENED:
            self._on_open(health.breaker, now)
        elif change is BreakerChange.CLOSED:
            if self._gate is Reason.HALF_OPEN:
                self._gate = None
            stats.clear_errors()
            strategy.restart(now)
            shared.mark_dirty(self)
            shared.emit(events.Closed(self.key, now))

    def _on_open(self, breaker: Breaker, now: Instant) -> None:
        shared = self._shared
        if self._gate not in _SET_BY_OPERATOR:
            self._gate = Reason.BREAKER_OPEN
        shared.emit(events.Opened(self.key, now, breaker.reopen_at, breaker.opens))
        if breaker.opens >= shared.settings.retire_after_opens:
            self.give_up(f"breaker opened {breaker.opens} times in a row", now)

    # ------------------------------------------------------------------ giving up

    def waits_too_long(self, now: Instant) -> bool:
        """Return whether the next start is allowed only after the host would be given up.

        `give_up_after_s` counts from the first refusal or failure since the last success; for a
        host without one, whose Crawl-delay is that long, from now.
        """
        if self.in_flight or self._gate in _SET_BY_OPERATOR:
            return False
        since = now if self.health is None else min(now, self.health.bad_since)
        return self.free_at(now) > since + self._shared.settings.give_up_after_s

    def give_up_waiting(self, now: Instant) -> None:
        """Give the host up now, because its next start is too far away."""
        latest = f" (latest answer {self.health.latest})" if self.health is not None else ""
        self.give_up(f"no request allowed for {self.free_at(now) - now:.0f} s{latest}", now)

    def give_up(self, reason: str, now: Instant) -> bool:
        """Retire a host that cannot be fetched; return whether it is retired now.

        Every way to give a host up leads through here. One that the operator has paused is not
        given up, because nothing is asked of it; the first reason is the one that is reported.
        """
        if self._gate not in _SET_BY_OPERATOR:
            self.retire(reason, now)
        return self._gate is Reason.RETIRED

    # ------------------------------------------------------------------ the operator

    def retire(self, reason: str, now: Instant) -> None:
        """Refuse every request until `revive`."""
        self._gate = Reason.RETIRED
        self._shared.emit(events.Retired(self.key, now, reason))

    def revive(self, now: Instant) -> None:
        """Allow requests again after `retire` or `pause`; limits set by the server still hold."""
        self._gate = None
        if self.health is not None:
            self.health.forgive()
            self._shared.mark_dirty(self)
        self._park_if_long(now)
        self._shared.emit(events.Revived(self.key, now))

    def pause(self) -> None:
        """Refuse every request until `revive`."""
        self._gate = Reason.PAUSED

    def unpause(self, now: Instant) -> None:
        """Allow requests again after `pause`; an open breaker holds, and so does `retire`."""
        if self._gate is Reason.PAUSED:
            health = self.health
            self._gate = None if health is None else _GATES[health.breaker.state]
            self._park_if_long(now)

    @property
    def gate(self) -> Reason | None:
        """The reason why requests are refused at present; None: they are not."""
        return self._gate

    # ------------------------------------------------------------------ delay and limit

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

    def is_idle(self, now: Instant) -> bool:
        """Return whether dropping the state could not let a request start too early."""
        return (
            self.in_flight == 0
            and self.not_before <= now
            and self.requested.blocked_until <= now
            and self._gate not in _SET_BY_OPERATOR
            and (self.health is None or self.health.breaker.reopen_at <= now)
        )

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

    def contacted(self, now: Instant) -> None:
        """Count the delay to the next request from `now`."""
        if now > self.base_at:
            self.base_at = now
            self._reschedule()

    def block_until(self, until: Instant, now: Instant) -> None:
        """Restore a Retry-After that an earlier run received."""
        self.own_requested().block(until, Reason.RETRY_AFTER)
        self._park_if_long(now)
        self._reschedule()

    def restore_health(
        self,
        *,
        failing_s: float | None,
        failures: int,
        opens: int,
        open_s: float | None,
        now: Instant,
    ) -> None:
        """Restore the failures of an earlier run: their duration, their count, and the breaker."""
        health = self._ensure_health()
        if failing_s is not None:
            health.bad_since = now - failing_s
        health.breaker.restore(failures, opens, None if open_s is None else now + open_s)
        if open_s is not None and self._gate not in _SET_BY_OPERATOR:
            self._gate = Reason.BREAKER_OPEN

    def _park_if_long(self, now: Instant) -> None:
        """Refuse requests, instead of delaying them, if the pause is beyond `max_retry_after_s`."""
        until = self.requested.blocked_until
        if self._gate is None and until - now > self._shared.settings.max_retry_after_s:
            self._gate = Reason.PARKED
            self._shared.emit(events.Parked(self.key, now, until))

    def _reschedule(self) -> None:
        """Recompute gap, limit and `not_before` after anything that may have changed them."""
        shared, strategy = self._shared, self.strategy
        if strategy is None:
            gap_s, limit = shared.start_gap_s, shared.start_limit
        else:
            gap_s = 1.0 / strategy.rate
            limit = 1 if strategy.trial_only else strategy.concurrency
        requested = self.requested
        if requested is not NO_REQUESTED_LIMITS:
            gap_s, limit = requested.bound(gap_s, limit, self.last_ok_at)
        # Comparisons instead of max() and min(): this runs for most responses.
        if gap_s < shared.least_gap_s:
            gap_s = shared.least_gap_s
        if self._gap_s == 0.0 < gap_s:
            # Several starts may share that instant. Moving it keeps `cancel` from taking one of
            # them for the latest and restoring an older `base_at`.
            self.base_at = nextafter(self.base_at, inf)
        self._limit = min(shared.max_concurrency, limit)
        self._gap_s = gap_s
        not_before = self.base_at + gap_s
        if shared.burst > 1 and not requested.crawl_delay_s:
            not_before -= (shared.burst - 1) * gap_s
        if not_before < requested.blocked_until:
            not_before = requested.blocked_until
        self.not_before = not_before

    def _wait_reason(self) -> Reason:
        """Return the limit that sets `not_before`."""
        requested = self.requested
        if requested.blocked_until >= self.not_before:
            return requested.blocked_by
        gap_s = self._gap_s
        pace_s = 1.0 / self.strategy.rate if self.strategy is not None else self._shared.pace_gap_s
        if gap_s <= requested.crawl_delay_s:
            return Reason.CRAWL_DELAY
        if gap_s <= pace_s:
            return Reason.PACE
        if gap_s <= self._shared.least_gap_s:
            return Reason.MIN_DELAY
        return Reason.RATE_LIMIT_HEADER


def _retry_after(headers: dict[str, str], response: Response) -> float | None:
    """Return the Retry-After of a response in seconds. On a 2xx the header means something else."""
    asked, status = headers.get("retry-after"), response.status
    if asked is None or not isinstance(status, int) or 200 <= status < 300:
        return None
    return retry_after_s(asked, date=headers.get("date"), received_at=response.received_at)
