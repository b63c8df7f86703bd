"""May this one go? One host: its clocks, its counters, its verdicts.

Every wish (the strategy's pace, robots.txt, Retry-After, RateLimit headers, bandwidth, the
operator's floor) is a lower bound on the instant of the next start, and the host obeys the
largest of them, so nothing can override anything and order cannot matter:

    not_before = max( last start + gap,         gap = max(floor, crawl delay, 1/rate, quota, bytes)
                      blocked_until )           Retry-After, an exhausted quota, our own backoff
    admit iff now ≥ not_before  and  in flight < limit  and  nothing stands in the gate

The gate holds what refuses instead of delaying: a breaker that is not closed, a parked, paused or
retired host. It is None for a healthy host, so that the common path is three comparisons.

Invariants, asserted or property-tested:
- a host is never contacted before `not_before`;
- `blocked_until` never decreases, except by `forgive`;
- in flight ≤ limit at every grant; at most one probe while half-open;
- every permit is reported or cancelled exactly once.

This file knows neither other hosts nor the time: `now` is always an argument.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from . import events
from .breaker import Breaker, BreakerEvent, BreakerState
from .classify import FORBIDDEN, classify
from .errors import PermitError
from .headers import RELEVANT, RateLimits, lowered, rate_limits, retry_after_s
from .model import Grant, Outcome, Permit, Reason, Refuse, Sample, Wait
from .pace.base import Effect, Note
from .vitals import Vitals

if TYPE_CHECKING:
    from .core import HouseRules
    from .model import Decision, Instant, Response
    from .pace.base import Pace
    from .retry import RetryBudget

# Where a Retry-After is worth looking for in whatever spelling; elsewhere the usual ones do.
_MAY_ASK_TO_WAIT = frozenset({403, 429, 503})
# A 403 within this long of a success is taken for a block (decision 2) ...
SUCCESS_IS_RECENT_S = 60.0
# ... unless slowing down has not helped this often: then the site simply has forbidden pages.
FORBIDDEN_PAGES_AFTER = 3


class Host:
    """The state of one host, or of a group of hosts that share a budget."""

    __slots__ = (
        "_blocked_by",
        "_floor_s",
        "_forbidden",
        "_gap_s",
        "_gate",
        "_last_bytes",
        "_limit",
        "_quota",
        "_quota_until",
        "_rules",
        "_stalled",
        "base_at",
        "blocked_until",
        "breaker",
        "budget",
        "crawl_delay_s",
        "failures",
        "in_flight",
        "key",
        "last_ok_at",
        "not_before",
        "pace",
        "requests",
        "throttle_streak",
        "throttles",
        "vitals",
        "waiters",
    )

    def __init__(self, key: str, rules: HouseRules) -> None:
        self.key = key
        self._rules = rules
        # A strategy and statistics are made at the second request: most hosts of a broad crawl
        # see one, and the first success teaches nothing that is worth 400 bytes.
        self.pace: Pace | None = None
        self.vitals: Vitals | None = None
        self.breaker: Breaker | None = None
        self.budget: RetryBudget | None = None
        self._quota: RateLimits | None = None
        self._quota_until: Instant = 0.0
        self._gate: Reason | None = None
        self._floor_s = rules.floor_s
        self._gap_s = rules.start_gap_s
        self._limit = rules.start_limit
        self._last_bytes = 0
        self._forbidden = 0
        self._stalled = False
        self.base_at: Instant = -inf  # the pacing clock: the last start (burst 1)
        self.not_before: Instant = -inf
        self.blocked_until: Instant = -inf
        self._blocked_by = Reason.BACKOFF
        self.crawl_delay_s = 0.0
        self.in_flight = 0
        self.requests = 0
        self.throttles = 0
        self.failures = 0
        self.throttle_streak = 0
        self.last_ok_at: Instant = -inf
        self.waiters = 0  # kept by the drivers: a host somebody waits for is not idle

    def __repr__(self) -> str:
        gate = f" {self._gate}" if self._gate else ""
        return (
            f"<Host {self.key} {self.in_flight}/{self._limit} in flight, "
            f"gap {self._gap_s:.3f} s, not before {self.not_before:.3f}{gate}>"
        )

    # ------------------------------------------------------------------ may this one go?

    def reserve(self, now: Instant) -> Decision:
        """A permit to start now, or until when to wait and why."""
        if now < self.not_before or self.in_flight >= self._limit or self._gate is not None:
            return self._reserve_slowly(now)
        return Grant(self.grant(now))

    def grant(self, now: Instant, *, is_probe: bool = False) -> Permit:
        """Start the clock for a request that goes now."""
        in_flight = self.in_flight + 1
        self.in_flight = in_flight
        self.requests += 1
        if self.budget is not None:
            self.budget.earn(self._rules.retry_policy)
        breaker = self.breaker
        permit = Permit(
            self, now, in_flight, breaker.generation if breaker else 0, self.base_at, is_probe
        )
        self._advance(now)
        return permit

    def _advance(self, now: Instant) -> None:
        """Move the pacing clock past a start. Rest earns no credit unless there is a burst."""
        gap_s = self._gap_s
        burst = self._rules.burst
        if burst == 1 or self.crawl_delay_s:
            self.base_at = now
            self.not_before = now + gap_s
        else:  # GCRA: the theoretical arrival time may run ahead by burst − 1 gaps
            self.base_at = max(self.base_at + gap_s, now)
            self.not_before = self.base_at + gap_s - (burst - 1) * gap_s

    def _reserve_slowly(self, now: Instant) -> Decision:
        gate = self._gate
        if gate is Reason.PARKED and now >= self.blocked_until:
            gate = self._gate = self._breaker_gate()
        if gate is Reason.BREAKER_OPEN or gate is Reason.HALF_OPEN:
            return self._reserve_probe(now)
        if gate is Reason.PARKED:
            return Refuse(self.blocked_until, gate)
        if gate is not None:
            return Refuse(None, gate)
        return self._wait(now) or Grant(self.grant(now))

    def _wait(self, now: Instant) -> Wait | None:
        """The clock or counter that forbids a start now; None when nothing does."""
        if now < self.not_before:
            return Wait(self.not_before, self._waiting_for())
        if self.in_flight >= self._limit:
            is_trial = self.pace is not None and self.pace.trial_only
            return Wait(None, Reason.TRIAL if is_trial else Reason.IN_FLIGHT)
        return None

    def _reserve_probe(self, now: Instant) -> Decision:
        """Through a breaker that is not closed: one leased probe at a time."""
        breaker = self.breaker
        assert breaker is not None
        if breaker.state is BreakerState.OPEN:
            if now < breaker.reopen_at:
                return Refuse(breaker.reopen_at, Reason.BREAKER_OPEN)
            breaker.move(BreakerEvent.REST_OVER)
            self._gate = Reason.HALF_OPEN
            self._rules.emit(events.HalfOpened(self.key, now))
        if breaker.probe is not None:
            if now < breaker.lease_until:
                return Wait(breaker.lease_until, Reason.HALF_OPEN)
            breaker.probe.is_abandoned = True
            self.in_flight -= 1
            self._open(BreakerEvent.PROBE_FAILED, now)
            return self._reserve_slowly(now)
        if now < self.not_before:
            return Wait(self.not_before, self._waiting_for())
        permit = self.grant(now, is_probe=True)
        breaker.lease(permit, now, self._rules.settings)
        return Grant(permit)

    def ready_at(self, now: Instant) -> Instant:
        """The earliest instant at which `reserve` could grant; infinite if only a report can."""
        if self.in_flight >= self._limit and self._breaker_gate() is None:
            return inf
        return self.free_at(now)

    def free_at(self, now: Instant) -> Instant:
        """The earliest instant that the clocks allow, whatever is under way now."""
        gate = self._gate
        if gate is Reason.PAUSED or gate is Reason.RETIRED:
            return inf
        earliest = max(now, self.not_before)
        breaker = self.breaker
        if breaker is None or breaker.state is BreakerState.CLOSED:
            return earliest
        if breaker.state is BreakerState.OPEN:
            return max(earliest, breaker.reopen_at)
        return earliest if breaker.probe is None else max(earliest, breaker.lease_until)

    # ------------------------------------------------------------------ what came of it

    def report(self, permit: Permit, response: Response, now: Instant) -> Outcome:
        """Learn from the answer to a permit, and free its place."""
        if permit.is_settled:
            raise PermitError(f"{permit!r} was reported or cancelled before")
        headers: dict[str, str] | None = None
        retry_s: float | None = None
        if response.headers and (
            not RELEVANT.isdisjoint(response.headers) or response.status in _MAY_ASK_TO_WAIT
        ):
            headers = lowered(response.headers)
            retry_s = _retry_after(headers, response)
        outcome = classify(response, has_retry_after=retry_s is not None)
        if response.status == FORBIDDEN and outcome is Outcome.NEUTRAL:
            outcome = self._judge_forbidden(now)
        if not self._settle(permit):
            return outcome
        if headers is not None:
            self._heed(headers, retry_s, response, now)
        if outcome is Outcome.OK:
            self.last_ok_at = now
            if self.requests == 1 and headers is None:
                return outcome  # see __init__: nothing to learn yet
        self._learn(permit, outcome, retry_s, response, now)
        return outcome

    def cancel(self, permit: Permit, now: Instant, *, was_sent: bool = False) -> None:
        """Give a permit back. If it was never sent, and was the latest, its slot is free again."""
        if not self._settle(permit):
            return
        if permit.is_probe and self.breaker is not None and self.breaker.probe is permit:
            self.breaker.probe = None  # the lease is returned; nothing was learned
        if not was_sent:
            self.requests -= 1
            if self.base_at == permit.sent_at:
                self.base_at = permit.previous_base
        self._reschedule()
        self._rules.emit(events.Cancelled(self.key, now))

    def _settle(self, permit: Permit) -> bool:
        """Mark a permit as used up; False when its lease had already run out."""
        if permit.is_settled:
            raise PermitError(f"{permit!r} was reported or cancelled before")
        permit.is_settled = True
        if permit.is_abandoned:
            return False
        self.in_flight -= 1
        assert self.in_flight >= 0
        return True

    def _learn(
        self,
        permit: Permit,
        outcome: Outcome,
        retry_s: float | None,
        response: Response,
        now: Instant,
    ) -> None:
        vitals = self.vitals
        if vitals is None:
            vitals = self.vitals = Vitals()
        pace = self.pace
        if pace is None:
            pace = self.pace = self._rules.make_pace(self._rules.settings)
        if outcome is Outcome.OK:
            vitals.add_latency(response.latency_s)
        vitals.add_answer(now, failed=outcome is Outcome.OVERLOAD)
        if outcome is not Outcome.OK or self.breaker is not None:
            self._judge_health(permit, outcome, now)
        self._count(outcome, response, retry_s, now)

        concurrency = pace.concurrency
        effect = pace.on_sample(
            Sample(outcome, permit.sent_at, now, response.latency_s, permit.in_flight, retry_s),
            vitals,
        )
        if effect is not None:
            self._follow(effect, retry_s, now)
        if pace.concurrency != concurrency:
            self._rules.emit(
                events.ConcurrencyChanged(self.key, now, pace.concurrency, concurrency)
            )
        rules = self._rules
        if rules.weighs_answers:
            self._last_bytes = response.bytes
            if rules.settings.delay_factor:
                rest_s = rules.settings.delay_factor * response.latency_s
                self._block(now + rest_s, Reason.DURATION_FACTOR)
        self._reschedule()

    def _count(
        self, outcome: Outcome, response: Response, retry_s: float | None, now: Instant
    ) -> None:
        if outcome is Outcome.OK:
            self.throttle_streak = 0
            self._stalled = False
        elif outcome is Outcome.THROTTLE:
            self.throttles += 1
            self.throttle_streak += 1
            self._rules.emit(events.Throttled(self.key, now, response.status, retry_s))
            self._watch_stall(now)
        elif outcome is Outcome.OVERLOAD:
            self.failures += 1
            self._watch_stall(now)

    def _follow(self, effect: Effect, retry_s: float | None, now: Instant) -> None:
        """Turn a strategy's effect into a pause and an event."""
        if effect.block_s and retry_s is None:
            self._block(now + effect.block_s, Reason.BACKOFF)
        if effect.note is None:
            return
        self._rules.dirty.add(self)
        self._reschedule()
        emit, delay_s = self._rules.emit, self._gap_s
        if effect.note is Note.SLOWED:
            emit(events.Slowed(self.key, now, delay_s, self.throttle_streak))
        elif effect.note is Note.SPED_UP:
            emit(events.SpedUp(self.key, now, delay_s))
        elif effect.note is Note.PROBING:
            emit(events.Probing(self.key, now, delay_s))
        else:
            emit(events.Recovered(self.key, now, delay_s))

    def _judge_forbidden(self, now: Instant) -> Outcome:
        """A 403 soon after a success is a throttle, until slowing down has proved useless."""
        if now - self.last_ok_at > SUCCESS_IS_RECENT_S:
            return Outcome.NEUTRAL
        if self._forbidden >= FORBIDDEN_PAGES_AFTER:
            return Outcome.NEUTRAL
        self._forbidden += 1
        return Outcome.THROTTLE

    def _watch_stall(self, now: Instant) -> None:
        """Tell once per run of bad answers that the host goes nowhere."""
        settings = self._rules.settings
        hopeless = (
            self.throttle_streak >= settings.stall_throttles
            and self._gap_s >= 0.999 * settings.max_delay_s
        )
        silent = 0.0 < self.last_ok_at + settings.stall_after_s < now
        if not self._stalled and (hopeless or silent):
            self._stalled = True
            self._rules.emit(events.Stalled(self.key, now, self.throttle_streak))

    # ------------------------------------------------------------------ what the server said

    def _heed(
        self, headers: dict[str, str], retry_s: float | None, response: Response, now: Instant
    ) -> None:
        """Obey Retry-After and RateLimit headers."""
        settings = self._rules.settings
        if retry_s is not None:
            # Jitter only upwards, so that many workers do not fire at the same tick.
            jitter_s = self._rules.rng.uniform(0.0, min(1.0, 0.1 * retry_s))
            self._block(now + retry_s + jitter_s, Reason.RETRY_AFTER)
            self._rules.dirty.add(self)
            if retry_s > settings.max_retry_after_s and self._gate is None:
                self._gate = Reason.PARKED
                self._rules.emit(events.Parked(self.key, now, self.blocked_until))
        if not settings.rate_limit_headers:
            return
        quota = rate_limits(headers, in_flight=self.in_flight, received_at=response.received_at)
        if quota is not None:
            self._quota = quota
            self._quota_until = now + quota.valid_s
            if quota.blocked_s is not None and retry_s is None:
                self._block(now + quota.blocked_s, Reason.RATE_LIMIT_HEADER)

    def _block(self, until: Instant, why: Reason) -> None:
        if until > self.blocked_until:
            self.blocked_until = until
            self._blocked_by = why

    def ask_crawl_delay(self, delay_s: float, now: Instant) -> None:
        """What robots.txt asked for; the largest wish of a group's members holds."""
        settings = self._rules.settings
        if delay_s > settings.max_crawl_delay_s:
            if settings.long_crawl_delay == "skip_host":
                self.retire(f"crawl-delay of {delay_s:g} s", now)
                return
            if settings.long_crawl_delay == "cap":
                delay_s = settings.max_crawl_delay_s
        self.crawl_delay_s = delay_s
        self._floor_s = max(self._rules.floor_s, delay_s)
        self._rules.dirty.add(self)
        self._reschedule()

    # ------------------------------------------------------------------ the breaker

    def _judge_health(self, permit: Permit, outcome: Outcome, now: Instant) -> None:
        breaker = self.breaker
        if breaker is None:
            if outcome is not Outcome.OVERLOAD:
                return
            breaker = self.breaker = Breaker()
            breaker.generation = permit.generation
        if permit.generation != breaker.generation:
            return
        if breaker.state is BreakerState.HALF_OPEN:
            self._judge_probe(breaker, outcome, now)
        elif outcome is Outcome.OVERLOAD:
            breaker.consecutive += 1
            assert self.vitals is not None
            if breaker.should_trip(*self.vitals.errors(now), self._rules.settings):
                self._open(BreakerEvent.TRIPPED, now)
        elif outcome is not Outcome.THROTTLE:
            breaker.consecutive = 0

    def _judge_probe(self, breaker: Breaker, outcome: Outcome, now: Instant) -> None:
        breaker.probe = None
        if outcome is Outcome.OVERLOAD:
            self._open(BreakerEvent.PROBE_FAILED, now)
        elif outcome is not Outcome.THROTTLE:
            # A 404 proves health as well as a page does; only a throttle proves neither.
            breaker.passed += 1
            if breaker.passed >= self._rules.settings.breaker_probes:
                breaker.close()
                self._gate = None
                assert self.vitals is not None
                self.vitals.clear_errors()
                if self.pace is not None:
                    self.pace.restart(now)
                self._rules.emit(events.Closed(self.key, now))

    def _open(self, event: BreakerEvent, now: Instant) -> None:
        breaker, rules = self.breaker, self._rules
        assert breaker is not None
        breaker.open(event, now, rules.settings, rules.rng)
        self._gate = Reason.BREAKER_OPEN
        rules.emit(events.Opened(self.key, now, breaker.reopen_at, breaker.opens))
        if breaker.opens >= rules.settings.retire_after_opens:
            self.retire(f"breaker opened {breaker.opens} times in a row", now)

    def _breaker_gate(self) -> Reason | None:
        if self.breaker is None or self.breaker.state is BreakerState.CLOSED:
            return None
        is_open = self.breaker.state is BreakerState.OPEN
        return Reason.BREAKER_OPEN if is_open else Reason.HALF_OPEN

    # ------------------------------------------------------------------ the operator

    def retire(self, reason: str, now: Instant) -> None:
        """Contact the host no more, until somebody revives it."""
        self._gate = Reason.RETIRED
        self._rules.emit(events.Retired(self.key, now, reason))

    def revive(self, now: Instant) -> None:
        """Take a retired or paused host up again; what the server asked for still holds."""
        self._gate = None
        self.breaker = None
        if self.blocked_until - now > self._rules.settings.max_retry_after_s:
            self._gate = Reason.PARKED
        self._rules.emit(events.Revived(self.key, now))

    def pause(self) -> None:
        """Refuse every request until `revive`."""
        self._gate = Reason.PAUSED

    @property
    def gate(self) -> Reason | None:
        """What refuses requests at present, if anything does."""
        return self._gate

    # ------------------------------------------------------------------ the clocks

    @property
    def delay_s(self) -> float:
        """The gap in force between two starts."""
        return self._gap_s

    @property
    def limit(self) -> int:
        """How many requests may be under way at present."""
        return self._limit

    def is_idle(self, now: Instant) -> bool:
        """Nothing under way, nobody waiting, and no clock that a newcomer would have to know."""
        return (
            self.in_flight == 0
            and self.waiters == 0
            and self.not_before <= now
            and self.blocked_until <= now
            and self._gate is None
            and (self.breaker is None or self.breaker.state is BreakerState.CLOSED)
        )

    def adopt(self, pace: Pace) -> None:
        """Use a strategy that was prepared elsewhere (from memory), at once."""
        self.pace = pace
        self._reschedule()

    def block_until(self, until: Instant) -> None:
        """Honour a pause that an earlier run was asked for."""
        self._block(until, Reason.RETRY_AFTER)
        self._reschedule()

    def _reschedule(self) -> None:
        """Recompute gap, limit and `not_before` after anything that may have moved them."""
        rules = self._rules
        pace = self.pace
        if pace is None:
            gap_s, limit = rules.start_gap_s, rules.start_limit
        else:
            gap_s = 1.0 / pace.rate
            limit = 1 if pace.trial_only else pace.concurrency
        if self._quota is not None:
            gap_s, limit = self._apply_quota(self._quota, gap_s, limit)
        gap_s = max(gap_s, self._floor_s, rules.ceiling_gap_s)
        if self._last_bytes and rules.settings.max_bandwidth:
            gap_s = max(gap_s, self._last_bytes / rules.settings.max_bandwidth)
        if self.crawl_delay_s >= 1.0:
            limit = 1
        self._limit = min(limit, rules.max_concurrency)
        self._gap_s = gap_s
        not_before = self.base_at + gap_s
        if rules.burst > 1 and not self.crawl_delay_s:
            not_before -= (rules.burst - 1) * gap_s
        self.not_before = max(not_before, self.blocked_until)

    def _apply_quota(self, quota: RateLimits, gap_s: float, limit: int) -> tuple[float, int]:
        """RateLimit headers replace the estimate, in both directions, while they are fresh."""
        if self.last_ok_at > self._quota_until:
            self._quota = None
            return gap_s, limit
        if quota.rate is not None and quota.rate > 0.0:
            gap_s = 1.0 / quota.rate
        elif quota.low_remaining:
            gap_s *= 2.0
        if quota.bytes_per_s and self._last_bytes:
            gap_s = max(gap_s, self._last_bytes / quota.bytes_per_s)
        if quota.concurrency is not None:
            limit = min(limit, max(1, quota.concurrency))
        return gap_s, limit

    def _waiting_for(self) -> Reason:
        """Which clock sets `not_before`."""
        if self.blocked_until >= self.not_before:
            return self._blocked_by
        gap_s = self._gap_s
        if self.crawl_delay_s and gap_s <= self.crawl_delay_s:
            return Reason.CRAWL_DELAY
        if self.pace is not None and gap_s <= 1.0 / self.pace.rate:
            return Reason.PACE
        if self._quota is not None:
            return Reason.RATE_LIMIT_HEADER
        if gap_s <= self._floor_s:
            return Reason.MIN_DELAY
        return Reason.BANDWIDTH if self._last_bytes else Reason.PACE


def _retry_after(headers: dict[str, str], response: Response) -> float | None:
    """The pause that an answer asks for. On a success the header means something else."""
    asked = headers.get("retry-after")
    if asked is None or response.status is None or 200 <= response.status < 300:
        return None
    return retry_after_s(asked, date=headers.get("date"), received_at=response.received_at)
