"""The background tasks of a server: each is a step that is repeated, and no error ends one.

A step that raises is logged and counted, and repeated after 1, 2, 4 … at most 10 seconds, until it
succeeds. Meanwhile the server is not ready: `health` has the task's name and the reason.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.store.base import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger("mannerly.service")

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 10.0


class TaskHealth(NamedTuple):
    """The health of one background task."""

    failures: int  # steps that raised, since the server was started
    error: str | None  # why the latest step failed; None: it succeeded


class RepeatedStep:
    """One background task; `failures` and `error` are those of `TaskHealth`."""

    def __init__(self, name: str, step: Callable[[], Awaitable[None]], interval_s: float) -> None:
        self.name = name
        self.failures = 0
        self.error: str | None = None
        self._step = step
        self._interval_s = interval_s
        self._wait_s = FIRST_WAIT_S

    async def attempt(self) -> float:
        """Do the step once; return the seconds until the next one."""
        try:
            await self._step()
        except Exception as error:  # noqa: BLE001 - a task goes on after any error
            return self._failed(error)
        if self.error is not None:
            log.info("the background task %r works again", self.name)
        self.error, self._wait_s = None, FIRST_WAIT_S
        return self._interval_s

    def _failed(self, error: Exception) -> float:
        wait_s = self._wait_s
        self.failures += 1
        self.error = str(error) or type(error).__name__
        self._wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        is_foreseen = isinstance(error, StoreError | OSError)
        log.error(
            "the background task %r failed, next try in %g s: %s",
            *(self.name, wait_s, self.error),
            exc_info=None if is_foreseen else error,
        )
        return wait_s


class Background:
    """The background tasks of one server."""

    def __init__(self) -> None:
        self._steps: list[RepeatedStep] = []
        self._tasks: list[asyncio.Task[None]] = []

    def repeat(self, name: str, step: Callable[[], Awaitable[None]], interval_s: float) -> None:
        """Do a step now, and again `interval_s` after each time that it was done."""
        task = RepeatedStep(name, step, interval_s)
        self._steps.append(task)
        self._tasks.append(asyncio.create_task(_repeat(task), name=name))

    async def close(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def health(self) -> dict[str, TaskHealth]:
        """Return the health of each task, by its name."""
        return {each.name: TaskHealth(each.failures, each.error) for each in self._steps}


async def _repeat(task: RepeatedStep) -> None:
    while True:  # noqa: ASYNC110 - it waits for a time, not for a state
        await asyncio.sleep(await task.attempt())
