"""Call a user's event listener so that it can neither break nor silently block a driver."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..clock import TimeSource
    from .waiters import DriverEvent

LATE_S = 1.0  # a listener that takes longer, or a caller that goes on later, is reported


def ignore(event: DriverEvent) -> None:
    """Ignore the event."""


def guarded(
    listener: Callable[[DriverEvent], None], clock: TimeSource
) -> Callable[[DriverEvent], None]:
    """Turn a listener's exceptions into warnings: they must not keep callers from being woken.

    A listener that takes longer than `LATE_S` keeps every caller waiting: that is a warning, too.
    """

    def call(event: DriverEvent) -> None:
        began = clock.now()
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            warnings.warn(f"on_event raised {error!r}", RuntimeWarning, stacklevel=2)
        took_s = clock.now() - began
        if took_s > LATE_S:
            name = getattr(listener, "__qualname__", repr(listener))
            message = f"on_event {name} took {took_s:.1f} s: all callers waited for it"
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    return call
