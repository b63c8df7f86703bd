"""A host's vital signs: one byte a latency, thirty seconds of answers, and no surprises."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.politeness import Grant, Politeness, Response, Settings
from mannerly.politeness.stats import HostStats, StatsShape, decode_latency, encode_latency

latencies = st.lists(st.floats(0.0, 60.0), min_size=1, max_size=150)


@given(st.floats(0.0, 60.0))
def test_latency_keeps_its_value_within_two_percent(latency_s: float) -> None:
    """One byte is at most 2.2 % of (latency + 1 ms) off, from 0 to a minute."""
    decoded_s = decode_latency(encode_latency(latency_s))

    assert abs(decoded_s - latency_s) <= 0.022 * (latency_s + 0.001)


@given(st.floats(0.025, 60.0))
def test_ordinary_latency_is_two_percent_off_at_most(latency_s: float) -> None:
    """From 25 ms on, the error is at most 2.3 % of the latency itself."""
    assert decode_latency(encode_latency(latency_s)) == pytest.approx(latency_s, rel=0.023)


@pytest.mark.parametrize(("latency_s", "level"), [(-1.0, 0), (0.0, 0), (1e9, 255)])
def test_latency_out_of_range_is_taken_for_the_nearest(latency_s: float, level: int) -> None:
    """Nothing is faster than 0 or slower than the slowest level."""
    assert encode_latency(latency_s) == level


@given(latencies)
def test_p95_is_the_nearest_rank_of_the_last_64(latencies_s: list[float]) -> None:
    """It equals what sorting the last 64 latencies gives, on the byte scale."""
    stats = HostStats()
    for latency_s in latencies_s:
        stats.add_success(latency_s, 0.0)

    levels = sorted(encode_latency(latency_s) for latency_s in latencies_s[-64:])
    rank = -(-95 * len(levels) // 100)

    assert stats.p95_s() == decode_latency(levels[rank - 1])


@given(latencies, st.integers(1, 64))
def test_median_is_that_of_the_newest(latencies_s: list[float], newest: int) -> None:
    """It equals what sorting the newest latencies gives; with too few of them it is unknown."""
    stats = HostStats()
    for latency_s in latencies_s:
        stats.add_success(latency_s, 0.0)

    levels = sorted(encode_latency(latency_s) for latency_s in latencies_s[-newest:])
    expected = levels[newest // 2] if len(latencies_s) >= newest else 0

    assert stats.median_level(newest) == expected


@given(latencies)
def test_average_follows_with_a_fifth(latencies_s: list[float]) -> None:
    """The first latency starts the average; each later one moves it by a fifth of the way."""
    stats = HostStats()
    for latency_s in latencies_s:
        stats.add_success(latency_s, 0.0)

    *_, expected = accumulate(latencies_s, lambda average, new: 0.8 * average + 0.2 * new)

    assert stats.ewma_s == pytest.approx(expected, abs=1e-9)


def test_empty_stats_say_nothing() -> None:
    """Without an answer there is no latency and no error."""
    stats = HostStats()

    assert (stats.p95_s(), stats.ewma_s, stats.median_level(15)) == (0.0, 0.0, 0)
    assert stats.errors(100.0) == stats.error_counts() == (0, 0)


steps = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 0.5, 2.0, 29.0, 31.0, 1e6]), st.floats(0.0, 10.0)),
        st.sampled_from(["page", "failure", "answer", "look"]),
    ),
    max_size=80,
)


shapes = st.sampled_from([StatsShape(), StatsShape(16, 1, 60.0), StatsShape(200, 60, 0.5)])


@given(st.sampled_from([0.0, 1e6, -1000.0]), steps, shapes)
def test_window_agrees_with_a_list(
    start: float, walk: list[tuple[float, str]], shape: StatsShape
) -> None:
    """The window holds what a list filtered by its slots would: 15 of 2 s by default."""
    stats = HostStats(shape)
    now = start
    seen: list[tuple[float, bool]] = []

    for pause_s, what in walk:
        now += pause_s
        if what == "page":
            stats.add_success(0.1, now)
        elif what != "look":
            stats.add_answer(now, failed=what == "failure")
        if what != "look":
            seen.append((now, what == "failure"))
        recent = [
            failed for at, failed in seen if now // shape.slot_s - at // shape.slot_s < shape.slots
        ]
        assert stats.errors(now) == (sum(recent), len(recent))


def test_slot_counts_to_255_and_stands_still() -> None:
    """Beyond that neither answers nor failures are counted, so their share stays honest."""
    stats = HostStats()

    for number in range(600):
        stats.add_answer(10.0, failed=number % 2 == 0)
    for _ in range(50):
        stats.add_success(0.1, 10.0)

    assert stats.errors(10.0) == (128, 255)


def test_answer_from_an_earlier_slot_moves_nothing_back() -> None:
    """A report that arrives out of order is counted and does not turn the window back."""
    stats = HostStats()
    stats.add_answer(10.0, failed=True)
    stats.add_answer(20.0, failed=True)

    stats.add_answer(15.0, failed=True)

    assert stats.errors(20.0) == (3, 3)
    assert stats.errors(41.0) == (2, 2)


def test_errors_can_be_forgotten() -> None:
    """Clearing the window leaves the latencies alone."""
    stats = HostStats()
    stats.add_success(0.5, 1.0)
    stats.add_answer(1.0, failed=True)

    stats.clear_errors()

    assert stats.errors(1.0) == (0, 0)
    assert stats.p95_s() == pytest.approx(0.5, rel=0.023)


@pytest.mark.parametrize("samples", [16, 64, 200])
def test_sizes_of_window_and_ring_are_settings(samples: int) -> None:
    """p95 is made from as many latencies as asked for, the error rate from as many seconds."""
    core = Politeness(
        Settings(
            strategy="fixed",
            max_rate="unlimited",
            error_window_s=10.0,
            error_slots=10,
            latency_samples=samples,
            breaker_min_samples=10_000,
        )
    )

    def send(status: int, latency_s: float, at: float) -> None:
        decision = core.reserve("example.com", now=at)
        assert isinstance(decision, Grant)
        core.report(decision.permit, Response(status, latency_s), now=at)

    for number in range(220):
        send(200, 1.0 if number < 220 - samples else 0.1, number * 0.001)
    send(500, 0.1, 1.0)
    before = core.host("example.com")
    send(404, 0.1, 9.5)
    within = core.host("example.com")
    send(404, 0.1, 11.5)
    after = core.host("example.com")

    assert before is not None
    assert before.p95_latency_s == pytest.approx(0.1, rel=0.03)
    assert within is not None
    assert within.error_rate > 0.0
    assert after is not None
    assert after.error_rate == 0.0
