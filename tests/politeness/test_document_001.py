"""Document 001's limiter transitions, on the `linear` strategy that follows it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mannerly.politeness import Grant, Politeness, Response, Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.observe import Counters, tee
from mannerly.politeness.testing import FakeClock, ScriptedServer, Transcript

if TYPE_CHECKING:
    from mannerly.politeness import HostSnapshot

HOST = "example.com"
LINEAR = Settings(strategy="linear", seed=1)
OK, REFUSED = Response(200, 0.05), Response(429, 0.05)


class Limiter:
    """One request after the other, each as early as the limiter allows."""

    def __init__(self, settings: Settings = LINEAR) -> None:
        self.log = Transcript()
        self.core = Politeness(settings, on_event=self.log)
        self.now = 0.0

    def answer(self, response: Response, times: int = 1) -> HostSnapshot:
        for _ in range(times):
            self.now = self.core.ready_at(HOST, now=self.now)
            decision = self.core.reserve(HOST, now=self.now)
            assert isinstance(decision, Grant)
            self.now += response.latency_s
            self.core.report(decision.permit, response, now=self.now)
        host = self.core.host(HOST)
        assert host is not None
        return host


def test_base_delay_is_half_a_second() -> None:
    """A host that never refuses is asked twice a second."""
    host = Limiter().answer(OK, times=30)

    assert host.delay_s == 0.5


def test_base_delay_can_be_set() -> None:
    """A host that never refuses is asked once in the base delay that was set."""
    host = Limiter(replace(LINEAR, linear_base_delay_s=2.0)).answer(OK, times=30)

    assert host.delay_s == 2.0


def test_each_429_adds_a_second() -> None:
    """A streak of refusals raises the delay linearly, a second each."""
    limiter = Limiter()

    delays = [limiter.answer(REFUSED).delay_s for _ in range(4)]

    assert delays == [1.5, 2.5, 3.5, 4.5]
    assert limiter.core.snapshot().top[0].error_streak == 4


def test_delay_is_capped_at_sixty_seconds() -> None:
    """However long the streak, the delay stops at a minute."""
    host = Limiter(replace(LINEAR, give_up_after_s=1e6)).answer(REFUSED, times=100)

    assert host.delay_s == 60.0


def test_one_burst_of_429s_is_one_episode() -> None:
    """Eight refusals of requests that were under way together add one second, not eight."""
    core = Politeness(LINEAR)
    permits = []
    for number in range(8):
        decision = core.reserve(HOST, now=0.5 * number)
        assert isinstance(decision, Grant)
        permits.append(decision.permit)

    for permit in permits:
        core.report(permit, REFUSED, now=5.0)

    host = core.host(HOST)
    assert host is not None
    assert host.delay_s == 1.5


def test_robots_delay_is_respected_when_larger() -> None:
    """The delay in force is the larger of the learned and the robots.txt one."""
    limiter = Limiter()
    limiter.core.robots(HOST, crawl_delay_s=5.0, now=0.0)

    from_robots = limiter.answer(REFUSED).delay_s
    learned = limiter.answer(REFUSED, times=5).delay_s

    assert from_robots == 5.0
    assert learned == 6.5


def test_twenty_successes_probe_a_second_less() -> None:
    """Nineteen successes change nothing; the twentieth takes a second off."""
    limiter = Limiter()
    limiter.answer(REFUSED, times=3)

    before = limiter.answer(OK, times=19).delay_s
    after = limiter.answer(OK).delay_s

    assert before == 3.5
    assert after == 2.5
    assert limiter.log.take().split()[-1] == "P2.5"


def test_probe_stops_at_the_base_delay() -> None:
    """A delay never goes below the base, however many successes there are."""
    limiter = Limiter()
    limiter.answer(REFUSED)

    host = limiter.answer(OK, times=100)

    assert host.delay_s == 0.5


def test_failed_probe_reverts_and_records_the_floor() -> None:
    """A 429 right after a probe brings the old delay back, and it becomes the floor."""
    limiter = Limiter()
    limiter.answer(REFUSED, times=3)
    limiter.answer(OK, times=20)

    host = limiter.answer(REFUSED)

    assert host.delay_s == 3.5
    assert host.delay_floor_s == 3.5


def test_floor_is_not_probed_again() -> None:
    """Sixty more successes do not go below what is known to fail."""
    limiter = Limiter()
    limiter.answer(REFUSED, times=3)
    limiter.answer(OK, times=20)
    limiter.answer(REFUSED)

    host = limiter.answer(OK, times=60)

    assert host.delay_s == 3.5


def test_success_ends_the_streak() -> None:
    """One success sets the error streak back to zero and is remembered."""
    limiter = Limiter()
    limiter.answer(REFUSED, times=3)

    host = limiter.answer(OK)

    assert host.error_streak == 0
    assert host.last_success == limiter.now


@pytest.mark.parametrize(
    ("refusals", "concurrency"), [(0, 8), (4, 8), (5, 7), (10, 6), (34, 2), (35, 1), (60, 1)]
)
def test_concurrency_falls_by_one_per_five_seconds(refusals: int, concurrency: int) -> None:
    """Every five seconds over the base cost one request in flight, down to one."""
    limiter = Limiter()
    limiter.answer(OK)

    host = limiter.answer(REFUSED, times=refusals) if refusals else limiter.answer(OK)

    assert host.concurrency == concurrency


def test_concurrency_is_restored() -> None:
    """As the delay comes down, the requests in flight come back."""
    limiter = Limiter()
    limiter.answer(REFUSED, times=5)

    host = limiter.answer(OK, times=20)

    assert host.concurrency == 8
    assert limiter.log.take().split()[-2:] == ["P4.5", "C8"]


async def test_crawler_against_429s_slows_down_and_thins_out() -> None:
    """Against a server that refuses, a crawler's delay goes up and its concurrency down."""
    clock, counters, log = FakeClock(), Counters(), Transcript()
    politeness = AsyncPoliteness(LINEAR, clock=clock, on_event=tee(counters, log))
    server = ScriptedServer(*[REFUSED] * 12, 200)

    async def crawl(pages: int) -> None:
        for _ in range(pages):
            async with politeness.slot(HOST) as slot:
                response = server.answer(clock.now())
                await clock.sleep(response.latency_s)
                slot.report(response)

    await clock.run(*[asyncio.create_task(crawl(4)) for _ in range(4)])

    host = politeness.host(HOST)
    assert host is not None
    assert host.delay_s == 12.5
    assert host.concurrency == 6
    assert counters["throttles"] == 12
    assert counters["concurrency_overrides"] == 2
    assert "S5.5 C7" in str(log)
    assert server.gaps_s == sorted(server.gaps_s[:12]) + server.gaps_s[12:]
