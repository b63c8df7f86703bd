"""A function that waits for instants of virtual time in the middle of what it does.

A call to a slow server takes time, in which other members go on. So the turn of a member whose
server is slow runs in a greenlet of its own, which stops whenever it waits (`Aside.wait`) and goes
on when the world says so (`Aside.go`). The two never run at the same time: a seed repeats a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenlet import getcurrent, greenlet

if TYPE_CHECKING:
    from collections.abc import Callable


class Aside:
    """Runs a function that may wait."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._greenlet = greenlet(act)

    def go(self) -> float | None:
        """Let it run; return the instant that it waits for, or None if it has ended.

        What the function raises is raised here.
        """
        self._greenlet.parent = getcurrent()
        until: float = self._greenlet.switch()
        return None if self._greenlet.dead else until

    def wait(self, until: float) -> None:
        """Stop until an instant; the function itself calls this."""
        assert self._greenlet.parent is not None
        self._greenlet.parent.switch(until)

    def end(self) -> None:
        """End it where it waits: GreenletExit is raised there, and wherever it waits then."""
        self._greenlet.parent = getcurrent()
        while not self._greenlet.dead:
            self._greenlet.throw()
