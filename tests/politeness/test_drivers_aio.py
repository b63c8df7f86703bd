"""Claims about waiting in asyncio, with a clock that only the test moves."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mannerly.politeness import (
    CircuitOpen,
    HostUnavailable,
    Outcome,
    PermitError,
    PolitenessError,
    Reason,
    Refuse,
    Response,
    Retry,
    Settings,
    Wait,
)
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.slots import Slot
from mannerly.politeness.drivers.waiters import Waiting
from mannerly.politeness.testing import FakeClock, ScriptedServer, retry_after

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mannerly.politeness.drivers.waiters import DriverEvent

URL = "https://example.com/page"
ONE_A_SECOND = Settings(strategy="fixed", delay_s=1.0)
ONE_AT_A_TIME = Settings(strategy="fixed", delay_s=1.0, max_concurrency=1)
ROUNDING = 1e-9  # after a random jitter, x + 1.0 - x is not always 1.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def polite(clock: FakeClock, settings: Settings = ONE_A_SECOND) -> AsyncPoliteness:
    return AsyncPoliteness(settings, clock=clock)


async def visit(politeness: AsyncPoliteness, server: ScriptedServer, clock: FakeClock) -> Slot:
    """One whole request, by the book."""
    async with politeness.slot(URL, wait_when_open=True) as slot:
        response = server.answer(clock.now())
        await clock.sleep(response.latency_s)
        slot.report(response)
    return slot


@asynccontextmanager
async def occupied(politeness: AsyncPoliteness) -> AsyncIterator[None]:
    """Somebody else's request is under way to the same host."""
    async with politeness.slot(URL) as slot:
        yield
        slot.report(status=200)


async def test_slots_are_spaced_by_the_delay(clock: FakeClock) -> None:
    """Three callers at once start one delay apart, and know how long they waited."""
    politeness, server = polite(clock), ScriptedServer(200)
    tasks = [asyncio.create_task(visit(politeness, server, clock)) for _ in range(3)]

    await clock.run(*tasks)

    assert server.starts == [0.0, 1.0, 2.0]
    assert [task.result().waited_s for task in tasks] == [0.0, 1.0, 2.0]


async def test_hosts_do_not_wait_for_each_other(clock: FakeClock) -> None:
    """A hundred hosts start at the same instant."""
    politeness = polite(clock)

    async def start(host: str) -> float:
        async with politeness.slot(host) as slot:
            slot.report(status=200)
            return clock.now()

    starts = await asyncio.gather(*(start(f"host-{number}.example") for number in range(100)))

    assert starts == [0.0] * 100


async def test_five_hundred_waiters_go_in_order(clock: FakeClock) -> None:
    """Five hundred tasks on one host are served in order, one alarm at a time."""
    politeness = polite(clock)
    served: list[int] = []

    async def work(number: int) -> None:
        async with politeness.slot(URL) as slot:
            served.append(number)
            slot.report(status=200)

    tasks = [asyncio.create_task(work(number)) for number in range(500)]
    await clock.settle()
    alarms = clock.sleepers
    await clock.run(*tasks)

    assert alarms == 1
    assert served == list(range(500))
    assert clock.now() == 499.0


async def test_cancelled_tasks_lose_no_slot(clock: FakeClock) -> None:
    """With a third cancelled at random moments, the others use every slot, in order."""
    politeness, rng = polite(clock), random.Random(5)
    served: list[tuple[float, int]] = []

    async def work(number: int) -> None:
        async with politeness.slot(URL) as slot:
            served.append((clock.now(), number))
            slot.report(status=200)

    tasks = [asyncio.create_task(work(number)) for number in range(300)]
    await clock.settle()
    for task in rng.sample(tasks[1:], 90):
        task.cancel()
    await clock.run(*tasks)

    assert [number for _, number in served] == sorted(number for _, number in served)
    assert [at for at, _ in served] == [float(second) for second in range(210)]
    host = politeness.host(URL)
    assert host is not None
    assert (host.waiters, host.in_flight) == (0, 0)


async def test_grant_and_cancel_in_one_tick_passes_the_slot_on(clock: FakeClock) -> None:
    """A task cancelled after its grant but before it ran hands the slot on without delay."""
    politeness, server = polite(clock), ScriptedServer(200, latency_s=0.0)
    await visit(politeness, server, clock)
    first = asyncio.create_task(visit(politeness, server, clock))
    second = asyncio.create_task(visit(politeness, server, clock))
    await clock.settle()

    clock.advance(1.0)
    first.cancel()
    await clock.settle()

    assert first.cancelled()
    assert second.done()
    assert server.starts == [0.0, 1.0]


