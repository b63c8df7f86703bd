"""Queues of waiting callers: one per host, first in first out, with one alarm per queue.

    ask ─► Grant                       the queue is empty and the core grants: go
        ─► Wait, Refuse ─► join        the caller wants to wait: to the end of the queue
    serve ─► woken, alarm_at           wake these callers; serve again then, or after any report
    enter                              a woken caller goes on: now its slot is reserved, or not
    leave                              the caller gave up; nothing was reserved for it

A waiter holds no reservation. Only the time of the first waiter is known, and `serve` computes it
again whenever it may have changed (a report, a cancelled permit, robots.txt, the alarm). So a
cancelled waiter takes no slot with it, a shorter delay helps callers that already wait, and one
alarm wakes one caller. The alternative, all callers sleeping until the time they were told and
then competing, needs n²/2 wake-ups for n waiters and does not keep their order.

Between being woken and going on, a caller may lose seconds: another callback blocks the event
loop, another thread the interpreter. So `serve` calls only the first waiter, and the slot is
reserved in `enter`, when that caller really goes on: the delay to the next request counts from
there, and a Retry-After that came meanwhile is obeyed.

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


@dataclass(frozen=True, slots=True)
class StartedLate:
    """A caller went on `late_s` seconds after its slot was free: the program was blocked.

    In asyncio some callback kept the event loop for that long, often a blocking call inside a
    slot; with threads the interpreter was busy. No delay was shortened by it.
    """

    host: str
    at: Instant
    late_s: float
    previous: str  # the task or thread that took the slot before, often the one that blocked


DriverEvent: TypeAlias = "Event | Waiting | StartedLate"


class Waiter(Generic[Signal]):
    """One caller in a queue.

    `decision` is None while it waits. A final `Wait` means that its deadline has passed; it says
    what the caller was waiting for.
    """

    __slots__ = (
        "deadline",
        "decision",
        "due_at",
        "is_stuck",
        "joined_at",
        "key",
        "owner",
        "signal",
        "waits_when_open",
    )

    def __init__(
        self,
        key: str,
        signal: Signal,
        joined_at: Instant,
        *,
        deadline: Instant | None = None,
        waits_when_open: bool = False,
        owner: object = None,
    ) -> None:
        self.key = key
        self.signal = signal  # the driver's object that wakes this caller
        self.joined_at = joined_at
        self.due_at = joined_at  # when it was called: from then on it could have gone on
        self.is_stuck = False  # it waits for itself, and has to give up
        self.owner = owner  # the waiting task or thread, if it holds another slot of this host
        self.deadline = deadline
        self.waits_when_open = waits_when_open
        self.decision: Decision | None = None

    def accepts(self, refusal: Refuse) -> bool:
        """Return whether the caller waits until the refusal ends; never if it has no end."""
        return self.waits_when_open and refusal.until is not None


class Served(NamedTuple, Generic[Signal]):
    """Wake these callers, called or settled, and serve again at `alarm_at`."""

    woken: list[Waiter[Signal]]
    alarm_at: Instant | None


class _HostQueue(Generic[Signal]):
    """The callers that wait for one host, in order of arrival."""

    __slots__ = ("arrivals", "called", "deadlines", "host", "last_decision", "owners", "waiters")

    def __init__(self, host: str, last_decision: Wait | Refuse) -> None:
        self.host = host
        self.last_decision = last_decision  # for the first waiter
        self.called: Waiter[Signal] | None = None  # woken, but it has not gone on yet
        self.owners: dict[Waiter[Signal], object] = {}  # waiters that hold another slot already
        # An OrderedDict is first in, first out, and any caller can leave in constant time.
        self.waiters: OrderedDict[Waiter[Signal], None] = OrderedDict()
        self.deadlines: list[tuple[Instant, int, Waiter[Signal]]] = []
        self.arrivals = count()

    def add(self, waiter: Waiter[Signal]) -> None:
        self.waiters[waiter] = None
        if waiter.owner is not None:
            self.owners[waiter] = waiter.owner
        if waiter.deadline is not None:
            heappush(self.deadlines, (waiter.deadline, next(self.arrivals), waiter))
            if len(self.deadlines) > 2 * len(self.waiters) + _SPARE_DEADLINES:
                self.deadlines = [entry for entry in self.deadlines if entry[2] in self.waiters]
                heapify(self.deadlines)

    def alarm_at(self) -> Instant | None:
        """Return when the first waiter may go or a deadline passes, whichever is earlier."""
        while self.deadlines and self.deadlines[0][2] not in self.waiters:
            heappop(self.deadlines)
        until = self.last_decision.until if self.called is None else None
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

    def last_decision(self, key: str) -> Wait | Refuse:
        """Return the last decision for the first caller of a queue that is not empty."""
        return self._queues[key].last_decision

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

    def leave(self, waiter: Waiter[Signal], now: Instant) -> Served[Signal]:
        """Remove a caller that gave up; if it was called, the next one is called instead."""
        queue = self._queues.get(waiter.key)
        if queue is not None and waiter in queue.waiters:
            was_called = queue.called is waiter
            self._remove(queue, waiter, now)
            if was_called:
                return self.serve(waiter.key, now)
        return self._served(waiter.key, queue, [])

    def serve(self, key: str, now: Instant) -> Served[Signal]:
        """Call the first caller of a queue if it may go, and settle those who may not wait on."""
        queue = self._queues.get(key)
        woken: list[Waiter[Signal]] = []
        if queue is None:
            return self._served(key, queue, woken)
        self._expire(queue, now, woken)
        if queue.waiters and queue.called is None:
            if self._core.ready_at(queue.host, now=now) <= now:
                woken.append(self._call(queue, now))
            else:
                decision = self._core.reserve(queue.host, now=now)
                assert not isinstance(decision, Grant)
                queue.last_decision = decision
                self._send_away(queue, now, woken)
        return self._served(key, queue, woken)

    def enter(self, waiter: Waiter[Signal], now: Instant) -> Served[Signal]:
        """Reserve the slot of a called caller that goes on now; it may have to wait again."""
        queue = self._queues.get(waiter.key)
        woken: list[Waiter[Signal]] = []
        if queue is None or queue.called is not waiter:  # it was settled meanwhile
            return self._served(waiter.key, queue, woken)
        queue.called = None
        decision = self._core.reserve(queue.host, now=now)
        if isinstance(decision, Grant):
            self._settle(queue, waiter, decision, now)
            return self.serve(waiter.key, now)
        queue.last_decision = decision
        self._send_away(queue, now, woken)
        return self._served(waiter.key, queue, woken)

    def owners(self, key: str) -> list[object]:
        """Return the callers of a queue that hold another slot of its host."""
        queue = self._queues.get(key)
        return [] if queue is None else list(queue.owners.values())

    def remove_last_owner(self, key: str, now: Instant) -> Waiter[Signal]:
        """Remove the last caller that holds another slot of the host, so that it gives up."""
        queue = self._queues[key]
        waiter = next(reversed(queue.owners))
        waiter.is_stuck = True
        self._remove(queue, waiter, now)
        self._served(key, queue, [])
        return waiter

    def clear(self, now: Instant) -> list[Waiter[Signal]]:
        """Remove all callers from all queues, without a decision, and return them."""
        everyone = []
        for queue in self._queues.values():
            for waiter in list(queue.waiters):
                self._remove(queue, waiter, now)
                everyone.append(waiter)
        self._queues.clear()
        return everyone

    def _call(self, queue: _HostQueue[Signal], now: Instant) -> Waiter[Signal]:
        """Return the first waiter, called; it was due at the instant that the core had named."""
        waiter = next(iter(queue.waiters))
        until, reason = queue.last_decision
        waiter.due_at = max(waiter.joined_at, now if until is None else min(until, now))
        queue.called = waiter
        queue.last_decision = Wait(now, reason)
        return waiter

    def _send_away(
        self, queue: _HostQueue[Signal], now: Instant, woken: list[Waiter[Signal]]
    ) -> None:
        """Settle the callers that do not wait for the end of a refusal."""
        refusal = queue.last_decision
        if isinstance(refusal, Refuse):
            leaving = [each for each in queue.waiters if not each.accepts(refusal)]
            woken += [self._settle(queue, waiter, refusal, now) for waiter in leaving]

    def _expire(self, queue: _HostQueue[Signal], now: Instant, woken: list[Waiter[Signal]]) -> None:
        while queue.deadlines and queue.deadlines[0][0] <= now:
            waiter = heappop(queue.deadlines)[2]
            if waiter in queue.waiters:
                missed = Wait(queue.last_decision.until, queue.last_decision.reason)
                woken.append(self._settle(queue, waiter, missed, now))

    def _settle(
        self, queue: _HostQueue[Signal], waiter: Waiter[Signal], decision: Decision, now: Instant
    ) -> Waiter[Signal]:
        waiter.decision = decision
        self._remove(queue, waiter, now)
        return waiter

    def _remove(self, queue: _HostQueue[Signal], waiter: Waiter[Signal], now: Instant) -> None:
        if queue.called is waiter:
            queue.called = None
        del queue.waiters[waiter]
        queue.owners.pop(waiter, None)
        self._core.waiting(queue.host, -1, now=now)

    def _served(
        self, key: str, queue: _HostQueue[Signal] | None, woken: list[Waiter[Signal]]
    ) -> Served[Signal]:
        """Return the result of a change to a queue, and drop the queue if it is empty."""
        if queue is not None and queue.waiters:
            return Served(woken, queue.alarm_at())
        self._queues.pop(key, None)
        return Served(woken, None)
