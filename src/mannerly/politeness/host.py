"""One host: the rule that admits or delays its requests.

    schedule.HostSchedule ◄─ gate.HostGate ◄─ answers.HostAnswers ◄─ HostState
    when, how many           refused, why     learned                granted, given back

    admit iff now ≥ not_before  and  in flight < limit  and  gate is None

The gate is None for a healthy host, so the common path is three comparisons. A permit is one
request: it is judged again when its connection is open (`may_leave`), and given back if it was not
sent (`cancel`).

Invariants, asserted or property-tested:
- a host is never contacted before `not_before`;
- in flight ≤ limit at every grant; at most one probe while half-open;
- every permit is reported or cancelled exactly once.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from . import events
from .answers import HostAnswers
from .breaker import BreakerEvent, BreakerState
from .errors import PermitError
from .model import Grant, Permit, Reason, Refuse, Wait

if TYPE_CHECKING:
    from .model import Decision, Instant

LENT_LOOK_S = 1.0  # how often to ask whether another crawl still sends to the host


class HostState(HostAnswers):
    """The state of one host, or of a group of hosts that share one request rate."""

    __slots__ = ()

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

    def ready_at(self, now: Instant) -> Instant:
        """Return the earliest instant at which `reserve` may grant; `inf` if not known yet."""
        is_full = self.in_flight >= self._limit
        if self.health is None and self._gate is None:  # true for nearly every host
            return inf if is_full else max(now, self.not_before)
        if is_full and self.health is not None:
            # A probe is allowed beyond the limit, and its lease expires without a report.
            is_full = self.health.breaker.state is BreakerState.CLOSED
        return inf if is_full else self.free_at(now)

    def may_leave(self, permit: Permit, now: Instant) -> bool:
        """Return whether a granted request may be sent now.

        Opening a connection takes time, and meanwhile the host may have asked for a pause, the
        breaker may have opened, the operator may have paused the host, or another request that was
        connecting may have left.
        """
        gate, requested = self._gate, self.requested
        if (
            now < requested.blocked_until
            or requested.is_suspended
            or permit.is_abandoned
            or (gate is not None and not (gate is Reason.HALF_OPEN and self._is_probe(permit)))
        ):
            return False
        if now < self.left_at + self._gap_s and (
            self._shared.burst == 1 or requested.crawl_delay_s
        ):
            return False
        self.left_at = now
        return True

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

    # ------------------------------------------------------------------ the uncommon ways

    def _reserve_slowly(self, now: Instant) -> Decision:
        gate = self._gate
        if self.requested.is_suspended and gate not in (Reason.PAUSED, Reason.RETIRED):
            return Wait(now + LENT_LOOK_S, Reason.SHARED)
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
            return Wait(self.not_before, self.wait_reason())
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
            return Wait(self.not_before, self.wait_reason())
        # The response that opened the breaker freed a place, and only probes were granted since:
        # so there is room, unless the operator has lowered the limit meanwhile (`use`).
        if self.in_flight >= self._shared.max_concurrency:
            return Wait(None, Reason.IN_FLIGHT)
        permit = self.grant(now, is_probe=True)
        breaker.lease(permit, now, self._shared.settings)
        return Grant(permit)

    def _is_probe(self, permit: Permit) -> bool:
        return self.health is not None and self.health.breaker.probe is permit
