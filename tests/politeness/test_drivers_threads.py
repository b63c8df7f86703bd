"""Claims about waiting in threads: real threads, and a clock that only the test moves."""

from __future__ import annotations

import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mannerly.politeness import CircuitOpen, PolitenessError, Settings
from mannerly.politeness.drivers import threads
from mannerly.politeness.drivers.slots import Slot
from mannerly.politeness.drivers.threads import AlarmThread, ThreadedPoliteness
from mannerly.politeness.drivers.waiters import Waiting
from mannerly.politeness.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from types import FrameType

    from mannerly.politeness.drivers.waiters import DriverEvent

URL = "https://example.com/page"
ONE_A_SECOND = Settings(strategy="fixed", delay_s=1.0)
PATIENCE_S = 30.0  # of the test itself: reached only if something hangs


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=64) as executor:
        yield executor


class Callers:
    """A driver, and a semaphore that is released whenever a thread begins to wait."""

    def __init__(self, clock: FakeClock, settings: Settings = ONE_A_SECOND) -> None:
        self.clock = clock
        self.queued = threading.Semaphore(0)
        self.politeness = ThreadedPoliteness(settings, clock=clock, on_event=self.hear)
        self.served: list[tuple[float, int]] = []
        self.went = threading.Semaphore(0)

    def hear(self, event: DriverEvent) -> None:
        if isinstance(event, Waiting):
            self.queued.release()

    def visit(self, number: int, deadline_s: float | None = None) -> float:
        with self.politeness.slot(URL, deadline_s=deadline_s) as slot:
            self.served.append((self.clock.now(), number))
            slot.report(status=200)
        self.went.release()
        return slot.waited_s

    def line_up(self, pool: ThreadPoolExecutor, count: int) -> list[Future[float]]:
        """Start threads one by one, each when the one before it waits in the queue."""
        futures = []
        for number in range(count):
            futures.append(pool.submit(self.visit, number))
            assert self.queued.acquire(timeout=PATIENCE_S)
        return futures

    def tick(self) -> None:
        """Pass a second, and wait for the one thread that it lets go."""
        self.clock.advance(1.0)
        assert self.went.acquire(timeout=PATIENCE_S)


def test_threads_go_in_order_one_a_second(clock: FakeClock, pool: ThreadPoolExecutor) -> None:
    """Fifty threads on one host are served in the order of their arrival, by one alarm."""
    callers = Callers(clock)
    callers.visit(-1)
    futures = callers.line_up(pool, 50)
    alarms = clock.sleepers

    callers.went.acquire()
    for _ in range(50):
        callers.tick()

    assert alarms == 1
    assert callers.served == [(float(second), second - 1) for second in range(51)]
    assert [future.result() for future in futures] == [float(second) for second in range(1, 51)]


def test_deadline_raises_timeout_error(clock: FakeClock, pool: ThreadPoolExecutor) -> None:
    """A thread with a deadline is not kept longer, and takes no slot with it."""
    callers = Callers(clock)
    callers.visit(-1)
    hurried = pool.submit(callers.visit, 0, 0.5)
    assert callers.queued.acquire(timeout=PATIENCE_S)

    clock.advance(0.5)

    with pytest.raises(TimeoutError, match="no slot for"):
        hurried.result(timeout=PATIENCE_S)
    assert callers.politeness.ready_at(URL) == 1.0


def test_other_hosts_do_not_wait(clock: FakeClock, pool: ThreadPoolExecutor) -> None:
    """A thread that waits for one host keeps no lock from the others."""
    callers = Callers(clock)
    callers.visit(-1)
    waiting = callers.line_up(pool, 1)

    with callers.politeness.slot("https://other.example/") as slot:
        slot.report(status=200)

    assert not waiting[0].done()
    clock.advance(1.0)
    assert waiting[0].result(timeout=PATIENCE_S) == 1.0


def test_open_breaker_raises_circuit_open(clock: FakeClock) -> None:
    """The same refusal as in asyncio, without `async`."""
    politeness = ThreadedPoliteness(ONE_A_SECOND, clock=clock)
    for _ in range(5):
        slot = politeness.try_slot(URL)
        assert isinstance(slot, Slot)
        with pytest.raises(ConnectionRefusedError), slot:
            raise ConnectionRefusedError
        clock.advance(1.0)

    with pytest.raises(CircuitOpen), politeness.slot(URL):
        pytest.fail("the breaker is open")


def test_keyboard_interrupt_gives_the_slot_back(clock: FakeClock) -> None:
    """Ctrl-C in the block, before anything was sent, frees the slot."""
    politeness = ThreadedPoliteness(ONE_A_SECOND, clock=clock)

    with pytest.raises(KeyboardInterrupt), politeness.slot(URL):
        raise KeyboardInterrupt

    assert politeness.ready_at(URL) == 0.0
    assert politeness.snapshot().in_flight == 0