async def test_cancel_and_grant_in_one_tick_passes_the_slot_on(clock: FakeClock) -> None:
    """The other way round, the task that was cancelled first does not swallow the grant."""
    politeness, server = polite(clock), ScriptedServer(200, latency_s=0.0)
    await visit(politeness, server, clock)
    first = asyncio.create_task(visit(politeness, server, clock))
    second = asyncio.create_task(visit(politeness, server, clock))
    await clock.settle()

    first.cancel()
    clock.advance(1.0)
    await clock.settle()

    assert second.done()
    assert server.starts == [0.0, 1.0]


async def test_report_lets_the_next_one_go(clock: FakeClock) -> None:
    """Where one request at a time is allowed, the next starts when the answer comes."""
    politeness = polite(clock, ONE_AT_A_TIME)
    server = ScriptedServer(200, latency_s=5.0)
    tasks = [asyncio.create_task(visit(politeness, server, clock)) for _ in range(3)]

    await clock.run(*tasks)

    assert server.starts == [0.0, 5.0, 10.0]


async def test_robots_moves_those_who_wait(clock: FakeClock) -> None:
    """A Crawl-delay that becomes known while callers wait holds for them, too."""
    politeness, server = polite(clock), ScriptedServer(200, latency_s=0.0)
    tasks = [asyncio.create_task(visit(politeness, server, clock)) for _ in range(3)]
    await clock.settle()

    politeness.robots(URL, 5.0)
    await clock.run(*tasks)

    assert server.starts == [0.0, 5.0, 10.0]


async def test_retry_after_holds_everybody_back(clock: FakeClock) -> None:
    """One caller's 429 is obeyed by all who wait."""
    politeness = polite(clock, ONE_AT_A_TIME)
    server = ScriptedServer(Response(429, 0.1, retry_after(30)), 200)
    tasks = [asyncio.create_task(visit(politeness, server, clock)) for _ in range(3)]

    await clock.run(*tasks)

    assert server.starts[1] >= 30.1
    assert min(server.gaps_s) >= 1.0 - ROUNDING


async def test_latency_counts_from_entering_or_from_sent(clock: FakeClock) -> None:
    """The slot measures the answer's latency; preparation before `sent` is not the server's."""
    politeness = polite(clock)
    async with politeness.slot(URL) as slot:
        slot.report(status=200)

    async with asyncio.TaskGroup() as group:
        work = group.create_task(prepare_then_send(politeness, clock))
        await clock.run(work)

    host = politeness.host(URL)
    assert host is not None
    assert host.latency_s == pytest.approx(0.25)


async def prepare_then_send(politeness: AsyncPoliteness, clock: FakeClock) -> None:
    async with politeness.slot(URL) as slot:
        await clock.sleep(3.0)
        slot.sent()
        await clock.sleep(0.25)
        slot.report(status=200)


@pytest.mark.parametrize(
    ("error", "failures"),
    [(TimeoutError(), 1), (ConnectionRefusedError(), 1), (ConnectionResetError(), 1)],
)
async def test_network_errors_are_reported(
    clock: FakeClock, error: Exception, failures: int
) -> None:
    """A time-out or a broken connection counts as the host's failure, and is passed on."""
    politeness = polite(clock)

    with pytest.raises(type(error)):
        async with politeness.slot(URL):
            raise error

    host = politeness.host(URL)
    assert host is not None
    assert (host.failures, host.in_flight) == (failures, 0)


async def test_unknown_error_keeps_the_spacing_and_teaches_nothing(clock: FakeClock) -> None:
    """The request may have been sent, so the next one waits; the host is not to blame."""
    politeness = polite(clock)

    with pytest.raises(KeyError):
        async with politeness.slot(URL):
            raise KeyError("a bug in the caller's parser")

    host = politeness.host(URL)
    assert host is not None
    assert (host.failures, host.in_flight) == (0, 0)
    assert politeness.ready_at(URL) == 1.0


@pytest.mark.parametrize(("is_sent", "ready_at"), [(False, 0.5), (True, 1.0)])
async def test_cancelled_block_gives_the_slot_back_unless_sent(
    clock: FakeClock, is_sent: bool, ready_at: float
) -> None:
    """Cancelled before sending, the slot is free again; after `sent`, the spacing holds."""
    politeness = polite(clock)

    async def work() -> None:
        async with politeness.slot(URL) as slot:
            if is_sent:
                slot.sent()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await clock.settle()
    clock.advance(0.5)
    task.cancel()
    await clock.settle()

    assert task.cancelled()
    assert politeness.ready_at(URL) == ready_at
    assert politeness.snapshot().cancelled == 1


