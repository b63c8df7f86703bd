"""The end of a run: its work is done, or the operator or a limit ends it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections import deque
from contextlib import suppress
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any, Self

from mannerly.crawler.control import SetOption, Stop
from mannerly.crawler.store import exists
from mannerly.crawler.store.base import StoreError

from .order_book import OrderBook

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from mannerly.crawler.control import Control
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import CrawlStore
    from mannerly.politeness.model import Instant

    from .budget import PageBudget, SharedBudget
    from .event_batches import EventBatch
    from .run import Run
    from .waking import Waker

HANGS_S = 0.8  # after the second signal
WATCH_S = 0.25  # between two checks of limits, interrupts and control records


class Ending(Enum):
    """The reason why a run ended."""

    FINISHED = "finished"
    MAX_URLS = "max_urls"
    MAX_REQUESTS = "max_requests"
    DURATION = "duration"
    ERROR_RATE = "error_rate"  # --max-error-rate was exceeded
    STOPPED = "stopped"
    TERMINATED = "terminated"
    NO_SEED = "no_seed"
    CRASHED = "crashed"  # a worker process died too often


class StopSwitch:
    """A request from outside to end a run: any thread may call `stop`.

    `waker` wakes the run, which polls four times a second otherwise. `wants_end`: start no more
    requests, and wait for those under way. `wants_end_now`: do not wait for them.
    """

    def __init__(self) -> None:
        self.wants_end = self.wants_end_now = False
        self.ending = Ending.STOPPED
        self.waker: Waker | None = None

    def stop(self, *, at_once: bool = False) -> None:
        """End the run. Requests under way are waited for, unless `at_once`."""
        self.wants_end = True
        self.wants_end_now |= at_once
        if self.waker is not None:
            self.waker.wake()

    def clear(self) -> None:
        """Let a run sleep again that was woken; nearly always it was not."""
        if self.wants_end and self.waker is not None:
            self.waker.clear()


class Watcher:
    """Shows a run to its operator; what a subclass leaves out, it does not show.

    A thread of its own calls `stopping` and `leaving`, at once.
    """

    is_close = False  # it wants to hear of every change of pace and every wait

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        """Show the totals: four times a second."""

    def hear(self, batch: EventBatch) -> None:
        """Show what happened."""

    def stopping(self) -> None:
        """The first signal came: the run will end."""

    def leaving(self) -> None:
        """The process ends now, without another step of the run."""


class Signals(StopSwitch):
    """SIGINT, SIGTERM and SIGHUP as a switch, while it is entered: one drains, two stop at once.

    If the run has not ended `HANGS_S` after the second one, whatever hangs, its child processes are
    killed and this process exits: a thread hears the signals too, because the main thread may be
    waiting for a disk. `last_words` are printed then. `watcher` is told by that thread.

    Only the main thread of a program can take signals; in another one nothing is switched. SIGHUP
    stays ignored if it was (`nohup`).
    """

    def __init__(self, last_words: str = "", watcher: Watcher | None = None) -> None:
        super().__init__()
        self._watcher = watcher
        self._last_words = last_words
        self._previous: dict[int, Any] = {}
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and not self._is_ignored_hangup(number):
                self._previous[number] = signal.signal(number, self._note)
        self._wakeup_socket, woken = socket.socketpair()
        self._wakeup_socket.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._wakeup_socket.fileno(), warn_on_full_buffer=False)
        with suppress(RuntimeError):  # there is no memory for a thread
            threading.Thread(target=self._guard, args=(woken,), name="signals", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if not self._previous:
            return
        signal.set_wakeup_fd(self._wakeup)
        self._wakeup_socket.close()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @staticmethod
    def _is_ignored_hangup(number: int) -> bool:
        return number != signal.SIGINT and signal.getsignal(number) is signal.SIG_IGN

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            self.ending = Ending.TERMINATED
        self.stop(at_once=self.wants_end)

    def _guard(self, woken: socket.socket) -> None:
        """Count signals; after the second, end the process if the run does not end itself."""
        heard: list[int] = []
        with woken:
            while len(heard) < 2:
                numbers = woken.recv(16)
                if not numbers:
                    return
                known = [number for number in numbers if number in self._previous]
                if known and not heard and self._watcher is not None:
                    self._watcher.stopping()
                heard += known
        self.stop(at_once=True)  # two that come together are one to the interpreter
        if self._is_over.wait(HANGS_S):
            return
        from .child import kill_all

        kill_all()
        if self._watcher is not None:
            self._watcher.leaving()
        with suppress(OSError):
            os.write(2, f"\nStopped without waiting. {self._last_words}\n".encode())
        os._exit(130 if set(heard) == {signal.SIGINT} else 143)


def require(store: CrawlStore) -> None:
    """Raise StoreError if a crawl was removed while it was running."""
    if not exists(store.location):
        raise StoreError(
            f"{store.location} was removed while the crawl was running: what it held is lost, "
            "start over"
        )


class ErrorRate:
    """The share of requests that fail: without an answer, or with a status of 500 or more.

    It is that of the last `SAMPLE` requests, or of a few more: totals are compared four times a
    second. A breaker that opens makes requests rare, so a fixed span of time would show nothing.
    """

    SAMPLE = 50

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._before: deque[tuple[int, int]] = deque([(0, 0)])  # requests that ended, and failed
        self.is_exceeded = False

    def check(self, stats: Stats) -> None:
        """Compare the totals with those of `SAMPLE` requests ago."""
        if self._limit is None:
            return
        ended = failed = sum(stats.failed.values())
        for counts in (stats.statuses, stats.other_statuses):
            ended += counts.total()
            failed += sum(count for status, count in counts.items() if not 0 < status < 500)
        before = self._before
        while len(before) > 1 and ended - before[1][0] >= self.SAMPLE:
            before.popleft()
        sample = ended - before[0][0]
        if sample >= self.SAMPLE and failed - before[0][1] > self._limit * sample:
            self.is_exceeded = True
        if ended > before[-1][0]:
            before.append((ended, failed))


class RunLimits:
    """Ends a run before its work is done: by interrupts, limits, and control records about both.

    Limits that were set by a control record replace those of the settings. A Stop from before this
    run is void.
    """

    def __init__(self, run: Run, budget: PageBudget | SharedBudget) -> None:
        self._duration_s = run.settings.duration_s
        self._max_requests = run.settings.max_requests
        self._requests = 0  # that were sent
        self._errors = ErrorRate(run.settings.max_error_rate)
        self._budget = budget
        self._interrupts = run.interrupts
        self._is_stopped = False
        self._last_before = run.last_order
        self.last_order = 0  # that was acted on
        self._orders = OrderBook(run.store)
        self.read_orders()

    def read_orders(self) -> None:
        """Read the control records that are new, and act on them."""
        self.act_on(self._orders.news())

    def act_on(self, orders: Sequence[tuple[int, Control]]) -> None:
        """Act on control records, as far as they are new and about the run's end."""
        for number, order in orders:
            if number <= self.last_order:
                continue
            self.last_order = number
            match order:
                case Stop():
                    self._is_stopped = number > self._last_before
                case SetOption(name="duration", value=value):
                    self._duration_s = value
                case SetOption(name="max_urls", value=value):
                    self._budget.set_limit(None if value is None else int(value))

    def check(self, stats: Stats) -> None:
        """Compare the totals with the limits: four times a second."""
        self._errors.check(stats)
        self._requests = stats.requests.audited

    def ending(self, elapsed_s: float) -> Ending | None:
        """Return why the run has to end before its work does; None: it goes on."""
        if self._interrupts.wants_end:
            return self._interrupts.ending
        if self._is_stopped:
            return Ending.TERMINATED
        if self._errors.is_exceeded:
            return Ending.ERROR_RATE
        if self._max_requests is not None and self._requests >= self._max_requests:
            return Ending.MAX_REQUESTS
        if self._duration_s is not None and elapsed_s >= self._duration_s:
            return Ending.DURATION
        return None


class Draining:
    """Says how long requests under way are waited for once a run has to end.

    A run that was stopped waits for `grace_s`, one whose time is over for `timeout_s`, another one
    for as long as they take.
    """

    def __init__(self, ending: Ending, settings: CrawlSettings, now: Instant) -> None:
        self._is_stopped = ending in (Ending.STOPPED, Ending.TERMINATED)
        patience_s = settings.timeout_s if ending is Ending.DURATION else inf
        self._until = now + (settings.grace_s if self._is_stopped else patience_s)

    def is_over(self, now: Instant, interrupts: StopSwitch) -> bool:
        """Return whether to cancel what is still under way."""
        return interrupts.wants_end_now or now >= self._until

    def grace_s(self, now: Instant) -> float | None:
        """Return how much longer they are waited for, if the operator has stopped the run."""
        return max(0.0, self._until - now) if self._is_stopped else None
