"""Decide whether and when to repeat a request. The decision is a value; nothing sleeps here.

    due = max(ready_at(host), now + U(0, min(max_s, base_s · 2^(n−1))))      n = attempts made

Full jitter alone may choose 0 s right after a refusal, so a retry is never due before the host's
next slot. Three limits keep retries from making an outage worse: attempts per URL, a budget per
host (a tenth of its requests), and no retries of permanent statuses. A throttle is not a failure of
the URL: it costs neither an attempt nor budget; the host's delay and stall detection limit it, and
`refusal_retries` if it is set.

This module knows no host and no clock; the random generator is an argument, and the response was
classified before (`Outcome`).
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
    from collections.abc import Callable, Iterator

    from .model import Instant, Response

T = TypeVar("T")

# Gateway errors are temporary; a 500 is mostly a bug of one page, and a retry would hit it again.
TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})

# The same response would come again. Every other error without a status may be temporary.
PERMANENT_ERRORS = frozenset({ErrorKind.PROTOCOL, ErrorKind.TOO_LARGE})

FORBIDDEN, GIVEN = 403, range(200, 300)  # statuses of doubtful answers

# An undecided page is asked for again so much later, so that others come in between.
AGAIN_S, AGAIN_GAPS = 2.0, 3.0

# Added up as floats, ten times 0.1 is slightly less than one.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of retries: attempts per URL, backoff in seconds, retries per host."""

    max_attempts: int = 3
    refusal_retries: int | None = None  # retries of a URL that is throttled; None: no limit
    base_s: float = 0.5
    max_s: float = 60.0
    retry_statuses: frozenset[int] = TRANSIENT_STATUSES
    budget_ratio: float = 0.1
    budget_burst: float = 10.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts must be 1 or more, not {self.max_attempts}")
        if not 0 < self.base_s <= self.max_s < math.inf:
            raise ValueError(f"must be 0 < base_s ≤ max_s, not {self.base_s} and {self.max_s}")
        if not 0 <= self.budget_ratio <= 1:
            raise ValueError(f"budget_ratio must be 0 to 1, not {self.budget_ratio}")
        if not 0 <= self.budget_burst < math.inf:
            raise ValueError(f"budget_burst must be 0 or more, not {self.budget_burst}")


class GiveUpReason(StrEnum):
    """The reason why a URL is not retried."""

    PERMANENT = "permanent"  # the response would be the same
    ATTEMPTS = "attempts"  # `max_attempts` or `refusal_retries` was reached
    BUDGET = "budget"  # the host's retry budget is used up
    HOST = "host"  # the host is paused or retired


