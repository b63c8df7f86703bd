"""How late this machine is: a thread wants to wake every 10 ms, and notes how late it does.

A server that is scheduled late notes a request late, and the gap to the next one looks too short.
The judge adds what this thread measured at that moment to its tolerance, and nothing else.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from typing import Self

PERIOD_S = 0.01
WORTH_NOTING_S = 0.005
NEAR_S = 0.1


class Metronome:
    """Use as a context manager; `lag_s` says how late it was around an instant."""

    def __init__(self) -> None:
        self._ends: list[float] = []
        self._lags: list[float] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def lag_s(self, instant: float) -> float:
        """Return the largest delay that was measured around an instant of the monotonic clock."""
        first = bisect_left(self._ends, instant - NEAR_S)
        last = bisect_right(self._ends, instant + NEAR_S)
        # A delay may have begun before and ended later than that.
        return max(self._lags[max(0, first - 1) : last + 1], default=0.0)

    def _beat(self) -> None:
        wanted = time.monotonic()
        while not self._is_over.is_set():
            wanted += PERIOD_S
            time.sleep(max(0.0, wanted - time.monotonic()))
            now = time.monotonic()
            if now - wanted > WORTH_NOTING_S:
                self._ends.append(now)
                self._lags.append(now - wanted)
                wanted = now
