"""Snapshots of the core's state, as frozen values: for people, metrics and tests."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from .breaker import BreakerState

if TYPE_CHECKING:
    from .host import HostState
    from .model import Instant, Reason
    from .pace.kinds import KnownLimit


THROTTLED_WAIT_S = 0.1  # a caller that waited longer than this counts as throttled


@dataclass(frozen=True, slots=True)
class HostSnapshot:
    """The state of one host. Delays and latencies are in seconds, `rate` in requests per second."""

    host: str
    rate: float
    delay_s: float
    crawl_delay_s: float
    not_before: Instant
    in_flight: int
    concurrency: int
    waiters: int
    requests: int
    throttles: int
    failures: int
    error_streak: int
    latency_s: float
    p95_latency_s: float
    error_rate: float
    breaker: BreakerState
    gate: Reason | None
    last_success: Instant
    phase: str
    adaptive_delay_s: float
    delay_floor_s: float
    bad_since: Instant  # infinite: the latest answer was no refusal and no failure
    bad_in_a_row: int  # refusals and failures since then
    latest_problem: str  # the latest refusal or failure: a status or an error kind
    retry_after_s: float | None  # what that one asked for
    success_streak: int  # successes since the latest refusal or failure
    consecutive_failures: int  # towards the breaker: see `breaker_consecutive`
    server_errors: int  # refusals and failures with a status of 500 or more
    refusals: int  # with status 429
    network_errors: int  # without a status
    tokens: float | None  # requests that could start at once; None: the time was not given
    known_limits: tuple[KnownLimit, ...]  # those of which the kind was recognised


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Totals over all hosts, and the busiest hosts in detail (`top`).

    Waits are counted by the drivers, or with `Politeness.waited`.
    """

    hosts: int
    in_flight: int
    requests: int
    throttled: int  # answers that asked for fewer requests
    waits: int  # times that a request had to wait
    denied: int  # times that a request was refused: breaker open, host paused or retired
    retries: int
    cancelled: int
    open: int
    half_open: int
    server_errors: int  # refusals and failures with a status of 500 or more
    refusals: int  # with status 429
    network_errors: int  # without a status
    throttled_waits: int  # callers that waited more than 0.1 s for their slot
    blocked_s: float  # the time that all callers have waited for theirs
    top: tuple[HostSnapshot, ...]


class HostFigures(NamedTuple):
    """The figures of one host that change with every answer, cheap enough for every commit."""

    p95_latency_s: float
    error_rate: float  # share of failures among the latest answers
    tokens: float  # requests that could start at once
    success_streak: int  # successes since the latest refusal or failure
    error_streak: int  # refusals since the latest success
    known_limits: tuple[KnownLimit, ...]  # those of which the kind was recognised


def figures(host: HostState, now: Instant) -> HostFigures:
    """Return the figures of one host; a first answer that was not learned yet counts for none."""
    stats, health = host.stats, host.health
    failures, answers = stats.error_counts() if stats else (0, 0)
    return HostFigures(
        stats.p95_s() if stats else 0.0,
        failures / answers if failures else 0.0,
        host.tokens(now),
        host.success_streak,
        health.throttle_streak if health else 0,
        host.strategy.known_limits if host.strategy else (),
    )


def describe(host: HostState, *, waiters: int, now: Instant | None) -> HostSnapshot:
    """Return a snapshot of one host, its tokens at `now`."""
    host.learn_deferred()
    stats, strategy, health = host.stats, host.strategy, host.health
    latest = figures(host, host.not_before if now is None else now)
    lesson = strategy.lesson() if strategy else None
    delay_s = host.delay_s
    return HostSnapshot(
        host=host.key,
        rate=1.0 / delay_s if delay_s else float("inf"),
        delay_s=delay_s,
        crawl_delay_s=host.requested.crawl_delay_s,
        not_before=host.allowed_at,
        in_flight=host.in_flight,
        concurrency=host.limit,
        waiters=waiters,
        requests=host.requests,
        throttles=health.throttles if health else 0,
        failures=health.failures if health else 0,
        error_streak=latest.error_streak,
        latency_s=stats.ewma_s if stats else 0.0,
        p95_latency_s=latest.p95_latency_s,
        error_rate=latest.error_rate,
        breaker=health.breaker.state if health else BreakerState.CLOSED,
        gate=host.gate,
        last_success=host.last_ok_at,
        phase=strategy.phase if strategy else "new",
        adaptive_delay_s=lesson.delay_s if lesson else 0.0,
        delay_floor_s=lesson.floor_s if lesson else 0.0,
        bad_in_a_row=health.bad_in_a_row if health and health.bad_since < inf else 0,
        bad_since=health.bad_since if health else inf,
        latest_problem=health.latest if health else "",
        retry_after_s=health.retry_after_s if health else None,
        success_streak=latest.success_streak,
        consecutive_failures=health.breaker.consecutive if health else 0,
        server_errors=health.server_errors if health else 0,
        refusals=health.refusals if health else 0,
        network_errors=health.network_errors if health else 0,
        tokens=None if now is None else latest.tokens,
        known_limits=latest.known_limits,
    )
