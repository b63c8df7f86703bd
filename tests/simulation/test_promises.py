"""What the project promises of its default strategy, held on modelled servers in virtual time.

Runs are deterministic, so the bounds are close to the figures; the mean over more seeds is in
`make bench`. Fifteen virtual minutes each, settings and servers as in `simulation.tuning`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from bench.tuning import (
    REACHABLE_SERVERS,
    TUNING_SERVERS,
    UNSEEN_SERVERS,
    tuning_settings,
)

from mannerly.politeness import Politeness, Settings
from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.pace import Lesson
from mannerly.simulation import parse_server, run
from mannerly.simulation.run import HOST

if TYPE_CHECKING:
    from mannerly.simulation import Result

LEARNED = tuning_settings("learned")
DURATION_S = 900
SEEDS = (1, 2, 3)


def results(spec: str) -> list[Result]:
    return [run(LEARNED, spec, DURATION_S, seed) for seed in SEEDS]


def violations(result: Result) -> tuple[int, int, int, int]:
    return (
        result.gap_violations,
        result.retry_after_violations,
        result.half_open_violations,
        result.in_flight_violations,
    )


def test_defaults_settle_at_the_limit() -> None:
    """With the default settings, 96 % of fourteen hidden limits is used, and 0.5 % refused."""
    runs = [
        run(Settings(), spec, DURATION_S, seed)
        for spec in REACHABLE_SERVERS.values()
        for seed in SEEDS
    ]

    assert fmean(result.steady_util for result in runs) >= 0.96
    assert min(result.steady_util for result in runs) >= 0.84
    assert fmean(result.steady_rejected for result in runs) <= 0.005
    assert {violations(result) for result in runs} == {(0, 0, 0, 0)}


# The probe budget shows where requests are rare: at 5/s, other limits make probes rarer still.
SLOW_SERVERS = (
    "bucket:0.5:5",
    "bucket:1:5+retry-after",
    "bucket:2:20",
    "fixed:60:60",
    "fixed:60:60+retry-after",
    "fixed:30:60",
    "sliding:100:100",
)


def test_defaults_keep_the_probe_budget() -> None:
    """In the second of two hours, slow hosts refuse 0.5 % of the requests, and are used."""
    runs = [run(Settings(), spec, 7200, seed) for spec in SLOW_SERVERS for seed in SEEDS]

    assert fmean(result.steady_rejected for result in runs) <= 0.005
    assert max(result.steady_rejected for result in runs) <= 0.009
    assert fmean(result.steady_util for result in runs) >= 0.95


@pytest.mark.parametrize("spec", ["bucket:6:1", "bucket:3:6", "sliding:50:10", "fixed:240:60"])
def test_limit_that_shows_only_above_it_is_found(spec: str) -> None:
    """A host that refuses only above some rate, without a word, is used to 80 % and more."""
    for seed in SEEDS:
        result = run(Settings(), spec, DURATION_S, seed)

        assert result.steady_util >= 0.80
        assert result.steady_rejected < 0.01


@pytest.mark.parametrize("spec", ["bucket:5:10", "bucket:6:1", "bucket:4:4", "sliding:100:20"])
def test_limit_that_answers_503_is_found(spec: str) -> None:
    """A refusal may be a 503 without Retry-After: less than 1 % of them once it is known."""
    for seed in SEEDS:
        server = parse_server(spec)
        server.refusal_status = 503  # type: ignore[attr-defined]
        result = run(Settings(), server, 1800, seed)

        assert result.steady_util >= 0.78
        assert result.steady_rejected < 0.01
        assert violations(result) == (0, 0, 0, 0)


@pytest.mark.parametrize("spec", ["bucket:1:5", "bucket:2:10", "bucket:5:10"])
@pytest.mark.parametrize("status", [0, 503], ids=["dropped", "503"])
def test_limit_that_fails_after_a_burst_is_found(spec: str, status: int) -> None:
    """The burst hides the limit at first, and no failure came at a lower rate before."""
    for seed in SEEDS:
        server = parse_server(spec)
        server.refusal_status = status  # type: ignore[attr-defined]
        result = run(Settings(), server, DURATION_S, seed)

        assert result.steady_util >= 0.9
        assert result.rejected < 0.04


def test_random_failures_are_no_limit() -> None:
    """Failures that come at every rate do not slow a host down for good."""
    for seed in SEEDS:
        result = run(Settings(), "bucket:5:10+noise=0.03", DURATION_S, seed)

        assert result.steady_util >= 0.80


@pytest.fixture(scope="module")
def tuning() -> dict[str, Result]:
    """The tuning set with one seed."""
    return {name: run(LEARNED, spec, DURATION_S, 1) for name, spec in TUNING_SERVERS.items()}


def test_steady_use_is_near_the_limit(tuning: dict[str, Result]) -> None:
    """In the second half of a run 93 % of what fourteen hidden limits allow is used, or more."""
    assert fmean(result.steady_util for result in tuning.values()) >= 0.93
    assert min(result.steady_util for result in tuning.values()) >= 0.85


def test_steady_refusals_are_rare(tuning: dict[str, Result]) -> None:
    """At most 0.45 % of the steady requests are refused, the server's own 1 % noise included."""
    assert fmean(result.steady_rejected for result in tuning.values()) <= 0.0045
    assert max(result.steady_rejected for result in tuning.values()) <= 0.0125


