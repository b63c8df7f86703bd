"""The gate of one host: the reason to refuse its requests instead of delaying them.

    BREAKER_OPEN, HALF_OPEN    it fails: only probes go, one at a time
    PARKED                     its Retry-After is longer than `max_retry_after_s`
    PAUSED, RETIRED            set by the operator, or the host was given up; `revive` ends them

The gate of a healthy host is None. The breaker decides in `health` whether it opens or closes; this
module turns that into the gate, and says when a host is given up.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from . import events
from .bounds import LONGEST_WAIT_S
from .breaker import BreakerState
from .health import BreakerChange, HostHealth
from .model import Reason
from .schedule import HostSchedule

if TYPE_CHECKING:
    from .breaker import Breaker
    from .model import Instant, Outcome, Permit
    from .retry import RetryBudget

# Only `revive` ends these; the breaker cannot.
_SET_BY_OPERATOR = frozenset({Reason.PAUSED, Reason.RETIRED})
_GATES = {
    BreakerState.CLOSED: None,
    BreakerState.OPEN: Reason.BREAKER_OPEN,
    BreakerState.HALF_OPEN: Reason.HALF_OPEN,
}


class HostGate(HostSchedule):
    """The schedule of one host with its gate."""

    __slots__ = ()

    @property
    def gate(self) -> Reason | None:
        """The reason why requests are refused at present; None: they are not."""
        return self._gate

    def free_at(self, now: Instant) -> Instant:
        """Return the earliest instant for a start, ignoring requests in flight."""
        if self._gate in _SET_BY_OPERATOR:
            return inf
        earliest = max(now, self.allowed_at)
        health = self.health
        if health is None or health.breaker.state is BreakerState.CLOSED:
            return earliest
        return max(earliest, health.breaker.next_probe_at)

    def is_idle(self, now: Instant) -> bool:
        """Return whether dropping the state could not let a request start too early."""
        return (
            self.in_flight == 0
            and self.not_before <= now
            and self.requested.blocked_until <= now
            and self._gate not in _SET_BY_OPERATOR
            and (self.health is None or self.health.breaker.reopen_at <= now)
        )

    # ------------------------------------------------------------------ limits set by the server

    def set_crawl_delay(self, delay_s: float, now: Instant) -> None:
        """Set the Crawl-delay of robots.txt; in a group of hosts the longest one holds."""
        settings = self._shared.settings
        asked_s = delay_s = min(delay_s, LONGEST_WAIT_S)
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

    @property
    def allowed_at(self) -> Instant:
        """The earliest instant for a start, also while the host is suspended."""
        return self.next_start() if self.requested.is_suspended else self.not_before

    def block_until(self, until: Instant, now: Instant, why: Reason = Reason.RETRY_AFTER) -> None:
        """Restore a Retry-After or another wait that an earlier run or another crawl has noted."""
        self.own_requested().block(min(until, now + LONGEST_WAIT_S), why)
        self._park_if_long(now)
        self._reschedule()

    def suspend(self) -> None:
        """Start no request until `resume`: another crawl may be sending to the host."""
        self.own_requested().is_suspended = True
        self.not_before = inf

    def resume(self) -> None:
        """Let requests start again after `suspend`, when all other limits allow it."""
        if self.requested.is_suspended:
            self.requested.is_suspended = False
            self._reschedule()

    def _park_if_long(self, now: Instant) -> None:
        """Refuse requests, instead of delaying them, if the pause is beyond `max_retry_after_s`."""
        until = self.requested.blocked_until
        if self._gate is None and until - now > self._shared.settings.max_retry_after_s:
            self._gate = Reason.PARKED
            self._shared.emit(events.Parked(self.key, now, until))

    # ------------------------------------------------------------------ the breaker

    def _ensure_health(self) -> HostHealth:
        if self.health is None:
            # All answers before the first that is no success were successes.
            successes = max(0, self.requests - self.in_flight - 1)
            self.health = HostHealth(self._shared.retry_policy, successes)
        return self.health

    def retry_budget(self) -> RetryBudget:
        """Return the retry budget of this host."""
        return self._ensure_health().retry_budget

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
            self._gate = _GATES[health.breaker.state]

    def _update_breaker(
        self, health: HostHealth, permit: Permit, outcome: Outcome, now: Instant
    ) -> None:
        shared, stats, strategy = self._shared, self.stats, self.strategy
        assert stats is not None
        assert strategy is not None
        change = health.on_answer(
            permit, outcome, stats, now, shared.settings, shared.rng, self._gap_s
        )
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
        if self.in_flight or self._gate in _SET_BY_OPERATOR or self.requested.is_suspended:
            return False
        since = now if self.health is None else min(now, self.health.bad_since)
        return self.free_at(now) > since + self._shared.settings.give_up_after_s

    def give_up_waiting(self, now: Instant) -> None:
        """Give the host up now, because its next start is too far away."""
        problem = "" if self.health is None else self.health.latest  # "": in an earlier run
        latest = f" (latest: {problem})" if problem else ""
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
