"""A circuit breaker for one host: stop sending requests while the server fails.

    state      event            next       when
    CLOSED     TRIPPED          OPEN       too many failures: half of ≥ 10 in 30 s, 5 in a row, or
                                           2 in a row where a third would come later than 5 s
    OPEN       OPEN_TIME_OVER   HALF_OPEN  the open time is over and a caller asks for a slot
    HALF_OPEN  PROBE_FAILED     OPEN       a probe failed or its lease expired
    HALF_OPEN  PROBES_PASSED    CLOSED     three probes in a row succeeded

Only server faults count: 5xx without Retry-After, timeouts, connection errors. Throttles lower the
request rate and never reach the breaker, or one overload would have two consequences. In HALF_OPEN
at most one request, the probe, is in flight. Its lease expires, so a caller that never reports
cannot keep the breaker half-open forever. Every change increments `generation`; permits carry it,
and a response to a permit of an older generation does not count.

The open time is min(300, 5·2ⁿ)·U(0.8, 1.2) s, where n counts consecutive openings.
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
    """The state of a breaker: only CLOSED lets ordinary requests through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerEvent(Enum):
    """An event that changes the state of a breaker."""

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

LEASE_MARGIN_S = 5.0  # beyond the request timeout
LEAST_CONSECUTIVE = 2  # a single failure never opens the breaker, however rare requests are
_MOST_DOUBLINGS = 60  # of the open time: more would not fit into a float


class Breaker:
    """The breaker of one host, created at its first failure; most hosts never have one."""

    __slots__ = (
        "consecutive",
        "failing_since",
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
        self.consecutive = 0  # consecutive failures while closed
        self.failing_since: Instant = NEVER  # when the first of these was reported
        self.opens = 0  # consecutive openings
        self.reopen_at: Instant = NEVER
        self.passed = 0  # consecutive successful probes
        self.probe: Permit | None = None
        self.lease_until: Instant = NEVER

    def move(self, event: BreakerEvent) -> None:
        """Change the state by the table above; ValueError if the event is not possible in it."""
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            raise ValueError(f"event {event.value!r} is not possible while {self.state.value}")
        self.state = following
        self.generation += 1
        self.probe = None
        self.passed = 0
        self.consecutive = 0

    def failed(self, now: Instant) -> None:
        """Count a failure while closed."""
        if self.consecutive == 0 or self.failing_since == NEVER:
            self.failing_since = now
        self.consecutive += 1

    def is_late(self, now: Instant, gap_s: float, settings: Settings) -> bool:
        """Return whether the breaker would open too late if it waited for one more failure."""
        overdue = now + gap_s - self.failing_since > settings.breaker_within_s
        return overdue and self.consecutive >= LEAST_CONSECUTIVE

    def should_trip(self, failures: int, answers: int, settings: Settings) -> bool:
        """Return whether these failures open a closed breaker."""
        if self.consecutive >= settings.breaker_consecutive:
            return True
        enough = answers >= settings.breaker_min_samples
        return enough and failures >= settings.breaker_error_rate * answers

    def open(
        self, event: BreakerEvent, now: Instant, settings: Settings, rng: random.Random
    ) -> None:
        """Open, for a time that doubles with every consecutive opening."""
        self.move(event)
        doubled = 2.0 ** min(self.opens, _MOST_DOUBLINGS)
        rest_s = min(settings.breaker_open_max_s, settings.breaker_open_s * doubled)
        self.reopen_at = now + rest_s * rng.uniform(0.8, 1.2)
        self.opens += 1

    def restore(self, failures: int, opens: int, reopen_at: Instant | None) -> None:
        """Go on where an earlier run ended; `reopen_at` is None if the breaker was closed.

        A breaker that is not closed any more stays as it is, but for a later `reopen_at`.
        """
        if reopen_at is not None:
            if self.state is BreakerState.CLOSED:
                self.move(BreakerEvent.TRIPPED)
            self.reopen_at = max(self.reopen_at, reopen_at)
        self.consecutive = failures
        self.opens = opens

    def lease(self, probe: Permit, now: Instant, settings: Settings) -> None:
        """Make this permit the only probe, until the request timeout plus a margin."""
        self.probe = probe
        self.lease_until = now + settings.request_timeout_s + LEASE_MARGIN_S

    @property
    def next_probe_at(self) -> Instant:
        """The instant from which a breaker that is not closed lets a probe through."""
        if self.state is BreakerState.OPEN:
            return self.reopen_at
        return NEVER if self.probe is None else self.lease_until

    def close(self) -> None:
        """Close after enough successful probes, and reset the count of openings."""
        self.move(BreakerEvent.PROBES_PASSED)
        self.opens = 0
