"""A function that waits for instants of virtual time in the middle of what it does.

A call to a slow server takes time, in which other members go on. So the turn of a member whose
server is slow runs in a thread of its own, which stops whenever it waits (`Aside.wait`) and goes on
when the world says so (`Aside.go`). The two never run at the same time: a seed repeats a run.
"""

from __future__ import annotations

from threading import Semaphore, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class _Ended(BaseException):
    """Ends a function that waits; nothing catches it."""


class Aside:
    """Runs a function that may wait."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._until: float | None = None
        self._error: BaseException | None = None
        self._is_ended = False
        self._may_go, self._has_stopped = Semaphore(0), Semaphore(0)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def go(self) -> float | None:
        """Let it run; return the instant that it waits for, or None if it has ended."""
        self._may_go.release()
        self._has_stopped.acquire()
        if self._error is not None:
            raise self._error
        return self._until

    def wait(self, until: float) -> None:
        """Stop until an instant; the function itself calls this."""
        if self._is_ended:
            raise _Ended
        self._until = until
        self._has_stopped.release()
        self._may_go.acquire()
        if self._is_ended:
            raise _Ended

    def end(self) -> None:
        """End it where it waits."""
        self._is_ended = True
        self.go()

    def _run(self) -> None:
        self._may_go.acquire()
        try:
            if not self._is_ended:
                self._act()
        except _Ended:
            pass
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            self._error = error
        self._until = None
        self._has_stopped.release()
