"""Politeness for threads: the same slots, without `async`.

    with politeness.slot(url) as slot:
        response = session.get(url)
        slot.report(status=response.status_code, headers=response.headers)

One lock guards the core; it is held for microseconds and never while a thread waits. Each waiting
thread has its own event and is woken once, with its decision. A single thread calls the alarms of
all hosts; it exists only while alarms are set, so an object that is not closed leaves no thread
behind. (The first waiter of each queue could watch the clock instead, but then every caller would
be woken twice: to become the first, and to go.)
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Self

from .base import DriverBase
from .slots import Slot, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from ..clock import Alarm, Alarms, TimeSource
    from ..memory.base import Remembered
    from ..model import Instant
    from .buffer import MemoryBuffer
    from .waiters import Waiter


class _Alarm:
    """An alarm in the heap of an `AlarmThread`."""

    __slots__ = ("_thread", "callback", "is_cancelled")

    def __init__(self, thread: AlarmThread, callback: Callable[[], None]) -> None:
        self._thread = thread
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self._thread.on_cancel()


class AlarmThread:
    """Alarms for threads: one daemon thread calls them back and ends after the last one."""

    def __init__(self, clock: TimeSource) -> None:
        self._clock = clock
        self._changed = threading.Condition(threading.Lock())
        self._heap: list[tuple[Instant, int, _Alarm]] = []
        self._arrivals = count()
        self._is_running = False

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call `callback` from the alarm thread at `when`."""
        alarm = _Alarm(self, callback)
        with self._changed:
            heappush(self._heap, (when, next(self._arrivals), alarm))
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="mannerly-alarms", daemon=True).start()
            elif self._heap[0][2] is alarm:
                self._changed.notify()
        return alarm

    def on_cancel(self) -> None:
        """Wake the alarm thread if the alarm that it waits for was cancelled."""
        with self._changed:
            if self._heap and self._heap[0][2].is_cancelled:
                self._changed.notify()

    def _run(self) -> None:
        alarm: _Alarm | None = None
        try:
            while (alarm := self._next()) is not None:
                alarm.callback()
        finally:
            if alarm is not None:  # its callback raised: the next alarm needs a new thread
                with self._changed:
                    self._is_running = False

    def _next(self) -> _Alarm | None:
        """Wait until an alarm is due and return it; None, to end the thread, if none is set."""
        with self._changed:
            while self._heap:
                when, _, alarm = self._heap[0]
                wait_s = when - self._clock.now()
                if alarm.is_cancelled or wait_s <= 0.0:
                    heappop(self._heap)
                    if not alarm.is_cancelled:
                        return alarm
                else:
                    self._changed.wait(min(wait_s, threading.TIMEOUT_MAX))
            self._is_running = False
            return None


class ThreadedPoliteness(DriverBase[threading.Event]):
    """Politeness for all threads of a process. For the arguments see `DriverBase`."""

    def _make_alarms_and_lock(
        self, clock: TimeSource
    ) -> tuple[Alarms, AbstractContextManager[object]]:
        return AlarmThread(clock), threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def slot(
        self, url: str, *, deadline_s: float | None = None, wait_when_open: bool = False
    ) -> Iterator[Slot]:
        """Wait for the host's next slot and hold it in the block: see `AsyncPoliteness.slot`."""
        host_and_key = self._host_and_key(url)
        self._recall(*host_and_key)
        entered = self._try_or_join(host_and_key, deadline_s, wait_when_open=wait_when_open)
        with entered if isinstance(entered, Slot) else self._wait(entered) as slot:
            slot.url = page_of(url)
            yield slot

    def sleep_until(self, instant: Instant) -> None:
        """Wait until an instant of the driver's clock, such as that of a `Retry`."""
        over = self._make_signal()
        alarm = self._alarms.call_at(instant, over.set)
        try:
            over.wait()
        finally:
            alarm.cancel()

    def close(self) -> None:
        """Wake waiting callers with a `PolitenessError`, save what was learned, close the memory.

        Raises:
            Exception: the memory's own, if the last write failed.
        """
        if self._is_closed:
            return
        self._close_queues()
        if self._sharing is not None:
            self._sharing.close()
        buffer = self._buffer
        if buffer is None:
            return
        try:
            records = self._collect(buffer, is_last=True)
            if records:
                self._write(buffer, records)
                if buffer.error is not None:
                    raise buffer.error
        finally:
            buffer.memory.close()

    def _wait(self, waiter: Waiter[threading.Event]) -> Slot:
        while True:
            try:
                waiter.signal.wait()
                slot = self._admit(waiter)
            except BaseException:  # KeyboardInterrupt, in the main thread
                self._leave(waiter)
                raise
            if slot is not None:
                return slot

    def _make_signal(self) -> threading.Event:
        return threading.Event()

    def _wake(self, signal: threading.Event) -> None:
        signal.set()

    def _caller(self) -> tuple[object, str]:
        thread = threading.current_thread()
        return thread, thread.name

    def _serve_soon(self, keys: list[str]) -> None:
        with self._lock:
            for key in keys:
                self._serve(key, self._clock.now())

    def _write(self, buffer: MemoryBuffer, records: list[Remembered]) -> None:
        error = buffer.save(records)
        with self._lock:
            buffer.saved(records, error)
