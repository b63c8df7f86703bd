"""Claims about when a URL is asked for again, and when not."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.politeness.cases import case

from mannerly.politeness.model import ErrorKind, Outcome, Response
from mannerly.politeness.retry import (
    GiveUp,
    GiveUpReason,
    Retry,
    RetryBudget,
    RetryDecision,
    RetryPolicy,
    RetryQueue,
    backoff_s,
    decide,
)

POLICY = RetryPolicy()
BAD_GATEWAY = Response(status=502)


def decision(
    response: Response = BAD_GATEWAY,
    outcome: Outcome = Outcome.OVERLOAD,
    *,
    attempt: int = 1,
    ready_at: float = 0.0,
    policy: RetryPolicy = POLICY,
    refusals: int = 1,
    budget: RetryBudget | None = None,
) -> RetryDecision:
    return decide(
        policy,
        outcome=outcome,
        response=response,
        attempt=attempt,
        refusals=refusals,
        ready_at=ready_at,
        now=100.0,
        budget=budget or RetryBudget(policy),
        rng=random.Random(1),
    )


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (Response(status=502), Outcome.OVERLOAD),
        (Response(status=503), Outcome.OVERLOAD),
        (Response(status=504), Outcome.OVERLOAD),
        (Response(error=ErrorKind.TIMEOUT), Outcome.OVERLOAD),
        (Response(error=ErrorKind.DNS), Outcome.OVERLOAD),
        (Response(error="reset"), Outcome.OVERLOAD),
    ],
)
def test_transient_failure_is_retried(response: Response, outcome: Outcome) -> None:
    """Gateway troubles, timeouts and network errors may pass, and cost an attempt."""
    result = decision(response, outcome)

    assert isinstance(result, Retry)
    assert (result.attempt, result.costs_attempt) == (2, True)


def test_answer_that_stands_is_not_retried() -> None:
    """No repetition changes these, and the budget is not touched."""
    cases: list[tuple[Response, Outcome]] = [
        *((Response(status=status), Outcome.NEUTRAL) for status in (301, 400, 401, 403, 404, 410)),
        (Response(status=500), Outcome.OVERLOAD),
        (Response(status=200), Outcome.OK),
        (Response(error=ErrorKind.TOO_LARGE), Outcome.NEUTRAL),
        (Response(error="protocol"), Outcome.NEUTRAL),
    ]
    for response, outcome in cases:
        with case(response, outcome):
            budget = RetryBudget(POLICY)

            assert decision(response, outcome, budget=budget) == GiveUp(GiveUpReason.PERMANENT)
            assert budget.tokens == POLICY.budget_burst


def test_attempts_run_out() -> None:
    """The third failed attempt is the last."""
    assert isinstance(decision(attempt=2), Retry)
    assert decision(attempt=3) == GiveUp(GiveUpReason.ATTEMPTS)


@pytest.mark.parametrize("status", [429, 503])
def test_throttle_is_free(status: int) -> None:
    """A throttle costs neither attempt nor budget, however often it comes."""
    budget = RetryBudget(RetryPolicy(budget_burst=0))

    result = decision(Response(status=status), Outcome.THROTTLE, attempt=3, budget=budget)

    assert isinstance(result, Retry)
    assert (result.attempt, result.costs_attempt) == (3, False)


def test_guessed_throttle_gets_one_paid_retry() -> None:
    """A 403 classified as a throttle is retried once and costs an attempt."""
    forbidden, budget = Response(status=403), RetryBudget(POLICY)

    first = decision(forbidden, Outcome.THROTTLE, budget=budget)
    second = decision(forbidden, Outcome.THROTTLE, attempt=2, budget=budget)

    assert isinstance(first, Retry)
    assert first.costs_attempt
    assert second == GiveUp(GiveUpReason.PERMANENT)
    assert budget.tokens == POLICY.budget_burst - 1


def test_statuses_are_a_setting() -> None:
    """403 can be made retryable, and 429 final."""
    strict = RetryPolicy(retry_statuses=frozenset({403}))

    assert isinstance(decision(Response(status=403), Outcome.NEUTRAL, policy=strict), Retry)
    assert decision(Response(status=403), Outcome.THROTTLE, attempt=9, policy=strict) != GiveUp(
        GiveUpReason.PERMANENT
    )
    assert decision(Response(status=429), Outcome.THROTTLE, policy=strict) == GiveUp(
        GiveUpReason.PERMANENT
    )


def test_budget_runs_out_and_is_earned_back() -> None:
    """A burst of ten retries, then one for every ten requests."""
    budget = RetryBudget(POLICY)

    burst = [decision(budget=budget) for _ in range(11)]
    for _ in range(10):
        budget.earn(POLICY)
    later = [decision(budget=budget) for _ in range(2)]

    assert [isinstance(result, Retry) for result in burst] == [True] * 10 + [False]
    assert burst[-1] == GiveUp(GiveUpReason.BUDGET)
    assert [isinstance(result, Retry) for result in later] == [True, False]


@given(st.lists(st.booleans(), max_size=300))
def test_retries_stay_within_the_budget(spends: list[bool]) -> None:
    """At any time: retries ≤ burst + ratio × requests, and the level stays between its bounds."""
    budget = RetryBudget(POLICY)
    requests = retries = 0

    for wants_to_spend in spends:
        if wants_to_spend:
            retries += budget.spend()
        else:
            requests += 1
            budget.earn(POLICY)
        assert retries <= POLICY.budget_burst + POLICY.budget_ratio * requests + 1e-6
        assert 0 <= budget.tokens <= POLICY.budget_burst


@given(
    attempt=st.integers(1, 10_000),
    now=st.floats(0, 1e9),
    ready_at=st.floats(0, 1e9),
    seed=st.integers(0, 9),
)
def test_due_is_jittered_but_never_before_the_host_is_ready(
    attempt: int, now: float, ready_at: float, seed: int
) -> None:
    """The jitter stays within its doubling, capped bound, and the host's own clock is a floor."""
    result = decide(
        POLICY,
        outcome=Outcome.THROTTLE,
        response=Response(status=429),
        attempt=attempt,
        ready_at=ready_at,
        now=now,
        budget=RetryBudget(POLICY),
        rng=random.Random(seed),
    )

    assert isinstance(result, Retry)
    assert result.due >= ready_at
    assert now <= result.due <= max(ready_at, now + backoff_s(POLICY, attempt))


