"""The end of a run: its work is done, or the operator or a limit ends it."""

from __future__ import annotations

import signal
import threading
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

from mannerly.crawler.control import SetOption, Stop

if TYPE_CHECKING:
    from types import FrameType

    from .budget import PageBudget, SharedBudget
    from .run import Run

WATCH_S = 0.25  # between two checks of limits, interrupts and control records


class Ending(Enum):
    """The reason why a run ended."""

    FINISHED = "finished"
    MAX_URLS = "max_urls"
    DURATION = "duration"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    NO_SEED = "no_seed"


class StopSwitch:
    """A request from outside to end a run: any thread may call `stop`.

    The run looks at it four times a second. `wants_end`: start no more requests, and wait for those
    under way. `wants_end_now`: do not wait for them.
    """

    def __init__(self) -> None:
        self.wants_end = self.wants_end_now = False
        self.ending = Ending.STOPPED

    def stop(self, *, at_once: bool = False) -> None:
        """End the run. Requests under way are waited for, unless `at_once`."""
        self.wants_end = True
        self.wants_end_now |= at_once


class Signals(StopSwitch):
    """SIGINT and SIGTERM as a switch, while it is entered: one drains, two stop at once.

    Only the main thread of a program can take signals; in another one nothing is switched.
    """

    def __init__(self) -> None:
        super().__init__()
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
        self.stop(at_once=self.wants_end)
        if number == signal.SIGTERM:
            self.ending = Ending.TERMINATED


class RunLimits:
    """Ends a run before its work is done: by interrupts, limits, and control records about both.

    Limits that were set by a control record replace those of the settings. A Stop from before this
    run is void.
    """

    def __init__(self, run: Run, budget: PageBudget | SharedBudget) -> None:
        self._duration_s = run.settings.duration_s
        self._store = run.store
        self._budget = budget
        self._interrupts = run.interrupts
        self._is_stopped = False
        self._last_before = run.last_order
        self._last = 0  # the number of the last control record that was read
        self.read_orders()

    def read_orders(self) -> None:
        """Act on the control records that are new, as far as they are about the run's end."""
        for number, order in self._store.orders(after=self._last):
            self._last = number
            match order:
                case Stop():
                    self._is_stopped = number > self._last_before
                case SetOption(name="duration", value=value):
                    self._duration_s = value
                case SetOption(name="max_urls", value=value):
                    self._budget.set_limit(None if value is None else int(value))

    def ending(self, elapsed_s: float, *, is_spent: bool) -> Ending | None:
        """Return why the run has to end; None: it goes on. `is_spent`: --max-urls is reached."""
        if self._interrupts.wants_end:
            return self._interrupts.ending
        if self._is_stopped:
            return Ending.TERMINATED
        if self._duration_s is not None and elapsed_s >= self._duration_s:
            return Ending.DURATION
        return Ending.MAX_URLS if is_spent else None
