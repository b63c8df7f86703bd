"""Who goes next: one line of waiting callers per host, and one alarm per queue.

    ask ─► Grant                       nobody waits and the core agrees: go
        ─► Wait, Refuse ─► join        the caller chose to wait: to the end of the line
    serve(now) ─► settled, alarm_at    wake these; call serve again then, or after any report
    leave                              a caller gave up; nothing was reserved for it

A waiter holds no reservation: only the head of a line has a time, and `serve` works it out anew
whenever something may have moved it (a report, a cancelled permit, robots.txt, the alarm). So a
cancelled waiter takes nothing with it, a shorter delay helps those who wait already, and one
alarm wakes one caller. The alternative, to let everyone sleep until the time they were told and
then race, costs n²/2 wake-ups for n waiters and serves them in no order at all.

A newcomer never overtakes: while anyone waits, `ask` answers what the head was told last. That
is exact, because what the core would answer does not depend on who asks.

This file is told the time. It knows neither how callers sleep nor what an alarm is made of.
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

_SPARE_DEADLINES = 64  # entries of callers who left, kept before the heap is made anew


@dataclass(frozen=True, slots=True)
class Waiting:
    """A caller has to wait. `wait_s` is the head's time, None if only a report can tell it."""

    host: str
    at: Instant
    wait_s: float | None
    ahead: int  # callers before this one in the line
    reason: Reason


Notice: TypeAlias = "Event | Waiting"


class Waiter(Generic[Signal]):
    """One caller in a queue.

    `decision` is None while it waits. A `Grant` or `Refuse` means what it always means; a `Wait`
    means that the deadline came first, and says what there was to wait for.
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
        self.signal = signal  # the driver's own: what it rings to wake this caller
        self.joined_at = joined_at
        self.deadline = deadline
        self.waits_when_open = waits_when_open
        self.decision: Decision | None = None

    def accepts(self, refusal: Refuse) -> bool:
        """Whether to wait out a refusal. One without an end is never waited for."""
        return self.waits_when_open and refusal.until is not None


class Served(NamedTuple, Generic[Signal]):
    """What the driver has to do now: wake these callers, and serve again at `alarm_at`."""

    settled: list[Waiter[Signal]]
    alarm_at: Instant | None


class _HostQueue(Generic[Signal]):
    """The callers waiting for one host, first come first."""

    __slots__ = ("arrivals", "deadlines", "host", "last_decision", "waiters")

    def __init__(self, host: str, last_decision: Wait | Refuse) -> None:
        self.host = host
        self.last_decision = last_decision  # what the head was told last
        # Ordered, first in first out, and a caller in the middle can leave in constant time.
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
        """When the head may go or somebody's patience ends, whichever is first."""
        while self.deadlines and self.deadlines[0][2] not in self.waiters:
            heappop(self.deadlines)
        until = self.last_decision.until
        if not self.deadlines:
            return until
        deadline = self.deadlines[0][0]
        return deadline if until is None else min(until, deadline)


class WaitQueues(Generic[Signal]):
    """Every host's queue. Not thread-safe, like the core it asks."""

    def __init__(self, core: Politeness) -> None:
        self._core = core
        self._queues: dict[str, _HostQueue[Signal]] = {}

    def __len__(self) -> int:
        return sum(len(queue.waiters) for queue in self._queues.values())

    def length(self, key: str) -> int:
        """How many callers wait for this host."""
        queue = self._queues.get(key)
        return 0 if queue is None else len(queue.waiters)

    def ask(self, key: str, host: str, now: Instant) -> Decision:
        """May a newcomer go at once? Those who wait go first."""
        queue = self._queues.get(key)
        if queue is None:
            return self._core.reserve(host, now=now)
        last_decision = queue.last_decision
        if (
            isinstance(last_decision, Refuse)
            and last_decision.until is not None
            and last_decision.until <= now
        ):
            # The refusal is over, and only the alarm is late: there is a line to stand in.
            return Wait(last_decision.until, last_decision.reason)
        return last_decision

    def join(
        self, waiter: Waiter[Signal], host: str, last_decision: Wait | Refuse, now: Instant
    ) -> Instant | None:
        """Go to the end of the line; returns when to serve it."""
        queue = self._queues.get(waiter.key)
        if queue is None:
            queue = self._queues[waiter.key] = _HostQueue(host, last_decision)
        queue.add(waiter)
        self._core.waiting(queue.host, +1, now=now)
        return queue.alarm_at()

    def leave(self, waiter: Waiter[Signal], now: Instant) -> None:
        """Step out of the line unserved. The others' times do not change by it."""
        queue = self._queues.get(waiter.key)
        if queue is not None and waiter in queue.waiters:
            self._remove(queue, waiter, now)
            self._drop_if_empty(waiter.key, queue)

    def serve(self, key: str, now: Instant) -> Served[Signal]:
        """Let go whoever may go, turn away whoever cannot wait any longer."""
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
        """Empty every line; the callers get no decision."""
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