@dataclass(frozen=True, slots=True)
class Retry:
    """Repeat the request at `due`, as attempt number `attempt`; a throttle does not increase it."""

    due: Instant
    attempt: int
    costs_attempt: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Do not repeat the request."""

    reason: GiveUpReason


RetryDecision: TypeAlias = Retry | GiveUp


class RetryBudget:
    """A host's token bucket for retries: a request adds a fraction of a token, a retry takes one.

    It starts full, so that retries work for a host with few pages, too. There is one per host, so
    the ratio and the capacity stay in the policy and only the level is stored here.
    """

    __slots__ = ("tokens",)

    def __init__(self, policy: RetryPolicy) -> None:
        self.tokens = policy.budget_burst

    def earn(self, policy: RetryPolicy) -> None:
        """Add the tokens for one request."""
        self.tokens = min(policy.budget_burst, self.tokens + policy.budget_ratio)

    def spend(self) -> bool:
        """Take one token for a retry; return False if there is none."""
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
    refusals: int = 1,
    ready_at: Instant,
    gap_s: float = 0.0,
    now: Instant,
    budget: RetryBudget,
    rng: random.Random,
) -> RetryDecision:
    """Return whether to retry after attempt number `attempt` (the first is 1), and when.

    `refusals` is the number of throttles of this URL, this one included.
    A `Retry` that costs an attempt has already taken its token from `budget`. An undecided page is
    asked for again after a few others (`gap_s` is the delay between two requests): what it answers
    then decides, so that costs no attempt. If the core was not told the URL of a 403, it gets one
    retry that costs an attempt; otherwise a forbidden page would be requested forever.
    """
    if ready_at == math.inf:
        return GiveUp(GiveUpReason.HOST)
    is_throttle = outcome is Outcome.THROTTLE
    is_undecided = outcome is Outcome.UNDECIDED
    was_weighed = is_throttle and (response.status == FORBIDDEN or response.status in GIVEN)
    if not (is_undecided or was_weighed or _may_pass(policy, response)):
        return GiveUp(GiveUpReason.PERMANENT)

    is_nameless = response.url is None and response.status == FORBIDDEN
    is_guess = is_undecided or (is_throttle and not _is_listed(policy, response))
    if is_nameless and is_guess and attempt >= 2:
        return GiveUp(GiveUpReason.PERMANENT)
    costs_attempt = not (is_throttle or is_undecided) or (is_nameless and is_guess)
    if costs_attempt and attempt >= policy.max_attempts:
        return GiveUp(GiveUpReason.ATTEMPTS)
    if is_throttle and policy.refusal_retries is not None and refusals > policy.refusal_retries:
        return GiveUp(GiveUpReason.ATTEMPTS)
    if costs_attempt and not budget.spend():
        return GiveUp(GiveUpReason.BUDGET)

    due = max(ready_at, now + rng.uniform(0.0, backoff_s(policy, attempt)))
    if is_undecided:
        due = max(due, now + max(AGAIN_S, AGAIN_GAPS * gap_s))
    return Retry(due, attempt + costs_attempt, costs_attempt)


def backoff_s(policy: RetryPolicy, attempt: int) -> float:
    """Return the longest jitter after attempt number `attempt`: it doubles, up to `max_s`."""
    doublings = min(max(attempt, 1) - 1, 64)  # enough to reach any sensible `max_s`
    return min(policy.max_s, math.ldexp(policy.base_s, doublings))


def _may_pass(policy: RetryPolicy, response: Response) -> bool:
    if response.error is not None:
        return response.error not in PERMANENT_ERRORS
    return _is_listed(policy, response)


def _is_listed(policy: RetryPolicy, response: Response) -> bool:
    return response.status in policy.retry_statuses


class RetryQueue(Generic[T]):
    """A priority queue of items by due time; equal times keep their order of insertion."""

    __slots__ = ("_arrivals", "_heap")

    def __init__(self) -> None:
        self._arrivals = count()
        self._heap: list[tuple[Instant, int, T]] = []  # the number avoids comparing items

    def push(self, due: Instant, item: T) -> None:
        """Add `item`, due at `due`."""
        if math.isnan(due):
            raise ValueError("due must not be NaN: it would break the order of the queue")
        heapq.heappush(self._heap, (due, next(self._arrivals), item))

    def pop_due(self, now: Instant) -> list[T]:
        """Remove and return all items due at `now`, in order."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        return due

    def next_due(self) -> Instant | None:
        """Return the earliest due time; None if the queue is empty."""
        return self._heap[0][0] if self._heap else None

    def discard(self, predicate: Callable[[T], bool]) -> list[T]:
        """Remove and return all items for which `predicate` is true, due or not."""
        waiting, self._heap = self._heap, []
        gone: list[tuple[Instant, int, T]] = []
        for entry in sorted(waiting, key=_order):  # a sorted list is a heap
            (gone if predicate(entry[2]) else self._heap).append(entry)
        return [item for _, _, item in gone]

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[tuple[Instant, T]]:
        """Yield all items with their due times; the earliest is the first, the rest in no order."""
        return ((due, item) for due, _, item in self._heap)

    def __repr__(self) -> str:
        return f"<RetryQueue {len(self)} waiting, next at {self.next_due()}>"


def _order(entry: tuple[Instant, int, T]) -> tuple[Instant, int]:
    return entry[0], entry[1]
