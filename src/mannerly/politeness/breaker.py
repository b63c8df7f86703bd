"""A circuit breaker for one host: it keeps us from leaning on a door that is falling.

    state      event            next       what it means
    CLOSED     TRIPPED          OPEN       too many failures: half of ≥ 10 in 30 s, or 5 in a row
    OPEN       OPEN_TIME_OVER        HALF_OPEN  the open time is over and a caller claimed the probe
    HALF_OPEN  PROBE_FAILED     OPEN       the first failure, or a lease that ran out
    HALF_OPEN  PROBES_PASSED    CLOSED     three successes, one after another

Only server faults count (5xx without Retry-After, timeouts, connection errors): a throttle
steers the pace and never comes here, or one overload would be punished twice. In HALF_OPEN one
probe is under way at most; it holds a lease, so that a caller who vanished cannot keep the
breaker half-open for ever. Every change raises `generation`; permits carry it, and an answer
from an older generation says nothing about this one.

The open time is min(300, 5·2ⁿ)·U(0.8, 1.2) s, n counting openings in a row.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from .model import NEVER

if TYPE_CHECKING:
    import random

    from .model import Instant, Permit
    from .settings import Settings


class BreakerState(Enum):
    """Whether requests flow."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerEvent(Enum):
    """What moves the breaker."""

    TRIPPED = "tripped"
    OPEN_TIME_OVER = "open_time_over"
    PROBE_FAILED = "probe_failed"
    PROBES_PASSED = "probes_passed"


TRANSITIONS: dict[tuple[BreakerState, BreakerEvent], BreakerState] = {
    (BreakerState.CLOSED, BreakerEvent.TRIPPED): BreakerState.OPEN,
    (BreakerState.OPEN, BreakerEvent.OPEN_TIME_OVER): BreakerState.HALF_OPEN,
    (BreakerState.HALF_OPEN, BreakerEvent.PROBE_FAILED): BreakerState.OPEN,
    (BreakerState.HALF_OPEN, BreakerEvent.PROBES_PASSED): BreakerState.CLOSED,
}

LEASE_MARGIN_S = 5.0  # beyond the request timeout; pace §1.6


class Breaker:
    """One host's breaker. The host makes it at the first failure; most hosts never have one."""

    __slots__ = (
        "consecutive",
        "generation",
        "lease_until",
        "opens",
        "passed",
        "probe",
        "reopen_at",
        "state",
    )

    def __init__(self) -> None:
        self.state = BreakerState.CLOSED
        self.generation = 0
        self.consecutive = 0  # failures in a row while closed
        self.opens = 0  # openings in a row
        self.reopen_at: Instant = NEVER
        self.passed = 0  # successful probes in a row
        self.probe: Permit | None = None
        self.lease_until: Instant = NEVER

    def move(self, event: BreakerEvent) -> None:
        """Follow the table; an event that the state does not know changes nothing and raises."""
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            raise ValueError(f"a breaker that is {self.state.value} cannot be {event.value}")
        self.state = following
        self.generation += 1
        self.probe = None
        self.passed = 0
        self.consecutive = 0

    def should_trip(self, failures: int, answers: int, settings: Settings) -> bool:
        """Whether the failures seen so far open a closed breaker."""
        if self.consecutive >= settings.breaker_consecutive:
            return True
        enough = answers >= settings.breaker_min_samples
        return enough and failures >= settings.breaker_error_rate * answers

    def open(
        self, event: BreakerEvent, now: Instant, settings: Settings, rng: random.Random
    ) -> None:
        """Open, for a time that doubles with every opening in a row."""
        self.move(event)
        rest_s = min(settings.breaker_open_max_s, settings.breaker_open_s * 2.0**self.opens)
        self.reopen_at = now + rest_s * rng.uniform(0.8, 1.2)
        self.opens += 1

    def lease(self, probe: Permit, now: Instant, settings: Settings) -> None:
        """Give the only probe to this permit, for as long as a request may take."""
        self.probe = probe
        self.lease_until = now + settings.request_timeout_s + LEASE_MARGIN_S

    @property
    def next_probe_at(self) -> Instant:
        """While it is not closed: the instant from which it lets a probe through."""
        if self.state is BreakerState.OPEN:
            return self.reopen_at
        return NEVER if self.probe is None else self.lease_until

    def close(self) -> None:
        """Close after enough successful probes; the count of openings starts anew."""
        self.move(BreakerEvent.PROBES_PASSED)
        self.opens = 0
