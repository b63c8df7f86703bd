"""Snapshots of the core's state, as frozen values: for people, metrics and tests."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from .breaker import BreakerState

if TYPE_CHECKING:
    from .host import HostState
    from .model import Instant, Reason


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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Totals over all hosts, and the busiest hosts in detail (`top`)."""

    hosts: int
    in_flight: int
    requests: int
    throttled: int
    waits: int
    denied: int
    retries: int
    cancelled: int
    open: int
    half_open: int
    top: tuple[HostSnapshot, ...]


def describe(host: HostState, *, waiters: int) -> HostSnapshot:
    """Return a snapshot of one host."""
    host.learn_deferred()
    stats, strategy, health = host.stats, host.strategy, host.health
    failures, answers = stats.error_counts() if stats else (0, 0)
    lesson = strategy.lesson() if strategy else None
    delay_s = host.delay_s
    return HostSnapshot(
        host=host.key,
        rate=1.0 / delay_s if delay_s else float("inf"),
        delay_s=delay_s,
        crawl_delay_s=host.requested.crawl_delay_s,
        not_before=host.not_before,
        in_flight=host.in_flight,
        concurrency=host.limit,
        waiters=waiters,
        requests=host.requests,
        throttles=health.throttles if health else 0,
        failures=health.failures if health else 0,
        error_streak=health.throttle_streak if health else 0,
        latency_s=stats.ewma_s if stats else 0.0,
        p95_latency_s=stats.p95_s() if stats else 0.0,
        error_rate=failures / answers if answers else 0.0,
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
    )
