"""The only module of the package that reads a clock; the drivers use it to tell the core the time.

There are two time scales, and they are never mixed. `now` is monotonic, and all decisions use it.
`wall` is seconds since 1970; it is only used in saved records and for dates in Retry-After. So a
system clock that is set back, or a laptop that was suspended, cannot shorten a pause.

Callbacks at a later time go through `Alarms`. Each driver has its own; a time source that is also
an `Alarms` (`testing.FakeClock`) replaces them, so that a test controls all of time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable

    from .model import Instant


class TimeSource(Protocol):
    """Tells monotonic time and wall time."""

    def now(self) -> Instant:
        """Return monotonic time in seconds."""

    def wall(self) -> float:
        """Return wall time in seconds since 1970."""


class Alarm(Protocol):
    """A callback that is due at some instant, unless it is cancelled."""

    def cancel(self) -> None:
        """Cancel the callback; harmless if it was already called."""


@runtime_checkable
class Alarms(Protocol):
    """Schedules callbacks. They may come slightly early: the callback must check the time again."""

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call `callback` once, at `when`; at once if that has passed."""


class MonotonicClock:
    """The clocks of the operating system."""

    __slots__ = ()

    def now(self) -> Instant:
        """Return seconds since an arbitrary fixed moment, usually the start of the machine."""
        return time.monotonic()

    def wall(self) -> float:
        """Return seconds since 1970 by the system clock."""
        return time.time()
