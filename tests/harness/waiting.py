"""Waiting for a condition that real processes and sockets bring about in a moment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_PAUSE_S = 0.03  # between two questions: less than what a test waits for takes
PATIENCE_S = 60.0  # for what takes a second or two on a machine that is not overloaded


def eventually(condition: Callable[[], object], *, within_s: float = PATIENCE_S) -> None:
    """Wait until it holds. It is asked less and less often: asking may cost as much as the rest."""
    deadline, pause_s = time.monotonic() + within_s, 0.002
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"did not come true within {within_s:g} s")
        time.sleep(pause_s)
        pause_s = min(MOST_PAUSE_S, 1.2 * pause_s)