def interrupt_when_asleep(ident: int) -> None:
    """Send Ctrl-C to a thread once it waits in a queue."""
    poll = threading.Event()
    while not is_asleep(sys._current_frames()[ident]):
        poll.wait(0.001)
    signal.pthread_kill(ident, signal.SIGINT)


def is_asleep(frame: FrameType | None) -> bool:
    """Return whether the thread is in a `wait` that the driver called."""
    is_waiting = False
    while frame is not None and frame.f_code.co_filename == threading.__file__:
        is_waiting = frame.f_code.co_name == "wait"
        frame = frame.f_back
    return is_waiting and frame is not None and frame.f_code.co_filename == threads.__file__


def test_keyboard_interrupt_in_the_line_leaves_it(clock: FakeClock) -> None:
    """Ctrl-C while waiting leaves no caller in the queue and no alarm set."""
    politeness = ThreadedPoliteness(ONE_A_SECOND, clock=clock)
    with politeness.slot(URL) as slot:
        slot.report(status=200)
    impatient = threading.Thread(target=interrupt_when_asleep, args=(threading.get_ident(),))
    impatient.start()

    with pytest.raises(KeyboardInterrupt), politeness.slot(URL):
        pytest.fail("there was no slot")

    impatient.join()
    assert politeness.snapshot().top[0].waiters == 0
    assert clock.sleepers == 0


def test_forgotten_report_warns_at_the_callers_line(clock: FakeClock) -> None:
    """The warning for a missing report points to the block, not into this package."""
    politeness = ThreadedPoliteness(ONE_A_SECOND, clock=clock)

    with pytest.warns(RuntimeWarning, match="without a report") as caught, politeness.slot(URL):
        pass

    assert caught[0].filename == __file__


def test_closing_sends_everybody_home(clock: FakeClock, pool: ThreadPoolExecutor) -> None:
    """A thread that waits when the politeness is closed gets an error, not silence."""
    callers = Callers(clock)
    callers.visit(-1)
    (waiting,) = callers.line_up(pool, 1)

    with callers.politeness:
        pass
    callers.politeness.close()

    with pytest.raises(PolitenessError, match="closed while"):
        waiting.result(timeout=PATIENCE_S)
    assert clock.sleepers == 0


def test_timekeeper_rings_in_order_and_ends() -> None:
    """Alarms are called in order of time, cancelled ones are not, and the thread ends."""
    clock = FakeClock(now=10.0)
    keeper = AlarmThread(clock)
    rung: list[str] = []
    done = threading.Event()
    gate = threading.Event()

    keeper.call_at(1.0, lambda: rung.append(f"gate open: {gate.wait(PATIENCE_S)}"))
    keeper.call_at(9.0, done.set)
    keeper.call_at(3.0, lambda: rung.append("second"))
    keeper.call_at(2.0, lambda: rung.append("first"))
    keeper.call_at(4.0, lambda: rung.append("never")).cancel()
    far = keeper.call_at(1e9, lambda: rung.append("never"))
    gate.set()
    assert done.wait(PATIENCE_S)
    far.cancel()
    for thread in threading.enumerate():
        if thread.name == "mannerly-alarms":
            thread.join(PATIENCE_S)

    assert rung == ["gate open: True", "first", "second"]
    assert "mannerly-alarms" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_timekeeper_survives_a_failing_callback() -> None:
    """An error in one alarm is shown, and the alarms after it still ring."""
    keeper = AlarmThread(FakeClock(now=10.0))
    rung = threading.Event()

    def fail() -> None:
        raise RuntimeError("a bug in the callback")

    keeper.call_at(1.0, fail)
    for thread in threading.enumerate():
        if thread.name == "mannerly-alarms":
            thread.join(PATIENCE_S)
    keeper.call_at(2.0, rung.set)

    assert rung.wait(PATIENCE_S)


def test_real_threads_keep_the_spacing(pool: ThreadPoolExecutor) -> None:
    """On the machine's own clock, grants are a delay apart and every thread is served."""
    settings = Settings(strategy="fixed", delay_s=0.005, max_rate="unlimited")
    politeness = ThreadedPoliteness(settings)
    began = politeness.now()

    def visit() -> None:
        with politeness.slot(URL) as slot:
            slot.report(status=200)

    for future in [pool.submit(visit) for _ in range(20)]:
        future.result(PATIENCE_S)

    host = politeness.host(URL)
    assert host is not None
    assert (host.requests, host.in_flight, host.waiters) == (20, 0, 0)
    assert host.not_before - began >= 20 * 0.005
