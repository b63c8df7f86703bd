"""What went wrong with a host, and what that makes of it: counters, a breaker, a retry budget.

Most hosts never have any, so `Host` makes one at the first answer that is not a success. The
breaker is judged here; the host does what follows (its gate, its events): decide, then do.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING

from .breaker import Breaker, BreakerEvent, BreakerState
from .model import OK, OVERLOAD, THROTTLE
from .retry import RetryBudget

if TYPE_CHECKING:
    import random

    from .model import Instant, Outcome, Permit
    from .retry import RetryPolicy
    from .settings import Settings
    from .stats import HostStats


# Slowing down has not helped this often: then the site simply has forbidden pages (decision 2).
FORBIDDEN_PAGES_AFTER = 3


class BreakerChange(Enum):
    """What an answer did to the breaker."""

    OPENED = "opened"
    CLOSED = "closed"


class HostHealth:
    """The record of a host's bad answers."""

    __slots__ = (
        "bad_since",
        "breaker",
        "failures",
        "forbidden",
        "is_stalled",
        "retry_budget",
        "throttle_streak",
        "throttles",
    )

    def __init__(self, policy: RetryPolicy) -> None:
        self.breaker = Breaker()
        self.retry_budget = RetryBudget(policy)
        self.throttles = 0
        self.throttle_streak = 0
        self.failures = 0
        self.forbidden = 0  # 403s that were taken for throttles
        self.bad_since: Instant = inf  # when the current run of bad answers began
        self.is_stalled = False  # told once per run of bad answers

    def on_answer(
        self,
        permit: Permit,
        outcome: Outcome,
        stats: HostStats,
        now: Instant,
        settings: Settings,
        rng: random.Random,
    ) -> BreakerChange | None:
        """Note an answer, and let the breaker see it, unless it is of an older generation."""
        self._count(outcome)
        breaker = self.breaker
        if permit.generation != breaker.generation:
            return None
        if breaker.state is BreakerState.HALF_OPEN:
            return self._on_probe_answer(outcome, now, settings, rng)
        if outcome is OVERLOAD:
            breaker.consecutive += 1
            if breaker.should_trip(*stats.errors(now), settings):
                breaker.open(BreakerEvent.TRIPPED, now, settings, rng)
                return BreakerChange.OPENED
        elif outcome is not THROTTLE:
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
            return None  # alive, but it proves nothing
        # A 404 proves health as well as a page does.
        breaker.passed += 1
        if breaker.passed < settings.breaker_probes:
            return None
        breaker.close()
        return BreakerChange.CLOSED

    def _count(self, outcome: Outcome) -> None:
        if outcome is OK:
            self.throttle_streak = 0
            self.bad_since = inf
            self.is_stalled = False
        elif outcome is THROTTLE:
            self.throttles += 1
            self.throttle_streak += 1
        elif outcome is OVERLOAD:
            self.failures += 1

    def suspects_block(self) -> bool:
        """Whether a 403 soon after a success is taken for a throttle, once more."""
        if self.forbidden >= FORBIDDEN_PAGES_AFTER:
            return False
        self.forbidden += 1
        return True

    def is_newly_stalled(self, gap_s: float, now: Instant, settings: Settings) -> bool:
        """After a bad answer: whether the host goes nowhere. Told once per run of bad answers."""
        self.bad_since = min(self.bad_since, now)
        is_hopeless = (
            self.throttle_streak >= settings.stall_throttles
            and gap_s >= 0.999 * settings.max_delay_s
        )
        is_silent = now - self.bad_since > settings.stall_after_s
        if self.is_stalled or not (is_hopeless or is_silent):
            return False
        self.is_stalled = True
        return True

    def reset_breaker(self) -> None:
        """Start with a new breaker; what is still under way belongs to the old one."""
        generation = self.breaker.generation
        self.breaker = Breaker()
        self.breaker.generation = generation + 1