async def test_leaving_without_a_report_warns_and_keeps_the_spacing(clock: FakeClock) -> None:
    """A forgotten report is a mistake that is pointed out; the request counts as sent."""
    politeness = polite(clock)

    with pytest.warns(RuntimeWarning, match="left without a report") as caught:
        async with politeness.slot(URL):
            pass

    assert caught[0].category is RuntimeWarning
    assert politeness.ready_at(URL) == 1.0
    assert politeness.snapshot().in_flight == 0


async def test_report_needs_something_to_report(clock: FakeClock) -> None:
    """A report without status, error or response is refused, and a second one, too."""
    politeness = polite(clock)

    async with politeness.slot(URL) as slot:
        with pytest.raises(TypeError, match="needs a Response"):
            slot.report()
        assert slot.report(status=200, headers={}, nbytes=10) is Outcome.OK
        with pytest.raises(PermitError):
            slot.report(status=200)


async def test_deadline_raises_timeout_error(clock: FakeClock) -> None:
    """A caller with a deadline does not wait longer, and callers behind it lose nothing."""
    politeness, server = polite(clock), ScriptedServer(200, latency_s=0.0)
    await visit(politeness, server, clock)

    async def hurried() -> None:
        async with politeness.slot(URL, deadline_s=0.5):
            pytest.fail("there was no slot in time")

    task = asyncio.create_task(hurried())
    patient = asyncio.create_task(visit(politeness, server, clock))
    await clock.run(task, patient)

    with pytest.raises(TimeoutError, match=r"no slot for example\.com in 0\.5 s: pace"):
        task.result()
    assert server.starts == [0.0, 1.0]


async def test_deadline_must_be_a_time(clock: FakeClock) -> None:
    """A negative deadline, or one that is not a number, is the caller's mistake."""
    politeness = polite(clock)

    for nonsense in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="deadline_s must be at least 0"):
            await politeness.slot(URL, deadline_s=nonsense).__aenter__()


async def test_timeout_around_the_slot_leaves_the_line(clock: FakeClock) -> None:
    """A task's own timeout ends the wait like any cancellation; the slot stays for the next."""
    politeness, server = polite(clock), ScriptedServer(200, latency_s=0.0)
    await visit(politeness, server, clock)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await visit(politeness, server, clock)

    assert politeness.snapshot().top[0].waiters == 0
    assert clock.sleepers == 0
    assert politeness.ready_at(URL) == 1.0


async def broken(clock: FakeClock) -> AsyncPoliteness:
    """A politeness whose host has failed five times in a row."""
    politeness = AsyncPoliteness(Settings(strategy="fixed", delay_s=1.0, seed=1), clock=clock)
    for _ in range(5):
        slot = politeness.try_slot(URL)
        assert isinstance(slot, Slot)
        slot.report(status=503)
        clock.advance(1.0)
    return politeness


async def test_open_breaker_raises_circuit_open(clock: FakeClock) -> None:
    """Callers who do not choose to wait are told when the breaker lets a probe through."""
    politeness = await broken(clock)

    with pytest.raises(CircuitOpen) as caught:
        async with politeness.slot(URL):
            pytest.fail("the breaker is open")

    assert caught.value.reason is Reason.BREAKER_OPEN
    assert caught.value.until == politeness.ready_at(URL)


async def test_wait_when_open_becomes_the_probe(clock: FakeClock) -> None:
    """Callers who do wait go one after another once the breaker half-opens, and close it."""
    politeness, server = await broken(clock), ScriptedServer(200)
    reopens_at = politeness.ready_at(URL)
    tasks = [asyncio.create_task(visit(politeness, server, clock)) for _ in range(4)]

    await clock.run(*tasks)

    assert server.starts[0] == reopens_at
    assert min(server.gaps_s) >= 1.0 - ROUNDING
    assert politeness.snapshot().open == politeness.snapshot().half_open == 0


async def test_retired_host_sends_waiters_home(clock: FakeClock) -> None:
    """Those who wait for a host that is retired learn it at once; reviving lets callers in."""
    politeness, server = polite(clock), ScriptedServer(200, latency_s=0.0)
    await visit(politeness, server, clock)
    waiting = asyncio.create_task(visit(politeness, server, clock))
    await clock.settle()

    politeness.retire(URL, "the owner asked us to")
    await clock.settle()

    with pytest.raises(HostUnavailable, match="retired"):
        waiting.result()
    politeness.revive(URL)
    clock.advance(1.0)
    await visit(politeness, server, clock)
    assert server.starts == [0.0, 1.0]