def test_backoff_doubles_up_to_its_cap() -> None:
    """0.5, 1, 2, … and never above a minute, however many attempts."""
    bounds = [backoff_s(POLICY, attempt) for attempt in (1, 2, 3, 7, 8, 10**9)]

    assert bounds == [0.5, 1.0, 2.0, 32.0, 60.0, 60.0]


def test_jitter_uses_its_whole_range() -> None:
    """Full jitter: many clients that failed together come back apart."""
    rng = random.Random(7)
    budget = RetryBudget(RetryPolicy(budget_burst=1e9))

    dues = [
        decide(
            POLICY,
            outcome=Outcome.OVERLOAD,
            response=BAD_GATEWAY,
            attempt=1,
            ready_at=0.0,
            now=0.0,
            budget=budget,
            rng=rng,
        )
        for _ in range(400)
    ]

    spans = [result.due for result in dues if isinstance(result, Retry)]
    assert min(spans) < 0.02
    assert max(spans) > 0.48


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"base_s": 0.0},
        {"base_s": 61.0},
        {"base_s": float("nan")},
        {"max_s": float("inf")},
        {"budget_ratio": -0.1},
        {"budget_ratio": 1.1},
        {"budget_burst": -1.0},
    ],
)
def test_policy_refuses_nonsense(wrong: dict[str, float]) -> None:
    """A policy that could not be kept is refused when it is made, by name."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RetryPolicy(**wrong)  # type: ignore[arg-type]


def test_queue_gives_back_what_is_due_in_order() -> None:
    """Soonest first, first come first served among equals, the rest stays."""
    queue: RetryQueue[str] = RetryQueue()
    for due, item in [(3.0, "d"), (1.0, "a"), (2.0, "b"), (2.0, "c"), (9.0, "e")]:
        queue.push(due, item)

    assert queue.next_due() == 1.0
    assert queue.pop_due(0.9) == []
    assert queue.pop_due(3.0) == ["a", "b", "c", "d"]
    assert repr(queue) == "<RetryQueue 1 waiting, next at 9.0>"


def test_queue_that_is_empty_has_no_next() -> None:
    """An empty queue has no due time."""
    queue: RetryQueue[str] = RetryQueue()

    assert queue.next_due() is None
    assert queue.pop_due(1e9) == []
    assert len(queue) == 0


def test_queue_refuses_an_instant_that_has_no_order() -> None:
    """Not-a-number would break the heap in silence."""
    queue: RetryQueue[str] = RetryQueue()

    with pytest.raises(ValueError, match="due"):
        queue.push(float("nan"), "a")


def test_queue_needs_no_order_between_items() -> None:
    """Items that cannot be compared are no problem, even when due together."""
    queue: RetryQueue[object] = RetryQueue()
    items = [object(), object(), object()]
    for item in items:
        queue.push(1.0, item)

    assert queue.pop_due(1.0) == items


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3))), st.integers(0, 3))
def test_queue_discards_without_disturbing_the_order(
    pushes: list[tuple[int, int]], unwanted: int
) -> None:
    """What is discarded comes out in order, and so does what stays."""
    queue: RetryQueue[tuple[int, int]] = RetryQueue()
    for push in pushes:
        queue.push(float(push[0]), push)
    in_order = sorted(pushes, key=lambda push: push[0])

    gone = queue.discard(lambda push: push[1] == unwanted)

    assert gone == [push for push in in_order if push[1] == unwanted]
    assert queue.pop_due(5.0) == [push for push in in_order if push[1] != unwanted]


def test_retry_is_given_up_where_the_host_is_retired() -> None:
    """A host that will never be ready again gets no retry, whatever the answer was."""
    decision = decide(
        RetryPolicy(),
        outcome=Outcome.OVERLOAD,
        response=Response(status=503),
        attempt=1,
        ready_at=math.inf,
        now=0.0,
        budget=RetryBudget(RetryPolicy()),
        rng=random.Random(1),
    )

    assert decision == GiveUp(GiveUpReason.HOST)


def test_retries_of_refusals_are_counted_if_told_so() -> None:
    """With three retries the fourth refusal of a URL ends it; by default none of a million does."""
    counted = RetryPolicy(refusal_retries=3)
    busy = Response(status=429)

    results = [
        decision(busy, Outcome.THROTTLE, policy=counted, refusals=refusals)
        for refusals in (1, 2, 3, 4)
    ]
    patient = decision(busy, Outcome.THROTTLE, refusals=1_000_000)

    assert [isinstance(result, Retry) for result in results] == [True, True, True, False]
    assert results[3] == GiveUp(GiveUpReason.ATTEMPTS)
    assert isinstance(patient, Retry)
