"""Claims about programs that block: a stalled event loop, a busy interpreter, a nested slot."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

import pytest

from mannerly.politeness import PolitenessError, Response, Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.observe import Counters, log_events, tee
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.drivers.waiters import StartedLate, Waiting
from mannerly.politeness.testing import FakeClock, retry_after

if TYPE_CHECKING:
    from mannerly.politeness.drivers.waiters import DriverEvent

FAST, SLOW = "https://fast.example/", "https://slow.example/"
ONE_A_SECOND = Settings(strategy="fixed", delay_s=1.0)
ONE_AT_A_TIME = Settings(strategy="fixed", delay_s=1.0, max_concurrency=1)
TWO_AT_A_TIME = Settings(strategy="fixed", delay_s=1.0, max_concurrency=2)
ROUNDING = 1e-9  # after a random jitter, x + 1.0 - x is not always 1.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class Callers:
    """Tasks that start requests, in a slot each, and note when they did."""

    def __init__(self, clock: FakeClock, *, block_s: float = 0.0) -> None:
        self.clock = clock
        self.events: list[DriverEvent] = []
        self.politeness = AsyncPoliteness(ONE_A_SECOND, clock=clock, on_event=self.events.append)
        self.block_s = block_s
        self.starts: dict[str, list[float]] = {FAST: [], SLOW: []}

    async def call(self, url: str) -> None:
        async with self.politeness.slot(url) as slot:
            self.starts[url].append(self.clock.now())
            if url == SLOW:
                self.clock.block(self.block_s)  # requests.get, time.sleep, a large file
            slot.report(status=200)

    def late(self) -> list[StartedLate]:
        return [event for event in self.events if isinstance(event, StartedLate)]


async def test_blocking_call_in_the_same_turn_keeps_the_spacing(clock: FakeClock) -> None:
    """Two hosts' callers are woken in one turn and the first blocks: the second's gap is kept."""
    callers = Callers(clock)
    await callers.call(SLOW)
    await callers.call(FAST)
    callers.block_s = 1.5

    urls = (SLOW, FAST, FAST, FAST)
    await clock.run(*[asyncio.create_task(callers.call(url)) for url in urls])

    assert callers.starts[FAST] == [0.0, 2.5, 3.5, 4.5]


async def test_report_during_a_stall_admits_no_second_caller(clock: FakeClock) -> None:
    """While a called task has not gone on, nobody else starts, whatever is reported meanwhile."""
    callers = Callers(clock)
    first = callers.politeness.try_slot(FAST)
    tasks = [asyncio.create_task(callers.call(FAST)) for _ in range(3)]
    await clock.settle()

    clock.advance(1.0)  # the first task is called, and the loop is blocked
    clock.block(5.0)
    first.report(status=200)  # type: ignore[union-attr]
    await clock.run(*tasks)

    assert callers.starts[FAST] == [6.0, 7.0, 8.0]


async def test_retry_after_between_call_and_start_is_obeyed(clock: FakeClock) -> None:
    """A task that was called, but has not gone on when a 429 arrives, waits with the others."""
    callers = Callers(clock)
    first = callers.politeness.try_slot(FAST)
    tasks = [asyncio.create_task(callers.call(FAST)) for _ in range(2)]
    await clock.settle()

    clock.advance(1.0)
    first.report(Response(429, 0.1, retry_after(30)))  # type: ignore[union-attr]
    await clock.run(*tasks)

    assert min(callers.starts[FAST]) >= 31.0
    assert callers.starts[FAST][1] - callers.starts[FAST][0] >= 1.0 - ROUNDING


async def test_stalled_loop_is_reported(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """A start that is more than a second late names its delay and the task before it."""
    callers, counters = Callers(clock), Counters()
    callers.politeness = AsyncPoliteness(
        ONE_A_SECOND,
        clock=clock,
        on_event=tee(callers.events.append, counters, log_events(logging.getLogger("crawl"))),
    )
    await callers.call(SLOW)
    await callers.call(FAST)
    callers.block_s = 1.5

    blocker = asyncio.create_task(callers.call(SLOW), name="parse-it-all")
    await clock.run(blocker, *[asyncio.create_task(callers.call(FAST)) for _ in range(2)])

    assert callers.late() == [StartedLate("fast.example", 2.5, 1.5, "parse-it-all")]
    assert counters["late_starts"] == 1
    assert "fast.example: a request started 1.5 s late" in caplog.text
    assert "perhaps by parse-it-all" in caplog.text


async def test_short_delay_of_a_task_is_not_reported(clock: FakeClock) -> None:
    """Half a second late is an ordinary busy moment, and costs no event."""
    callers = Callers(clock)
    await callers.call(SLOW)
    await callers.call(FAST)
    callers.block_s = 0.5

    await clock.run(*[asyncio.create_task(callers.call(url)) for url in (SLOW, FAST, FAST)])

    assert callers.starts[FAST] == [0.0, 1.5, 2.5]
    assert callers.late() == []


async def test_slow_listener_is_named(clock: FakeClock) -> None:
    """A callback for events that takes more than a second is reported by its name."""

    def write_to_a_slow_disk(event: DriverEvent) -> None:
        clock.block(2.0)

    politeness = AsyncPoliteness(ONE_A_SECOND, clock=clock, on_event=write_to_a_slow_disk)
    with pytest.warns(RuntimeWarning, match=r"write_to_a_slow_disk took 2\.0 s"):
        async with politeness.slot(FAST) as slot:
            slot.report(status=429)


async def test_delay_counts_from_sent(clock: FakeClock) -> None:
    """What a caller does before its request leaves does not shorten the next delay."""
    politeness = AsyncPoliteness(ONE_A_SECOND, clock=clock)

    async with politeness.slot(FAST) as slot:
        clock.block(3.0)
        slot.sent()
        slot.report(status=200)

    assert politeness.ready_at(FAST) == 4.0


class SlowToWake(ThreadedPoliteness):
    """A driver whose threads go on a second and a half after they were called."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(ONE_A_SECOND, clock=clock, on_event=self.note)
        self.fake_clock = clock
        self.late: list[StartedLate] = []
        self.queued = threading.Event()

    def note(self, event: DriverEvent) -> None:
        if isinstance(event, StartedLate):
            self.late.append(event)
        elif isinstance(event, Waiting):
            self.queued.set()

    def _wake(self, signal: threading.Event) -> None:
        self.fake_clock.block(1.5)
        super()._wake(signal)


