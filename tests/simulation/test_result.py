from __future__ import annotations

import json
from math import inf, isnan, nan

import pytest

from mannerly.simulation.result import Result, SentRequest, Violations, summarise


def summary(trace: list[SentRequest], duration_s: float = 200.0, rate: float = 2.0) -> Result:
    return summarise(
        trace,
        duration_s=duration_s,
        allowed=lambda start, end: rate * (end - start),
        wanted=[rate] * int(duration_s),
        violations=Violations(gap=0, retry_after=0, half_open=0, in_flight=0),
        wakeups=0,
        events=(),
    )


def served(since_s: float, until_s: float, gap_s: float = 0.5) -> list[SentRequest]:
    count = round((until_s - since_s) / gap_s)
    return [SentRequest(since_s + gap_s * i, True, 0.1) for i in range(count)]


def test_figures_follow_their_formulas() -> None:
    """Utilisation, refusals and regret of a run that is known by heart."""
    refused = [SentRequest(150.0 + i, False, 0.03) for i in range(10)]

    result = summary(sorted(served(100, 200) + refused))

    assert (result.accepted, result.refused) == (200, 10)
    assert (result.util, result.steady_util) == (0.5, 1.0)
    assert result.rejected == result.steady_rejected == pytest.approx(10 / 210)
    assert result.regret == (400 - 200 + 5 * 10) / 400


def test_convergence_is_the_first_second_whose_next_minute_reaches_the_limit() -> None:
    """85 % of a minute's allowance: nine seconds of silence still count."""
    result = summary(served(80, 200))

    assert result.convergence_s == 71.0


def test_rise_is_measured_from_the_instant_of_the_change() -> None:
    """What was reached before a change does not count after it."""
    result = summary(served(0, 60) + served(120, 200))

    assert (result.convergence_s, result.reached_after(30)) == (0.0, 81.0)


def test_run_that_never_gets_there_never_converges() -> None:
    """Half the limit is not 85 %."""
    result = summary(served(0, 200, gap_s=1.0))

    assert result.convergence_s == inf


def test_refused_between_counts_a_span() -> None:
    """The first second of a span is in it, the last is not."""
    trace = [SentRequest(second + 0.5, False, 0.03) for second in range(200)]

    result = summary(trace)

    assert result.refused_between(100, 130) == 30


def test_p95_latency_is_of_served_requests_only() -> None:
    """A quick refusal does not make a server look fast."""
    answers = [SentRequest(float(i), True, i / 100) for i in range(1, 101)]
    refusals = [SentRequest(150.0, False, 0.03)] * 100

    result = summary(answers + refusals)

    assert result.p95_latency_s == 0.95


def test_run_without_a_start_has_figures() -> None:
    """Nothing sent is nothing refused, all regret, and no latency."""
    result = summary([])

    assert (result.util, result.rejected, result.regret) == (0.0, 0.0, 1.0)
    assert isnan(result.p95_latency_s)


def test_to_dict_is_json_without_nan() -> None:
    """What is not a finite number becomes null, in the figures and in the timeline."""
    result = summary([], rate=nan)

    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))

    assert plain["util"] is plain["p95_latency_s"] is plain["timeline"][0]["allowed"] is None
    assert plain["starts"] == plain["events"] == []
