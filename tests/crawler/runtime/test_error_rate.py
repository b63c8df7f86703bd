"""`--max-error-rate`: the share of failures among the last requests."""

from __future__ import annotations

from collections import Counter

from mannerly.crawler.runtime.ending import ErrorRate
from mannerly.crawler.stats import Stats


def totals(good: int, bad: int = 0, silent: int = 0, repeated: int = 0) -> Stats:
    return Stats(
        statuses=Counter({200: good, 404: 1, 503: bad}),
        failed=Counter({"timeout": silent}),
        other_statuses=Counter({200: 1, 500: repeated}),
    )


def test_failures_count_in_the_last_requests() -> None:
    """A thousand good ones before do not hide them; 4xx are no failures."""
    rate = ErrorRate(0.2)

    for number in range(1000):
        rate.check(totals(number))
    calm = rate.is_exceeded
    for number in range(12):
        rate.check(totals(1000, bad=number))

    assert not calm
    assert rate.is_exceeded


def test_few_requests_and_few_failures_prove_nothing() -> None:
    """At least 50 requests are judged; a share that is reached is not exceeded."""
    young, calm, off = ErrorRate(0.2), ErrorRate(0.2), ErrorRate(None)

    young.check(totals(5, bad=20, silent=10))
    calm.check(totals(78, bad=10, silent=5, repeated=5))
    off.check(totals(0, bad=500))

    assert not any(each.is_exceeded for each in (young, calm, off))


def test_every_kind_of_failure_counts() -> None:
    """5xx, no answer, and tries that are repeated."""
    rates = [ErrorRate(0.2) for _ in range(3)]

    for rate, failures in zip(rates, ({"bad": 30}, {"silent": 30}, {"repeated": 30}), strict=True):
        rate.check(totals(50, **failures))

    assert all(rate.is_exceeded for rate in rates)
