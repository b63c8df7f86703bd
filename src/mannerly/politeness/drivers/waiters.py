"""Queues of waiting callers: one per host, first in first out, with one alarm per queue.

    ask ─► Grant                       the queue is empty and the core grants: go
        ─► Wait, Refuse ─► join        the caller wants to wait: to the end of the queue
    serve(now) ─► settled, alarm_at    wake these callers; serve again then, or after any report
    leave                              the caller gave up; nothing was reserved for it

A waiter holds no reservation. Only the time of the first waiter is known, and `serve` computes it
again whenever it may have changed (a report, a cancelled permit, robots.txt, the alarm). So a
cancelled waiter takes no slot with it, a shorter delay helps callers that already wait, and one
alarm wakes one caller. The alternative, all callers sleeping until the time they were told and
then competing, needs n²/2 wake-ups for n waiters and does not keep their order.

A new caller never overtakes: while a queue exists, `ask` returns the last decision for its first
waiter. That is correct, because the core's decision does not depend on the caller.

The time is an argument here. This module knows neither how callers wait nor what alarms are.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from ..model import Grant, Refuse, Wait

if TYPE_CHECKING:
    from ..core import Politeness
    from ..events import Event
    from ..model import Decision, Instant, Reason

Signal = TypeVar("Signal")

_SPARE_DEADLINES = 64  # heap entries of callers that left, tolerated before the heap is rebuilt


@dataclass(frozen=True, slots=True)
class Waiting:
    """A caller has to wait. `wait_s` is the wait of the first in the queue; None: for a report."""

    host: str
    at: Instant
    wait_s: float | None
    ahead: int  # callers before this one in the queue
    reason: Reason


DriverEvent: TypeAlias = "Event | Waiting"


class Waiter(Generic[Signal]):
    """One caller in a queue.

    `decision` is None while it waits. A final `Wait` means that its deadline has passed; it says
    what the caller was waiting for.
    """

    __slots__ = ("deadline", "decision", "joined_at", "key", "signal", "waits_when_open")

    def __init__(
        self,
        key: str,
        signal: Signal,
        joined_at: Instant,
        *,
        deadline: Instant | None = None,
        waits_when_open: bool = False,
    ) -> None:
        self.key = key
        self.signal = signal  # the driver's object that wakes this caller
        self.joined_at = joined_at
        self.deadline = deadline
        self.waits_when_open = waits_when_open
        self.decision: Decision | None = None

    def accepts(self, refusal: Refuse) -> bool:
        """Return whether the caller waits until the refusal ends; never if it has no end."""
        return self.waits_when_open and refusal.until is not None


class Served(NamedTuple, Generic[Signal]):
    """Result of `serve`: wake the settled callers, and serve again at `alarm_at`."""

    settled: list[Waiter[Signal]]
    alarm_at: Instant | None


class _HostQueue(Generic[Signal]):
    """The callers that wait for one host, in order of arrival."""

    __slots__ = ("arrivals", "deadlines", "host", "last_decision", "waiters")

    def __init__(self, host: str, last_decision: Wait | Refuse) -> None:
        self.host = host
        self.last_decision = last_decision  # for the first waiter
        # An OrderedDict is first in, first out, and any caller can leave in constant time.
        self.waiters: OrderedDict[Waiter[Signal], None] = OrderedDict()
        self.deadlines: list[tuple[Instant, int, Waiter[Signal]]] = []
        self.arrivals = count()

    def add(self, waiter: Waiter[Signal]) -> None:
        self.waiters[waiter] = None
        if waiter.deadline is not None:
            heappush(self.deadlines, (waiter.deadline, next(self.arrivals), waiter))
            if len(self.deadlines) > 2 * len(self.waiters) + _SPARE_DEADLINES:
                self.deadlines = [entry for entry in self.deadlines if entry[2] in self.waiters]
                heapify(self.deadlines)

    def alarm_at(self) -> Instant | None:
        """Return when the first waiter may go or a deadline passes, whichever is earlier."""
        while self.deadlines and self.deadlines[0][2] not in self.waiters:
            heappop(self.deadlines)
        until = self.last_decision.until
        if not self.deadlines:
            return until
        deadline = self.deadlines[0][0]
        return deadline if until is None else min(until, deadline)


class WaitQueues(Generic[Signal]):
    """The queues of all hosts. Not thread-safe, like the core."""

    def __init__(self, core: Politeness) -> None:
        self._core = core
        self._queues: dict[str, _HostQueue[Signal]] = {}

    def __len__(self) -> int:
        return sum(len(queue.waiters) for queue in self._queues.values())

    def length(self, key: str) -> int:
        """Return the number of callers that wait for this host."""
        queue = self._queues.get(key)
        return 0 if queue is None else len(queue.waiters)

    def ask(self, key: str, host: str, now: Instant) -> Decision:
        """Return the decision for a new caller; it gets no grant while others wait."""
        queue = self._queues.get(key)
        if queue is None:
            return self._core.reserve(host, now=now)
        last_decision = queue.last_decision
        if (
            isinstance(last_decision, Refuse)
            and last_decision.until is not None
            and last_decision.until <= now
        ):
            # The refusal is over and the alarm is about to come: the caller may join the queue.
            return Wait(last_decision.until, last_decision.reason)
        return last_decision

    def join(
        self, waiter: Waiter[Signal], host: str, last_decision: Wait | Refuse, now: Instant
    ) -> Instant | None:
        """Add a caller to the end of its queue; returns when to serve the queue."""
        queue = self._queues.get(waiter.key)
        if queue is None:
            queue = self._queues[waiter.key] = _HostQueue(host, last_decision)
        queue.add(waiter)
        self._core.waiting(queue.host, +1, now=now)
        return queue.alarm_at()

    def leave(self, waiter: Waiter[Signal], now: Instant) -> None:
        """Remove a caller that gave up. The times of the others do not change."""
        queue = self._queues.get(waiter.key)
        if queue is not None and waiter in queue.waiters:
            self._remove(queue, waiter, now)
            self._drop_if_empty(waiter.key, queue)

    def serve(self, key: str, now: Instant) -> Served[Signal]:
        """Settle all callers of a queue that may go, were refused, or whose deadline passed."""
        queue = self._queues.get(key)
        if queue is None:
            return Served([], None)
        settled: list[Waiter[Signal]] = []
        self._expire(queue, now, settled)
        while queue.waiters:
            decision = self._core.reserve(queue.host, now=now)
            if not isinstance(decision, Grant):
                queue.last_decision = decision
                break
            self._settle(queue, next(iter(queue.waiters)), decision, now, settled)
        if queue.waiters and isinstance(queue.last_decision, Refuse):
            refusal = queue.last_decision
            for waiter in [each for each in queue.waiters if not each.accepts(refusal)]:
                self._settle(queue, waiter, refusal, now, settled)
        if self._drop_if_empty(key, queue):
            return Served(settled, None)
        return Served(settled, queue.alarm_at())

    def clear(self, now: Instant) -> list[Waiter[Signal]]:
        """Remove all callers from all queues, without a decision, and return them."""
        everyone = [waiter for queue in self._queues.values() for waiter in queue.waiters]
        for waiter in everyone:
            self.leave(waiter, now)
        return everyone

    def _expire(
        self, queue: _HostQueue[Signal], now: Instant, settled: list[Waiter[Signal]]
    ) -> None:
        while queue.deadlines and queue.deadlines[0][0] <= now:
            waiter = heappop(queue.deadlines)[2]
            if waiter in queue.waiters:
                missed = Wait(queue.last_decision.until, queue.last_decision.reason)
                self._settle(queue, waiter, missed, now, settled)

    def _settle(
        self,
        queue: _HostQueue[Signal],
        waiter: Waiter[Signal],
        decision: Decision,
        now: Instant,
        settled: list[Waiter[Signal]],
    ) -> None:
        waiter.decision = decision
        settled.append(waiter)
        self._remove(queue, waiter, now)

    def _remove(self, queue: _HostQueue[Signal], waiter: Waiter[Signal], now: Instant) -> None:
        del queue.waiters[waiter]
        self._core.waiting(queue.host, -1, now=now)

    def _drop_if_empty(self, key: str, queue: _HostQueue[Signal]) -> bool:
        if queue.waiters:
            return False
        del self._queues[key]
        return True
