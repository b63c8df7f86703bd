"""The only two places in the package that read a clock.

The core is told the time, so somebody has to ask for it: the drivers do, here. Two scales, never
mixed: `now` is monotonic and decides; `wall` is seconds since 1970 and only leaves the process
(in the memory) or comes from outside (in a Retry-After date). A clock that steps backwards, or a
laptop that slept, can therefore not shorten a pause.

What has to happen later goes through `Alarms`; each driver brings its own, and a clock that has
alarms itself (`testing.FakeClock`) is asked for them instead, so that a test owns all of time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable

    from .model import Instant


class TimeSource(Protocol):
    """Tells the time, twice."""

    def now(self) -> Instant:
        """Seconds on a scale that never goes back."""

    def wall(self) -> float:
        """Seconds since 1970."""


class Alarm(Protocol):
    """Something that will happen, unless it is cancelled."""

    def cancel(self) -> None:
        """Do not ring; harmless if it has rung."""


@runtime_checkable
class Alarms(Protocol):
    """Calls back at an instant. It may ring a little early: the listener looks again."""

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Alarm:
        """Call once `now` has reached `when`; at once if it has already."""


class MonotonicClock:
    """The machine's clocks."""

    __slots__ = ()

    def now(self) -> Instant:
        """Seconds since some fixed moment, usually the machine's start."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970, as far as the machine knows."""
        return time.time()
