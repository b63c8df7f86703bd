"""Snapshots: what was answered, how long callers waited, what a host could take now."""

from __future__ import annotations

import asyncio

import pytest

from mannerly.politeness import Grant, Politeness, Response, Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.testing import FakeClock

HOST = "example.com"


def answered(core: Politeness, *answers: Response, now: float = 0.0) -> float:
    """Send a request for each answer, as early as it may go; return the instant of the last."""
    for answer in answers:
        now = max(now, core.ready_at(HOST, now=now))
        decision = core.reserve(HOST, now=now)
        assert isinstance(decision, Grant)
        core.report(decision.permit, answer, now=now)
    return now


def test_answers_are_counted_by_what_they_were() -> None:
    """5xx, 429 and no answer at all, for all hosts and for each; a 404 is none of them."""
    core = Politeness(
        Settings(seed=1, breaker_consecutive=100, breaker_min_samples=100, breaker_within_s=3600.0)
    )
    errors = [Response(error="timeout", latency_s=1.0)] * 2

    answered(core, *[Response(500)] * 3, Response(429), Response(404), *errors)

    snapshot, host = core.snapshot(), core.host(HOST)
    assert host is not None
    for counts in (snapshot, host):
        assert (counts.server_errors, counts.refusals, counts.network_errors) == (3, 1, 2)
    assert snapshot.throttled == 1
    assert host.consecutive_failures == 2


@pytest.mark.parametrize(
    ("answers", "streak"),
    [
        ([], 0),
        ([200], 1),
        ([200] * 5, 5),
        ([200] * 5 + [404], 5),
        ([200] * 5 + [404, 200], 6),
        ([200] * 5 + [429], 0),
        ([200] * 5 + [500, 200, 200], 2),
    ],
)
def test_success_streak_counts_from_the_latest_refusal(answers: list[int], streak: int) -> None:
    """A page that is missing neither counts nor ends it."""
    core = Politeness(Settings(seed=1))
    core.robots(HOST, crawl_delay_s=None, now=0.0)

    answered(core, *map(Response, answers))

    host = core.host(HOST)
    assert host is not None
    assert host.success_streak == streak


def test_tokens_are_the_requests_that_could_start_at_once() -> None:
    """Of a bucket of four: all, then fewer, then a part of the next; without the time, unknown."""
    bucket = Settings(
        strategy="aimd", aimd_burst=4, min_delay_s=0, max_rate="unlimited", start_delay_s=1.0
    )
    core = Politeness(bucket)
    tokens = []
    for _ in range(4):
        assert isinstance(core.reserve(HOST, now=10.0), Grant)
        seen = core.host(HOST, now=10.0)
        assert seen is not None
        tokens.append(seen.tokens)
    later = core.snapshot(now=10.5).top[0]
    unknown = core.host(HOST)
    assert unknown is not None

    assert tokens == [3.0, 2.0, 1.0, 0.0]
    assert later.tokens == 0.5
    assert unknown.tokens is None


async def test_time_that_callers_wait_is_added_up() -> None:
    """Three callers at one request a second: one goes at once, two wait one and two seconds."""
    clock = FakeClock()
    politeness = AsyncPoliteness(Settings(seed=1, strategy="fixed", delay_s=1.0), clock=clock)

    waited: list[float] = []

    async def one() -> None:
        async with politeness.slot(HOST) as slot:
            slot.report(status=200)
            waited.append(slot.waited_s)

    async def all_three() -> None:
        await asyncio.gather(*(one() for _ in range(3)))

    await clock.run(asyncio.create_task(all_three()))
    snapshot = politeness.snapshot()

    assert sorted(waited) == [0.0, 1.0, 2.0]
    assert snapshot.blocked_s == 3.0
    assert snapshot.throttled_waits == 2