async def test_paused_host_refuses(clock: FakeClock) -> None:
    """A pause refuses without an end."""
    politeness = polite(clock)

    politeness.pause(URL)

    assert politeness.try_slot(URL) == Refuse(None, Reason.PAUSED)


async def test_try_slot_never_waits_and_never_overtakes(clock: FakeClock) -> None:
    """Without waiting there is a slot, or the instant to ask again; a line goes first."""
    politeness, server = polite(clock), ScriptedServer(200, latency_s=0.0)

    slot = politeness.try_slot(URL)
    assert isinstance(slot, Slot)
    with slot:
        slot.report(status=200)
    waiting = asyncio.create_task(visit(politeness, server, clock))
    await clock.settle()

    assert politeness.try_slot(URL) == Wait(1.0, Reason.PACE)
    await clock.run(waiting)
    assert server.starts == [1.0]


async def test_slot_says_whether_to_retry(clock: FakeClock) -> None:
    """After a report, the slot answers with an instant to try again, and it is counted."""
    politeness = polite(clock)

    async with politeness.slot(URL) as slot:
        with pytest.raises(TypeError, match="before retry"):
            slot.retry()
        slot.report(status=503)
        decision = slot.retry(attempt=1)

    assert isinstance(decision, Retry)
    assert decision.due >= politeness.ready_at(URL)
    assert politeness.snapshot().retries == 1


async def test_group_shares_one_line(clock: FakeClock) -> None:
    """With a budget per site, callers of different hosts stand in the same line."""
    politeness = polite(clock, Settings(strategy="fixed", delay_s=1.0, group_by="site"))
    starts: list[tuple[float, str]] = []

    async def start(host: str) -> None:
        async with politeness.slot(host) as slot:
            starts.append((clock.now(), host))
            slot.report(status=200)

    hosts = ["a.example.com", "b.example.com", "c.example.com", "a.example.com"]
    tasks = [asyncio.create_task(start(host)) for host in hosts]
    await clock.settle()
    alarms = clock.sleepers
    await clock.run(*tasks)

    assert alarms == 1
    assert starts == list(zip([0.0, 1.0, 2.0, 3.0], hosts, strict=True))


async def test_switched_off_everything_goes_at_once(clock: FakeClock) -> None:
    """`enabled=False` grants at once, and the bookkeeping goes on."""
    politeness = polite(clock, Settings(strategy="fixed", delay_s=1.0, enabled=False))
    server = ScriptedServer(200, latency_s=0.0)

    for _ in range(10):
        await visit(politeness, server, clock)

    assert server.starts == [0.0] * 10
    assert politeness.snapshot().requests == 10


async def test_each_wait_is_announced(clock: FakeClock) -> None:
    """A caller that has to wait is an event, with the reason and the time."""
    heard: list[DriverEvent] = []
    politeness = AsyncPoliteness(ONE_A_SECOND, clock=clock, on_event=heard.append)
    server = ScriptedServer(200, latency_s=0.0)
    politeness.robots(URL, 5.0)
    tasks = [asyncio.create_task(visit(politeness, server, clock)) for _ in range(3)]

    await clock.run(*tasks)

    assert [event for event in heard if isinstance(event, Waiting)] == [
        Waiting("example.com", 0.0, 5.0, 0, Reason.CRAWL_DELAY),
        Waiting("example.com", 0.0, 5.0, 1, Reason.CRAWL_DELAY),
    ]


async def test_broken_listener_does_not_stop_the_traffic(clock: FakeClock) -> None:
    """An error in `on_event` becomes a warning; the callers are served all the same."""

    def broken_listener(event: DriverEvent) -> None:
        raise OSError("the log's disk is full")

    politeness = AsyncPoliteness(ONE_A_SECOND, clock=clock, on_event=broken_listener)
    server = ScriptedServer(200, latency_s=0.0)

    tasks = [asyncio.create_task(visit(politeness, server, clock)) for _ in range(2)]
    with pytest.warns(RuntimeWarning, match="disk is full"):
        await clock.run(*tasks)

    assert server.starts == [0.0, 1.0]