def test_thread_that_goes_on_late_keeps_the_spacing(clock: FakeClock) -> None:
    """With a busy interpreter, too, the delay counts from when the thread goes on."""
    politeness = SlowToWake(clock)
    first = politeness.try_slot(FAST)
    first.report(status=200)  # type: ignore[union-attr]
    worker = threading.Thread(target=report_at_once, args=[politeness], name="worker")
    worker.start()
    assert politeness.queued.wait(timeout=30)

    clock.advance_to_next()
    worker.join(timeout=30)

    assert politeness.ready_at(FAST) == 3.5
    assert politeness.late == [StartedLate("fast.example", 2.5, 1.5, "")]


def report_at_once(politeness: ThreadedPoliteness) -> None:
    with politeness.slot(FAST) as slot:
        slot.report(status=200)


WAITS_FOR_ITSELF = r"holds a slot of fast.example .* wait for itself"


async def test_nested_slot_of_one_task_is_an_error(clock: FakeClock) -> None:
    """With one request at a time, a slot inside a slot would never come: it raises at once."""
    politeness = AsyncPoliteness(ONE_AT_A_TIME, clock=clock)

    async def nested() -> None:
        async with politeness.slot(FAST):
            with pytest.raises(PolitenessError, match=WAITS_FOR_ITSELF):
                async with politeness.slot(FAST):
                    pass
            raise KeyError("as any program may")

    with pytest.raises(KeyError):
        await asyncio.create_task(nested(), name="follows-redirects")
    assert politeness.ready_at(FAST) == 1.0  # the outer slot ended as usual


