"""Count broken promises of the politeness core during a simulated run.

The audit knows the settings, the requests and answers with their instants, the pace that the
strategy published, and what the core says of its breaker. It does not use the core's schedule, nor
its Retry-After parser, so an error of the core cannot hide itself.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.host.audit import announced_wait_s, published_gap_s
from mannerly.politeness.host import HostState
from mannerly.politeness.pace import STRATEGY_CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.politeness import Permit, Settings

TOLERANCE_S = 1e-9  # for float rounding only
REFUSALS = frozenset((403, 429, 503))


class PromiseAudit:
    """Four counters of broken promises; all stay 0 if the core keeps its promises."""

    def __init__(self, settings: Settings) -> None:
        self.gap_violations = 0
        self.retry_after_violations = 0
        self.in_flight_violations = 0
        self.half_open_violations = 0
        self._gap_s = _gap_s(settings)
        start = STRATEGY_CLASSES[settings.strategy](settings)
        self._start_gap_s = 1.0 / start.rate
        self._bursts = start.burst > 1 and settings.floor_s == 0.0
        self._max_concurrency = settings.max_concurrency
        self._last_start = -inf
        self._silent_until = -inf  # the end of the server's last Retry-After
        self._open_until = -inf  # until when the core's breaker is open, by its own word
        self._probes = 0

    def started(self, now: float, permit: Permit, in_flight: int) -> None:
        """Judge a request that is sent now."""
        # A controller that is compared with ours has no strategy to publish a pace.
        host: object = permit.host
        is_paced = not self._bursts and isinstance(host, HostState)
        pace_s = published_gap_s(permit, self._start_gap_s) if is_paced else 0.0
        if now - self._last_start < max(self._gap_s, pace_s) - TOLERANCE_S:
            self.gap_violations += 1
        self._last_start = now
        if now < self._silent_until - TOLERANCE_S:
            self.retry_after_violations += 1
        if in_flight > self._max_concurrency:
            self.in_flight_violations += 1
        if self._probes or now < self._open_until - TOLERANCE_S:
            self.half_open_violations += 1
        if permit.is_probe:
            self._probes += 1

    def breaker_open(self, until: float | None) -> None:
        """Note that the core's breaker is open: no request may be sent until then."""
        self._open_until = inf if until is None else until

    def answered(self, now: float, permit: Permit, status: int, headers: Mapping[str, str]) -> None:
        """Note an answer: it ends a probe, and a refusal with Retry-After forbids requests."""
        if permit.is_probe:
            self._probes -= 1
            self._open_until = -inf  # the core will say again whether its breaker is open
        if status in REFUSALS and headers:
            self._silent_until = max(self._silent_until, now + asked_wait_s(headers))


def _gap_s(settings: Settings) -> float:
    """Return the smallest gap that the settings allow, from minimum delay and maximum rate."""
    if settings.aimd_burst > 1:
        return settings.floor_s
    return max(settings.floor_s, 1.0 / settings.rate_ceiling)


def asked_wait_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that a Retry-After asks for; 0 without a readable one.

    A date counts from the `Date` of the same answer: all modelled servers send one with it.
    """
    named = {name.lower(): value for name, value in headers.items()}
    return announced_wait_s(named, inf)
