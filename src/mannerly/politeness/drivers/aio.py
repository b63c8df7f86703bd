"""Politeness for asyncio.

    async with politeness.slot(url) as slot:
        response = await client.get(url)
        slot.report(status=response.status_code, headers=response.headers)

Waiting is a future in a line, and one loop timer per host with a line; no task runs in the
background. There is no lock: within one event loop nothing happens between two awaits, and the
only awaits are the future and the memory's thread. One object belongs to one loop.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Self

from .desk import FrontDesk
from .slots import Slot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

    from ..clock import Alarm, Alarms, Clock
    from ..memory.base import Remembered
    from ..model import Instant
    from .notebook import Notebook
    from .waiters import Waiter


class LoopAlarms:
    """The running event loop's timers, on our clock's scale."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call from the loop that is running now."""
        return asyncio.get_running_loop().call_later(max(0.0, when - self._clock.now()), callback)


class AsyncPoliteness(FrontDesk["asyncio.Future[None]"]):
    """One politeness for all tasks of an event loop; `FrontDesk` names the arguments."""

    def _set_up(self, clock: Clock) -> tuple[Alarms, AbstractContextManager[object]]:
        self._loads: dict[str, asyncio.Future[Remembered | None]] = {}
        self._writing: asyncio.Future[Exception | None] | None = None
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
        """Wait for this host's next slot, first come first served, and hold it for the block.

        Args:
            url: the URL, or just the host, to be contacted.
            deadline_s: how long to wait for the slot at most.
            wait_when_open: wait out an open breaker and a long Retry-After, too.

        Raises:
            CircuitOpen: the host's breaker is open (see `wait_when_open`).
            HostUnavailable: the host is parked (likewise), paused or retired.
            TimeoutError: the deadline passed before there was a slot.
        """
        names = self._names(url)
        if self._notebook is not None and self._is_news(names[0]):
            await self._recall_aside(self._notebook, *names)
        entered = self._enter(names, deadline_s, wait_when_open=wait_when_open)
        with entered if isinstance(entered, Slot) else await self._wait(entered) as slot:
            yield slot

    async def aclose(self) -> None:
        """Send home who waits, write down what was learned and close the memory.

        Raises:
            Exception: the memory's own, if the last write failed.
        """
        if self._is_closed:
            return
        self._shut()
        notebook = self._notebook
        if notebook is None:
            return
        try:
            if self._writing is not None:
                await asyncio.shield(self._writing)
            records = self._collect(notebook, is_last=True)
            if records:
                error = await asyncio.to_thread(notebook.save, records)
                notebook.wrote(records, error)
                if error is not None:
                    raise error
        finally:
            await asyncio.to_thread(notebook.memory.close)

    async def _wait(self, waiter: Waiter[asyncio.Future[None]]) -> Slot:
        try:
            await waiter.bell
        except asyncio.CancelledError:
            self._leave(waiter)
            raise
        return self._admit(waiter)

    async def _recall_aside(self, notebook: Notebook, host: str, key: str) -> None:
        """Ask the memory about a new host in a thread, once however many tasks begin with it."""
        load = self._loads.get(key)
        if load is None:
            load = asyncio.get_running_loop().run_in_executor(None, notebook.load, key)
            self._loads[key] = load
            load.add_done_callback(lambda _: self._loads.pop(key))
        self._adopt(host, await asyncio.shield(load))

    def _make_bell(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def _ring(self, bell: asyncio.Future[None]) -> None:
        if not bell.done():  # cancelled in this very tick: its task hands the grant on
            bell.set_result(None)

    def _write(self, notebook: Notebook, records: list[Remembered]) -> None:
        loop = asyncio.get_running_loop()
        self._writing = loop.run_in_executor(None, notebook.save, records)
        self._writing.add_done_callback(partial(self._wrote, notebook, records))

    def _wrote(
        self,
        notebook: Notebook,
        records: list[Remembered],
        done: asyncio.Future[Exception | None],
    ) -> None:
        self._writing = None
        notebook.wrote(records, done.result())
