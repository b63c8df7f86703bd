"""Find out what a host of a shard does or waits for, and until when. No other place does that.

In this order, because the first is the one that has to end before the host goes on:

    another crawl is sending to it          until that one hands it over
    its breaker is open, or it is parked    until the next probe, or the end of a long Retry-After
    its robots.txt is unreachable           until it is asked for again
    a Retry-After, a pause of the pace      until they end
    a name of its address had its turn      until the address is free
    only failed URLs are left               until the first of them is tried again
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.host_view import NO_ROBOTS, NOTHING_SEEN, Doing, LimitedBy
from mannerly.politeness.model import NEVER, Reason
from mannerly.politeness.snapshot import figures

if TYPE_CHECKING:
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.model import Now
    from mannerly.crawler.robots.gate import RobotsGate
    from mannerly.politeness.host import HostState
    from mannerly.politeness.model import Instant

    from .contacts import Contacts

_REFUSING = (Reason.BREAKER_OPEN, Reason.HALF_OPEN, Reason.PARKED)
_LIMITS = {
    Reason.CRAWL_DELAY: LimitedBy.ROBOTS,
    Reason.RATE_LIMIT_HEADER: LimitedBy.ANNOUNCED,
}


def doing_of(host: Host, contacts: Contacts, gate: RobotsGate, now: Now) -> Doing:
    """Return what a known host does."""
    state, shared = contacts.politeness.state(host.name), contacts.shared
    reason, until = _waits(host, state, gate, now.mono)
    wait_s = None if until == inf else max(0.0, until - now.mono)
    if reason is Reason.ROBOTS:
        return Doing(waits_for=reason, wait_s=wait_s, problem=NO_ROBOTS)
    if state is None:
        return NOTHING_SEEN
    seen, health = figures(state, now.mono), state.health
    is_bad = health is not None and health.bad_since < inf
    return Doing(
        waits_for="" if reason is None else reason,
        wait_s=wait_s,
        delay_s=state.delay_s if state.requests else 0.0,
        limited_by=_limited_by(state),
        problem=health.latest if health is not None and is_bad else "",
        times=health.bad_in_a_row if health is not None and is_bad else 0,
        retry_after_s=health.retry_after_s if health is not None and is_bad else None,
        failing_s=now.mono - health.bad_since if health is not None and is_bad else 0.0,
        held_by="" if shared is None else shared.holder_of(host),
        p95_latency_s=seen.p95_latency_s,
        error_rate=seen.error_rate,
        tokens=seen.tokens,
        success_streak=seen.success_streak,
        error_streak=seen.error_streak,
        known_limits=tuple(known.counted_from(now.mono) for known in seen.known_limits),
    )


def _waits(
    host: Host, state: HostState | None, gate: RobotsGate, now: Instant
) -> tuple[Reason | None, Instant]:
    """Return what the next request waits for and until when; None: for nothing."""
    if state is not None and state.requested.is_suspended:
        return Reason.SHARED, inf
    if state is not None and state.gate in _REFUSING:
        return state.gate, state.free_at(now)
    robots_at = gate.unreachable_until(host.name)
    if robots_at is not None and robots_at > now:
        return Reason.ROBOTS, robots_at
    if state is not None and state.not_before > now:
        return state.wait_reason(), state.not_before
    if host.reason is not None and host.due is not None and host.due > now:
        return host.reason, host.due
    retry_at = NEVER if host.counts is None else host.counts.retry_at
    if host.is_spent and retry_at > now and state is not None and state.in_flight == 0:
        return cause_of_retry(state), retry_at
    return None, now


def cause_of_retry(state: HostState | None) -> Reason:
    """Return what a host waits for of which only failed URLs are left."""
    health = None if state is None else state.health
    if health is None or health.bad_since == inf:
        return Reason.PACE
    return Reason.BACKOFF if health.retry_after_s is None else Reason.RETRY_AFTER


def _limited_by(state: HostState) -> LimitedBy:
    reason = state.gap_reason
    if state.is_at_ceiling and reason is not Reason.CRAWL_DELAY:
        return LimitedBy.MAX_RATE
    if reason is Reason.PACE:
        is_refused = state.strategy is not None and state.strategy.lesson().floor_s > 0.0
        return LimitedBy.LEARNED if is_refused else LimitedBy.UNKNOWN
    return _LIMITS[reason]