async def test_closing_sends_everybody_home(clock: FakeClock) -> None:
    """After `aclose` no caller waits, no alarm is set and new callers are refused."""
    async with AsyncPoliteness(ONE_AT_A_TIME, clock=clock) as politeness:
        async with occupied(politeness):
            waiting = asyncio.create_task(visit(politeness, ScriptedServer(200), clock))
            await clock.settle()
            await politeness.aclose()
            await clock.settle()

        with pytest.raises(PolitenessError, match="closed while"):
            waiting.result()
        with pytest.raises(PolitenessError, match="is closed"):
            politeness.try_slot(URL)

    assert clock.sleepers == 0


async def test_repr_tells_who_waits(clock: FakeClock) -> None:
    """The debugging string says how many hosts, requests and waiters there are."""
    politeness = polite(clock)

    assert repr(politeness) == ("<AsyncPoliteness <Politeness fixed, 0 hosts>, 0 waiting>")


class Story:
    """Tasks that come, wait, send and are cancelled at the instants that a plan names."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.politeness = AsyncPoliteness(
            Settings(strategy="fixed", delay_s=1.0, max_concurrency=2), clock=self.clock
        )
        self.sent_at: list[float] = []
        self.arrived: list[int] = []
        self.served: list[int] = []

    async def caller(self, number: int, arrives_s: float, holds_s: float) -> None:
        await self.clock.sleep(arrives_s)
        self.arrived.append(number)
        async with self.politeness.slot(URL) as slot:
            self.served.append(number)
            slot.sent()
            self.sent_at.append(self.clock.now())
            await self.clock.sleep(holds_s)
            slot.report(status=200)

    async def canceller(self, task: asyncio.Task[None], after_s: float) -> None:
        await self.clock.sleep(after_s)
        task.cancel()

    async def play(self, plan: list[tuple[float, float, float | None]]) -> None:
        tasks = []
        for number, (arrives_s, holds_s, cancel_s) in enumerate(plan):
            task = asyncio.create_task(self.caller(number, arrives_s, holds_s))
            tasks.append(task)
            if cancel_s is not None:
                tasks.append(asyncio.create_task(self.canceller(task, cancel_s)))
        await self.clock.run(*tasks)


# Eighths of a second are exact in floats, and make callers meet in the same instant often.
EIGHTHS = st.integers(0, 80).map(lambda eighths: eighths / 8.0)


@hypothesis_settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(EIGHTHS, EIGHTHS, st.none() | EIGHTHS), max_size=12))
def test_any_story_of_callers_ends_well(plan: list[tuple[float, float, float | None]]) -> None:
    """Whoever comes and goes whenever: order, spacing and limit hold, and nothing leaks."""
    story = Story()

    asyncio.run(story.play(plan))

    host = story.politeness.host(URL)
    order = [number for number in story.arrived if number in story.served]
    assert story.served == order
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(story.sent_at))
    assert host is None or (host.waiters, host.in_flight) == (0, 0)
    assert story.clock.sleepers == 0
    assert {number for number, (_, _, cancel_s) in enumerate(plan) if cancel_s is None} <= {
        *story.served
    }


async def test_real_loop_keeps_the_spacing() -> None:
    """On the machine's own clock and the loop's own timers the spacing holds as well."""
    settings = Settings(strategy="fixed", delay_s=0.01, max_rate="unlimited")

    async with AsyncPoliteness(settings) as politeness:
        began = politeness.now()
        await asyncio.gather(*(report_at_once(politeness) for _ in range(5)))
        host = politeness.host(URL)

    assert host is not None
    assert host.requests == 5
    assert host.not_before - began >= 5 * 0.01


async def report_at_once(politeness: AsyncPoliteness) -> None:
    async with politeness.slot(URL) as slot:
        slot.report(status=200)


def test_object_belongs_to_the_loop_that_uses_it() -> None:
    """In a second loop it says so at once: its callers would wait for ever."""
    politeness = AsyncPoliteness(ONE_A_SECOND)

    async def take() -> None:
        async with politeness.slot(URL) as slot:
            slot.report(status=200)

    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        first.run_until_complete(take())
        with pytest.raises(RuntimeError, match="another event loop"):
            second.run_until_complete(take())
    finally:
        first.close()
        second.close()


def test_object_can_go_on_when_its_loop_is_closed() -> None:
    """A program may call `asyncio.run` for each of its steps."""
    politeness = AsyncPoliteness(Settings(strategy="fixed", delay_s=0.001))

    async def take() -> str:
        async with politeness.slot(URL) as slot:
            slot.report(status=200)
        return "done"

    assert [asyncio.run(take()) for _ in range(2)] == ["done", "done"]
