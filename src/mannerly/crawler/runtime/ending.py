"""When a crawl ends, and why: its work is done, or the operator, the clock or the budget say so."""

from __future__ import annotations

import signal
import threading
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType

    from mannerly.crawler.settings import CrawlSettings

WATCH_S = 0.25  # how often somebody looks


class Ending(Enum):
    """Why a crawl ended."""

    FINISHED = "finished"
    MAX_URLS = "max_urls"
    DURATION = "duration"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    NO_SEED = "no_seed"


class Signals:
    """SIGINT and SIGTERM as facts to be looked at, not as exceptions out of nowhere.

    Signals reach the main thread of a program only; a crawl in another one is not told.
    """

    def __init__(self) -> None:
        self.interrupts = 0
        self.is_terminated = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.interrupts += 1
        if number == signal.SIGTERM:
            self.is_terminated = True

    @property
    def wants_end(self) -> bool:
        """Start nothing more."""
        return self.interrupts > 0

    @property
    def wants_end_now(self) -> bool:
        """Do not even wait for what is under way."""
        return self.interrupts > 1

    @property
    def ending(self) -> Ending:
        """How a crawl that was told to end has ended."""
        return Ending.TERMINATED if self.is_terminated else Ending.STOPPED


def told_to_end(
    settings: CrawlSettings, signals: Signals, elapsed_s: float, *, is_spent: bool
) -> Ending | None:
    """What the operator, the clock or the budget say."""
    if signals.wants_end:
        return signals.ending
    if settings.duration_s is not None and elapsed_s >= settings.duration_s:
        return Ending.DURATION
    return Ending.MAX_URLS if is_spent else None