def test_nested_slot_of_one_thread_is_an_error(clock: FakeClock) -> None:
    """The same for threads: the message names the thread, the host and what to do."""
    politeness = ThreadedPoliteness(ONE_AT_A_TIME, clock=clock)

    with politeness.slot(FAST) as outer:
        with (
            pytest.raises(PolitenessError, match=f"^MainThread {WAITS_FOR_ITSELF}"),
            politeness.slot(FAST),
        ):
            pass
        outer.report(status=200)


async def test_tasks_that_wait_for_each_other_get_an_error(clock: FakeClock) -> None:
    """Two tasks hold both slots and ask for a third: the last one gives up, the first goes on."""
    politeness = AsyncPoliteness(TWO_AT_A_TIME, clock=clock)
    ended: list[str] = []

    async def redirected(name: str) -> None:
        async with politeness.slot(FAST) as slot:
            await clock.sleep(3.0)
            try:
                async with politeness.slot(FAST) as second:
                    second.report(status=200)
                ended.append(f"{name} sent two")
            except PolitenessError:
                ended.append(f"{name} gave up")
            slot.report(status=302)

    await clock.run(*[asyncio.create_task(redirected(name)) for name in ("a", "b")])

    assert ended == ["b gave up", "a sent two"]


async def test_limit_that_falls_under_a_nested_slot_is_an_error(clock: FakeClock) -> None:
    """A refusal allows one trial at a time: whoever waits inside a slot is told, not stuck."""
    politeness = AsyncPoliteness(Settings(seed=1), clock=clock)

    async def nested() -> None:
        async with politeness.slot(FAST) as outer:
            await clock.sleep(1.5)
            with pytest.raises(PolitenessError, match=WAITS_FOR_ITSELF):
                async with politeness.slot(FAST):
                    pass
            outer.report(status=200)

    async def refused() -> None:
        async with politeness.slot(FAST) as slot:
            await clock.sleep(0.75)
            slot.report(status=429)

    await clock.run(asyncio.create_task(nested()), asyncio.create_task(refused()))

    host = politeness.host(FAST)
    assert host is not None
    assert (host.in_flight, host.waiters) == (0, 0)


@pytest.mark.parametrize("other", [SLOW, FAST], ids=["another host", "after the report"])
async def test_harmless_nesting_is_allowed(clock: FakeClock, other: str) -> None:
    """A slot of another host, or after the first one's report, waits for nobody's own slot."""
    politeness = AsyncPoliteness(ONE_AT_A_TIME, clock=clock)

    async def nested() -> float:
        async with politeness.slot(FAST) as outer:
            outer.report(status=200)
            async with politeness.slot(other) as inner:
                inner.report(status=200)
                return clock.now()

    task = asyncio.create_task(nested())
    await clock.run(task)

    assert task.result() == (1.0 if other == FAST else 0.0)


async def test_slot_that_another_task_reports_is_no_deadlock(clock: FakeClock) -> None:
    """A slot of `try_slot` that its taker never entered may be reported by anybody."""
    politeness = AsyncPoliteness(ONE_AT_A_TIME, clock=clock)
    taken = politeness.try_slot(FAST)

    async def wait() -> float:
        async with politeness.slot(FAST) as slot:
            slot.report(status=200)
            return clock.now()

    waiter = asyncio.create_task(wait())
    await clock.settle()
    clock.advance(2.0)
    taken.report(status=200)  # type: ignore[union-attr]
    await clock.run(waiter)

    assert waiter.result() == 2.0


async def test_reported_slot_does_not_hide_a_deadlock(clock: FakeClock) -> None:
    """Only the slot that was not reported counts, however deep the blocks are nested."""
    politeness = AsyncPoliteness(ONE_AT_A_TIME, clock=clock)

    async def nested() -> None:
        async with politeness.slot(FAST) as first:
            first.report(status=302)
            async with politeness.slot(FAST) as second:
                with pytest.raises(PolitenessError, match=WAITS_FOR_ITSELF):
                    async with politeness.slot(FAST):
                        pass
                second.report(status=200)

    task = asyncio.create_task(nested())
    await clock.run(task)

    assert politeness.snapshot().in_flight == 0
