"""Claims about clocks: the wall clock may jump and the machine may sleep, the spacing holds.

Waiting uses monotonic time only. A suspended machine is a jump of that time on some systems and
none on others; both are tried here, with all strategies.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mannerly.politeness import Grant, Politeness, Response, Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.slots import Slot
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.pace import Lesson
from mannerly.politeness.settings import STRATEGIES
from mannerly.politeness.testing import FakeClock, retry_after

HOST = "example.com"
HOUR_S = 3600.0
ROUNDING = 1e-9

strategies = st.sampled_from(STRATEGIES)
answers = st.sampled_from(
    [
        Response(200, 0.1),
        Response(200, 0.1),
        Response(200, 2.0),
        Response(404, 0.1),
        Response(429, 0.05),
        Response(429, 0.05, retry_after(7)),
        Response(503, 0.05, retry_after(120)),
    ]
)
histories = st.lists(answers, min_size=1, max_size=40)
wall_steps = st.dictionaries(st.integers(0, 40), st.sampled_from([-HOUR_S, HOUR_S, -1.0]))


def starts(strategy: str, history: list[Response], steps: dict[int, float]) -> list[float]:
    """Send one request after the other; the wall clock jumps before those that `steps` names."""
    clock = FakeClock()
    settings = Settings(strategy=strategy, seed=1, give_up_after_s=1e9)
    politeness = ThreadedPoliteness(settings, clock=clock)
    sent = []
    for number, response in enumerate(history):
        clock.step_wall(steps.get(number, 0.0))
        clock.advance(max(0.0, politeness.ready_at(HOST) - clock.now()))
        slot = politeness.try_slot(HOST)
        assert isinstance(slot, Slot), slot
        sent.append(clock.now())
        clock.advance(response.latency_s)
        slot.report(response)
    return sent


@hypothesis_settings(max_examples=150, deadline=None)
@given(strategies, histories, wall_steps)
def test_steps_of_the_wall_clock_change_nothing(
    strategy: str, history: list[Response], steps: dict[int, float]
) -> None:
    """Whatever the wall clock does, requests start at exactly the same instants."""
    assert starts(strategy, history, steps) == starts(strategy, history, {})


def after(core: Politeness, history: list[Response]) -> float:
    """Send one request after the other to a host; returns the time after the last answer."""
    now = 0.0
    for response in history:
        now = core.ready_at(HOST, now=now)
        decision = core.reserve(HOST, now=now)
        assert isinstance(decision, Grant)
        now += response.latency_s
        core.report(decision.permit, response, now=now)
    return now


@hypothesis_settings(max_examples=200, deadline=None)
@given(strategies, histories, st.floats(HOUR_S, 30 * HOUR_S))
def test_suspended_time_saves_up_no_burst(
    strategy: str, history: list[Response], asleep_s: float
) -> None:
    """After hours of sleep one request starts at once, and the next after the whole delay."""
    core = Politeness(Settings(strategy=strategy, seed=1, give_up_after_s=1e9))
    ended_at = after(core, history)
    now = max(ended_at + asleep_s, core.ready_at(HOST, now=ended_at))  # a pause may be longer
    before = core.host(HOST)
    assert before is not None

    granted = [isinstance(core.reserve(HOST, now=now), Grant) for _ in range(20)]
    soon = core.reserve(HOST, now=now + before.delay_s - 1e-6)

    assert granted == [True] + [False] * 19
    assert not isinstance(soon, Grant)


@hypothesis_settings(max_examples=50, deadline=None)
@given(strategies, histories, st.integers(1, 8))
def test_requests_in_flight_during_the_sleep_earn_no_burst(
    strategy: str, history: list[Response], in_flight: int
) -> None:
    """Time-outs that come in together on waking do not let a row of requests go at once."""
    core = Politeness(Settings(strategy=strategy, seed=1, give_up_after_s=1e9))
    now = after(core, history)
    permits = []
    for _ in range(in_flight):
        decision = core.reserve(HOST, now=(now := core.ready_at(HOST, now=now)))
        if not isinstance(decision, Grant):
            break
        permits.append(decision.permit)
        if core.ready_at(HOST, now=now) > now + HOUR_S:  # no more may be in flight
            break

    now += HOUR_S
    for permit in permits:
        core.report(permit, Response(error="timeout", latency_s=HOUR_S), now=now)
    granted = sum(isinstance(core.reserve(HOST, now=now), Grant) for _ in range(20))

    assert granted <= 1


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_waiting_tasks_leave_one_by_one_after_a_sleep(strategy: str) -> None:
    """Twenty tasks wait while the machine sleeps for an hour: they start one delay apart."""
    clock = FakeClock()
    politeness = AsyncPoliteness(Settings(strategy=strategy, delay_s=1.0, seed=1), clock=clock)
    started: list[float] = []

    async def visit() -> None:
        async with politeness.slot(HOST) as slot:
            started.append(clock.now())
            slot.report(status=200)

    tasks = [asyncio.create_task(visit()) for _ in range(21)]
    await clock.settle()
    clock.block(HOUR_S)
    clock.step_wall(-HOUR_S)
    await clock.run(*tasks)

    assert started[:2] == [0.0, HOUR_S]
    assert min(later - earlier for earlier, later in pairwise(started)) >= 1.0 - ROUNDING


def test_record_from_the_future_is_trusted_no_more_than_a_new_one() -> None:
    """After the wall clock was set back, what was learned counts as learned just now."""
    lesson = Lesson(delay_s=0.25, is_proven=True)
    gaps = []
    for updated_at in (1000.0, 1000.0 + 30 * 24 * HOUR_S):
        core = Politeness(Settings(seed=1))
        record = Remembered(host=HOST, lesson=lesson, updated_at=updated_at)
        core.recall(record, now=0.0, wall=1000.0)
        host = core.host(HOST)
        assert host is not None
        gaps.append(host.delay_s)

    assert gaps[0] == gaps[1]


def test_contact_in_the_past_does_not_shorten_the_delay() -> None:
    """A report of an earlier start, from a clock that lags, never lets a request go sooner."""
    core = Politeness(Settings(strategy="fixed", delay_s=10.0))
    core.contacted(HOST, now=100.0)

    core.contacted(HOST, now=50.0)

    assert core.ready_at(HOST, now=100.0) == 110.0