def test_regret_is_small(tuning: dict[str, Result]) -> None:
    """Cold start included, and a refusal priced like five pages, a ninth is lost at most."""
    assert fmean(result.regret for result in tuning.values()) <= 0.12


def test_learned_breaks_no_promise(tuning: dict[str, Result]) -> None:
    """Spacing, Retry-After, the breaker and the in-flight cap hold on every server."""
    assert {violations(result) for result in tuning.values()} == {(0, 0, 0, 0)}


@pytest.mark.parametrize("strategy", ["linear", "aimd", "gradient", "fixed"])
def test_no_strategy_breaks_a_promise_anywhere(strategy: str) -> None:
    """The promises are the host's, not the strategy's: they hold for all of them."""
    settings = tuning_settings(strategy)

    for spec in TUNING_SERVERS.values():
        assert violations(run(settings, spec, 60)) == (0, 0, 0, 0), spec


def test_no_promise_is_broken_on_unseen_servers() -> None:
    """Nor do servers that nothing was tuned on make a difference."""
    for spec in UNSEEN_SERVERS.values():
        assert violations(run(LEARNED, spec, 60)) == (0, 0, 0, 0), spec


@pytest.mark.parametrize("outage", ["outage", "unreachable", "hang"])
def test_host_that_breaks_down_is_left_alone_and_found_again(outage: str) -> None:
    """A minute of failures costs few requests, and is made up for within some minutes."""
    result = run(LEARNED, f"bucket:5:10+{outage}=300-360", DURATION_S)

    assert violations(result) == (0, 0, 0, 0)
    assert result.refused_between(300, 360) <= 20
    assert result.reached_after(360) <= 240
    assert result.steady_util >= 0.84


@pytest.mark.parametrize(
    "spec", ["sliding:300:60", "sliding:1000:300", "sliding:100:100", "sliding:600:60+retry-after"]
)
def test_long_sliding_windows_are_used(spec: str) -> None:
    """Where the refill replays the first burst, four fifths are used all the same."""
    assert fmean(result.util for result in results(spec)) >= 0.80


def test_raised_limit_is_found_within_two_minutes() -> None:
    """From 2/s to 8/s: 85 % of it is in use after 120 s at most."""
    assert max(result.reached_after(300) for result in results("steps:2@0,8@300:5")) <= 120


def test_lowered_limit_costs_few_refusals() -> None:
    """From 10/s to 1/s: at most eight refusals in the first half minute."""
    assert max(result.refused_between(300, 330) for result in results("steps:10@0,1@300:10")) <= 8


def test_server_that_bans_is_hardly_provoked() -> None:
    """At most ten refusals in fifteen minutes, each worth a ban of 30 s, and 75 % in use."""
    for result in results("ban:4:4:30"):
        assert result.refused <= 10
        assert result.util >= 0.75


def test_server_that_queues_is_kept_quick() -> None:
    """Three quarters and more of a host that never refuses, without filling its queue."""
    for result in results("knee:3:0.25"):
        assert result.util >= 0.85
        assert result.p95_latency_s <= 0.6


def test_random_failures_do_not_slow_down() -> None:
    """Three in a hundred requests fail for no reason, and 95 % of the limit is in use."""
    assert min(result.steady_util for result in results("bucket:5:10+noise=0.03")) >= 0.95


def warm(spec: str, limit: float, seed: int) -> Result:
    """The first minute of a host about which an earlier run believed `limit`."""
    core = Politeness(replace(LEARNED, seed=seed))
    lesson = Lesson(delay_s=1.0 / limit, floor_s=1.0 / (1.1 * limit), is_proven=True)
    core.recall(Remembered(host=HOST, lesson=lesson), now=0.0, wall=0.0)
    return run(LEARNED, spec, 60, seed, core=core)


@pytest.mark.parametrize(("spec", "limit"), [("fixed:60:60", 1.0), ("fixed:300:60", 5.0)])
def test_right_memory_costs_no_refusal(spec: str, limit: float) -> None:
    """A fixed window whose limit is remembered refuses nothing in the first minute."""
    warmed = [warm(spec, limit, seed) for seed in SEEDS]

    assert [result.refused for result in warmed] == [0, 0, 0]
    assert min(result.accepted for result in warmed) >= 0.95 * 60 * limit


def test_wrong_memory_costs_little() -> None:
    """Remembered twice too high: six refusals at most in the first minute; too low: none."""
    limits = {"fixed:60:60": 1.0, "fixed:300:60": 5.0, "bucket:5:10": 5.0, "sliding:100:20": 5.0}
    for spec, limit in limits.items():
        for error, most in ((2.0, 6), (0.5, 0)):
            refused = [warm(spec, error * limit, seed).refused for seed in SEEDS]

            assert max(refused) <= most, f"{spec}, remembered as {error} times its limit"


def test_domain_that_is_prone_to_429_refuses_nothing_at_its_pace() -> None:
    """A server that allows one request a second and no burst is sent one a second, none refused."""
    settings = Settings(strategy="fixed", delay_s=1.0)

    result = run(settings, "bucket:1:1", 900, 1)

    assert (result.accepted, result.refused) == (900, 0)
    assert min(later - earlier for earlier, later in pairwise(result.starts)) >= 1.0
