"""The health record of a host: failure counters, circuit breaker and retry budget.

Most hosts never need one, so `HostState` creates it at the first response that is not a success.
This module decides whether the breaker opens or closes; the host sets its gate and emits events.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING

from .breaker import Breaker, BreakerEvent, BreakerState
from .model import NEUTRAL, NEVER, OK, OVERLOAD, THROTTLE
from .retry import RetryBudget

if TYPE_CHECKING:
    import random

    from .doubts import Doubts
    from .model import Instant, Outcome, Permit, Response
    from .retry import RetryPolicy
    from .settings import Settings
    from .stats import HostStats


_TOO_MANY, _SERVER_ERROR = 429, 500  # HTTP statuses


class BadKind(Enum):
    """The kind of an answer that was no success."""

    SERVER = "a status of 500 or more"
    REFUSAL = "status 429"
    NETWORK = "no status at all"
    OTHER = "any other status"


def bad_kind(response: Response) -> BadKind:
    """Return the kind of an answer that was no success."""
    if response.status is None:
        return BadKind.NETWORK
    if response.status == _TOO_MANY:
        return BadKind.REFUSAL
    return BadKind.SERVER if response.status >= _SERVER_ERROR else BadKind.OTHER


class BreakerChange(Enum):
    """The change that a response caused in the breaker."""

    OPENED = "opened"
    CLOSED = "closed"


class HostHealth:
    """The record of a host's throttles and failures."""

    __slots__ = (
        "bad_in_a_row",
        "bad_since",
        "breaker",
        "doubts",
        "failures",
        "is_stalled",
        "latest",
        "network_errors",
        "refusals",
        "retry_after_s",
        "retry_budget",
        "server_errors",
        "success_streak",
        "throttle_streak",
        "throttles",
    )

    def __init__(self, policy: RetryPolicy, successes: int = 0) -> None:
        self.breaker = Breaker()
        self.retry_budget = RetryBudget(policy)
        self.throttles = 0
        self.throttle_streak = 0
        self.failures = 0
        self.server_errors = self.refusals = self.network_errors = 0  # of both: 5xx, 429, neither
        self.success_streak = successes
        self.doubts: Doubts | None = None  # created for the first doubtful answer
        self.bad_since: Instant = inf  # when the current run without a success began
        self.bad_in_a_row = 0  # refusals and failures of that run
        self.is_stalled = False  # reported once per run without a success
        self.latest = ""  # the latest refusal or failure, in a word or two
        self.retry_after_s: float | None = None  # what the latest one asked for

    def on_answer(
        self,
        permit: Permit,
        outcome: Outcome,
        stats: HostStats,
        now: Instant,
        settings: Settings,
        rng: random.Random,
        gap_s: float,
    ) -> BreakerChange | None:
        """Count a response, and update the breaker unless the permit is older than its last change.

        Returns the change of the breaker, if there was one.
        """
        self._count(outcome)
        breaker = self.breaker
        if permit.generation != breaker.generation:
            return None
        if breaker.state is BreakerState.HALF_OPEN:
            return self._on_probe_answer(outcome, now, settings, rng)
        if outcome is OVERLOAD:
            breaker.failed(now)
            if breaker.should_trip(*stats.errors(now), settings) or breaker.is_late(
                now, gap_s, settings
            ):
                breaker.open(BreakerEvent.TRIPPED, now, settings, rng)
                return BreakerChange.OPENED
        elif outcome is THROTTLE:
            breaker.failing_since = NEVER  # a pause between two failures is no time of failing
        else:
            breaker.consecutive = 0
        return None

    def _on_probe_answer(
        self, outcome: Outcome, now: Instant, settings: Settings, rng: random.Random
    ) -> BreakerChange | None:
        breaker = self.breaker
        breaker.probe = None
        if outcome is OVERLOAD:
            breaker.open(BreakerEvent.PROBE_FAILED, now, settings, rng)
            return BreakerChange.OPENED
        if outcome is THROTTLE:
            return None  # the server answers, but that does not prove that it is healthy
        # A 404 proves it as well as a page does (docs/adr/0006).
        breaker.passed += 1
        if breaker.passed < settings.breaker_probes:
            return None
        breaker.close()
        return BreakerChange.CLOSED

    def _count(self, outcome: Outcome) -> None:
        if outcome is OK:
            self.throttle_streak = 0
            self.success_streak += 1
        elif outcome is THROTTLE:
            self.throttles += 1
            self.throttle_streak += 1
            self.success_streak = 0
        elif outcome is OVERLOAD:
            self.failures += 1
            self.success_streak = 0
        if outcome is OK or outcome is NEUTRAL:  # a 404 settles a URL as well as a page does
            self.bad_since = inf
            self.is_stalled = False

    @property
    def has_failures(self) -> bool:
        """Return whether anything is counted that a success will end."""
        return self.bad_since < inf or self.breaker.consecutive > 0

    @property
    def is_holding(self) -> bool:
        """Return whether doubtful answers allow only single trials."""
        return self.doubts is not None and self.doubts.is_holding

    def note_bad(self, response: Response, retry_after_s: float | None, now: Instant) -> None:
        """Note a throttle or a failure: the first one begins a run without a success."""
        self.bad_in_a_row = self.bad_in_a_row + 1 if self.bad_since < inf else 1
        self.bad_since = min(self.bad_since, now)
        self.latest = str(response.error) if response.status is None else f"{response.status}"
        self.retry_after_s = retry_after_s
        match bad_kind(response):
            case BadKind.SERVER:
                self.server_errors += 1
            case BadKind.REFUSAL:
                self.refusals += 1
            case BadKind.NETWORK:
                self.network_errors += 1

    def is_newly_stalled(self, gap_s: float, now: Instant, settings: Settings) -> bool:
        """Return True once per run without a success, when the host makes no progress any more.

        Call it after each throttle or failure.
        """
        has_no_success = (
            self.throttle_streak >= settings.stall_throttles
            and gap_s >= 0.999 * settings.max_delay_s
        )
        is_silent = now - self.bad_since > settings.stall_after_s
        if self.is_stalled or not (has_no_success or is_silent):
            return False
        self.is_stalled = True
        return True

    def forgive(self) -> None:
        """Begin anew: no failures, and a closed breaker that ignores responses to older permits."""
        self.bad_since = inf
        self.is_stalled = False
        generation = self.breaker.generation
        self.breaker = Breaker()
        self.breaker.generation = generation + 1
