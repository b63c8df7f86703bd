"""Politeness for asyncio.

    async with politeness.slot(url) as slot:
        response = await client.get(url)
        slot.report(status=response.status_code, headers=response.headers)

A waiting caller is a future in the host's queue, and each host with a queue has one loop timer; no
task runs in the background. There is no lock, unless hosts are shared with other processes
(`sharing` has a thread): within one event loop nothing else runs between two awaits, and the only
awaits are for that future and for the memory's thread. So an object belongs to the event loop that
uses it first, until that is closed; in another one `slot` raises RuntimeError.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Self

from .base import DriverBase
from .slots import Slot, page_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

    from ..clock import Alarm, Alarms, TimeSource
    from ..memory.base import Remembered
    from ..model import Instant
    from .buffer import MemoryBuffer
    from .waiters import Waiter


class LoopAlarms:
    """Timers of the running event loop, in the time scale of `clock`."""

    def __init__(self, clock: TimeSource) -> None:
        self._clock = clock

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call `callback` from the event loop at `when`."""
        return asyncio.get_running_loop().call_later(max(0.0, when - self._clock.now()), callback)


class AsyncPoliteness(DriverBase["asyncio.Future[None]"]):
    """Politeness for all tasks of an event loop. For the arguments see `DriverBase`."""

    def _make_alarms_and_lock(
        self, clock: TimeSource
    ) -> tuple[Alarms, AbstractContextManager[object]]:
        self._loads: dict[str, asyncio.Future[Remembered | None]] = {}
        self._writing: asyncio.Future[Exception | None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # that it belongs to
        return LoopAlarms(clock), nullcontext()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    @asynccontextmanager
    async def slot(
        self, url: str, *, deadline_s: float | None = None, wait_when_open: bool = False
    ) -> AsyncIterator[Slot]:
        """Wait for the host's next slot, in order of arrival, and hold it during the block.

        Args:
            url: the URL, or just the host, to be contacted.
            deadline_s: the longest time to wait for the slot, in seconds; None: no limit.
            wait_when_open: also wait while the breaker is open or a long Retry-After is pending,
                instead of raising.

        Raises:
            CircuitOpen: the host's breaker is open (not with `wait_when_open`).
            HostUnavailable: the host is paused, retired, or parked (not with `wait_when_open`).
            TimeoutError: `deadline_s` has passed.
            RuntimeError: another event loop uses this object.
        """
        self._require_own_loop()
        host_and_key = self._host_and_key(url)
        if self._buffer is not None and self._is_unknown(host_and_key[0]):
            await self._recall_in_thread(self._buffer, *host_and_key)
        entered = self._try_or_join(host_and_key, deadline_s, wait_when_open=wait_when_open)
        with entered if isinstance(entered, Slot) else await self._wait(entered) as slot:
            slot.url = page_of(url)
            yield slot

    async def aclose(self) -> None:
        """Wake waiting callers with a `PolitenessError`, save what was learned, close the memory.

        Raises:
            Exception: the memory's own, if the last write failed.
        """
        if self._is_closed:
            return
        self._close_queues()
        if self._sharing is not None:
            await asyncio.to_thread(self._sharing.close)
        buffer = self._buffer
        if buffer is None:
            return
        try:
            if self._writing is not None:
                await asyncio.shield(self._writing)
            records = self._collect(buffer, is_last=True)
            if records:
                error = await asyncio.to_thread(buffer.save, records)
                buffer.saved(records, error)
                if error is not None:
                    raise error
        finally:
            await asyncio.to_thread(buffer.memory.close)

    async def sleep_until(self, instant: Instant) -> None:
        """Wait until an instant of the driver's clock, such as that of a `Retry`."""
        over = self._make_signal()
        alarm = self._alarms.call_at(instant, partial(self._wake, over))
        try:
            await over
        finally:
            alarm.cancel()

    def _require_own_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed():
                raise RuntimeError(
                    "this politeness is used by another event loop: make one for each loop, or use "
                    "ThreadedPoliteness for threads"
                )
            self._loop = loop

    async def _wait(self, waiter: Waiter[asyncio.Future[None]]) -> Slot:
        while True:
            try:
                await waiter.signal
            except asyncio.CancelledError:
                self._leave(waiter)
                raise
            slot = self._admit(waiter)
            if slot is not None:
                return slot

    async def _recall_in_thread(self, buffer: MemoryBuffer, host: str, key: str) -> None:
        """Load a new host's record in a thread, once for all tasks that start with it."""
        load = self._loads.get(key)
        if load is None:
            load = asyncio.get_running_loop().run_in_executor(None, buffer.load, key)
            self._loads[key] = load
            load.add_done_callback(lambda _: self._loads.pop(key))
        self._use_record(host, await asyncio.shield(load))

    def _make_signal(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def _wake(self, signal: asyncio.Future[None]) -> None:
        if not signal.done():  # if the task was just cancelled, `_leave` calls the next one
            signal.set_result(None)

    def _caller(self) -> tuple[object, str]:
        task = asyncio.current_task()
        return task, "" if task is None else task.get_name()

    def _serve_soon(self, keys: list[str]) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed: no caller waits any more
                self._loop.call_soon_threadsafe(self._serve_all, keys)

    def _serve_all(self, keys: list[str]) -> None:
        with self._lock:
            for key in keys:
                self._serve(key, self._clock.now())

    def _write(self, buffer: MemoryBuffer, records: list[Remembered]) -> None:
        loop = asyncio.get_running_loop()
        self._writing = loop.run_in_executor(None, buffer.save, records)
        self._writing.add_done_callback(partial(self._saved, buffer, records))

    def _saved(
        self,
        buffer: MemoryBuffer,
        records: list[Remembered],
        done: asyncio.Future[Exception | None],
    ) -> None:
        self._writing = None
        buffer.saved(records, done.result())
