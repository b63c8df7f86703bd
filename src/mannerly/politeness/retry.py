"""Whether to ask again, and when: a value for the caller, never a sleep in a worker.

    due = max(ready_at(host), now + U(0, min(max_s, base_s · 2^(n−1))))      n = attempts made

Full jitter alone can return "at once" right after a refusal, so the host's own clock is a floor.
Three brakes keep retries from making an outage worse: attempts per URL, a budget per host (a tenth
of its requests), and statuses that no repetition will change. A throttle ("slower!") is no failure
of the URL: it costs neither an attempt nor budget; the host's pace and its stall limit bound it.

This file knows no host and reads no clock; the dice are handed in. What a response *means* was
decided before (`Outcome`); here it is only read.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from .model import ErrorKind, Outcome

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from .model import Instant, Response

T = TypeVar("T")

# The gateway's troubles pass; a 500 is mostly one page's bug, and asking again hits it again.
TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})

# The same bytes would come again. Every other way to get no status at all may pass.
PERMANENT_ERRORS = frozenset({ErrorKind.PROTOCOL, ErrorKind.TOO_LARGE})

FORBIDDEN = 403

# Ten times 0.1 is a little less than one.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient we are with a URL, and how much repetition a host has to bear."""

    max_attempts: int = 3
    base_s: float = 0.5
    max_s: float = 60.0
    retry_statuses: frozenset[int] = TRANSIENT_STATUSES
    budget_ratio: float = 0.1
    budget_burst: float = 10.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts must be 1 or more, not {self.max_attempts}")
        if not 0 < self.base_s <= self.max_s < math.inf:
            raise ValueError(f"need 0 < base_s ≤ max_s, not {self.base_s} and {self.max_s}")
        if not 0 <= self.budget_ratio <= 1:
            raise ValueError(f"budget_ratio must be 0 to 1, not {self.budget_ratio}")
        if not 0 <= self.budget_burst < math.inf:
            raise ValueError(f"budget_burst must be 0 or more, not {self.budget_burst}")


class GiveUpReason(StrEnum):
    """Why a URL is not asked for again."""

    PERMANENT = "permanent"  # the answer stands
    ATTEMPTS = "attempts"
    BUDGET = "budget"
    HOST = "host"  # it is paused or retired: nothing is asked of it any more


@dataclass(frozen=True, slots=True)
class Retry:
    """Ask again at `due`, as attempt number `attempt` (which has not grown after a throttle)."""

    due: Instant
    attempt: int
    costs_attempt: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Do not ask again."""

    reason: GiveUpReason


RetryDecision: TypeAlias = Retry | GiveUp


class RetryBudget:
    """A host's allowance for retries: each request earns a fraction of one, each retry costs one.

    It starts full, so that a host with five pages may have its retries too. There is one for
    every host: the ratio and the cap stay in the policy, and only the level is kept here.
    """

    __slots__ = ("tokens",)

    def __init__(self, policy: RetryPolicy) -> None:
        self.tokens = policy.budget_burst

    def earn(self, policy: RetryPolicy) -> None:
        """One request was sent."""
        self.tokens = min(policy.budget_burst, self.tokens + policy.budget_ratio)

    def spend(self) -> bool:
        """Take the price of one retry; False, and nothing taken, when it is not there."""
        if self.tokens < 1 - _ROUNDING:
            return False
        self.tokens = max(0.0, self.tokens - 1)
        return True

    def __repr__(self) -> str:
        return f"<RetryBudget {self.tokens:.1f} retries>"


def decide(
    policy: RetryPolicy,
    *,
    outcome: Outcome,
    response: Response,
    attempt: int,
    ready_at: Instant,
    now: Instant,
    budget: RetryBudget,
    rng: random.Random,
) -> RetryDecision:
    """Retry or give up after attempt number `attempt` (the first is 1).

    A `Retry` that costs an attempt has already paid from `budget`. A 403 that was taken for a
    throttle is a guess: it gets one retry, and pays, or a forbidden page on a healthy host would
    be asked for without end. Put 403 in `retry_statuses` to treat it like 429.
    """
    if ready_at == math.inf:
        return GiveUp(GiveUpReason.HOST)
    is_throttle = outcome is Outcome.THROTTLE
    is_guess = is_throttle and response.status == FORBIDDEN and not _is_listed(policy, response)
    if is_guess and attempt >= 2:
        return GiveUp(GiveUpReason.PERMANENT)
    if not is_guess and not _may_pass(policy, response):
        return GiveUp(GiveUpReason.PERMANENT)

    costs_attempt = is_guess or not is_throttle
    if costs_attempt and attempt >= policy.max_attempts:
        return GiveUp(GiveUpReason.ATTEMPTS)
    if costs_attempt and not budget.spend():
        return GiveUp(GiveUpReason.BUDGET)

    due = max(ready_at, now + rng.uniform(0.0, backoff_s(policy, attempt)))
    return Retry(due, attempt + costs_attempt, costs_attempt)


def backoff_s(policy: RetryPolicy, attempt: int) -> float:
    """The longest jitter after attempt number `attempt`: doubling, up to `max_s`."""
    doublings = min(max(attempt, 1) - 1, 64)  # beyond that any base has met any sane cap
    return min(policy.max_s, math.ldexp(policy.base_s, doublings))


def _may_pass(policy: RetryPolicy, response: Response) -> bool:
    if response.error is not None:
        return response.error not in PERMANENT_ERRORS
    return _is_listed(policy, response)


def _is_listed(policy: RetryPolicy, response: Response) -> bool:
    return response.status in policy.retry_statuses


class RetryQueue(Generic[T]):
    """What waits for its second chance, soonest first, and in order of arrival among equals."""

    __slots__ = ("_arrivals", "_heap")

    def __init__(self) -> None:
        self._arrivals = count()
        self._heap: list[tuple[Instant, int, T]] = []  # the number keeps items from being compared

    def push(self, due: Instant, item: T) -> None:
        """Keep `item` until `due`."""
        if math.isnan(due):
            raise ValueError("due is not a number: it would break the order of the queue")
        heapq.heappush(self._heap, (due, next(self._arrivals), item))

    def pop_due(self, now: Instant) -> list[T]:
        """Take out everything that is due at `now`, in order."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        return due

    def next_due(self) -> Instant | None:
        """When to look again; None while nothing waits."""
        return self._heap[0][0] if self._heap else None

    def discard(self, predicate: Callable[[T], bool]) -> list[T]:
        """Take out, without waiting, what a cancelled job or a retired host left behind."""
        waiting, self._heap = self._heap, []
        gone: list[tuple[Instant, int, T]] = []
        for entry in sorted(waiting, key=_order):  # a sorted list is a heap
            (gone if predicate(entry[2]) else self._heap).append(entry)
        return [item for _, _, item in gone]

    def __len__(self) -> int:
        return len(self._heap)

    def __repr__(self) -> str:
        return f"<RetryQueue {len(self)} waiting, next at {self.next_due()}>"


def _order(entry: tuple[Instant, int, T]) -> tuple[Instant, int]:
    return entry[0], entry[1]
