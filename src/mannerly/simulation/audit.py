"""Counts broken promises from the outside: what was sent when, what came back, what was said.

The witness shares no code with the core, not even the Retry-After parser: an error there would
otherwise excuse itself. It knows the operator's settings and what crosses the core's border.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.politeness import Permit, Settings

TOLERANCE_S = 1e-9  # float rounding, nothing more
REFUSALS = frozenset((403, 429, 503))


class PromiseAudit:
    """Four counters, all of which stay at zero when the core keeps its promises."""

    def __init__(self, settings: Settings) -> None:
        self.gap_violations = 0
        self.retry_after_violations = 0
        self.in_flight_violations = 0
        self.half_open_violations = 0
        self._gap_s = _gap_s(settings) - TOLERANCE_S
        self._max_concurrency = settings.max_concurrency
        self._last_start = -inf
        self._silent_until = -inf  # what the server asked for
        self._open_until = -inf  # what the core itself said of its breaker
        self._probes = 0

    def started(self, now: float, permit: Permit, in_flight: int) -> None:
        """Judge one start against everything that was known at that instant."""
        if now - self._last_start < self._gap_s:
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
        """The core said that its breaker is open: until then nothing may start."""
        self._open_until = inf if until is None else until

    def answered(self, now: float, permit: Permit, status: int, headers: Mapping[str, str]) -> None:
        """A probe ends; a refusal that names a wait starts a window of silence."""
        if permit.is_probe:
            self._probes -= 1
            self._open_until = -inf  # whatever the probe found, the core will say anew
        if status in REFUSALS and headers:
            self._silent_until = max(self._silent_until, now + announced_wait_s(headers))


def _gap_s(settings: Settings) -> float:
    """The smallest gap that the operator allows: the floor, and the ceiling of the rate."""
    if settings.aimd_burst > 1:
        return settings.floor_s
    return max(settings.floor_s, 1.0 / settings.rate_ceiling)


def announced_wait_s(headers: Mapping[str, str]) -> float:
    """The seconds that a Retry-After asks for; 0 when there is none, or none that can be read."""
    named = {name.lower(): value for name, value in headers.items()}
    text = named.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
        answered = parsedate_to_datetime(named["date"])
    except (KeyError, ValueError, TypeError):
        return 0.0
    return max(0.0, (until - answered).total_seconds())
