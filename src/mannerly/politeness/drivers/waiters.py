"""Who goes next: one line of waiting callers per host, and one alarm per line.

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
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from ..model import Grant, Refuse, Wait
from ..value import Value

if TYPE_CHECKING:
    from ..core import Politeness
    from ..events import Event
    from ..model import Decision, Instant, Reason

Bell = TypeVar("Bell")

_SPARE_DEADLINES = 64  # entries of callers who left, kept before the heap is made anew


class Waiting(Value):
    """A caller has to wait. `wait_s` is the head's time, None if only a report can tell it."""

    host: str
    at: Instant
    wait_s: float | None
    ahead: int  # callers before this one in the line
    reason: Reason


Notice: TypeAlias = "Event | Waiting"


class Waiter(Generic[Bell]):
    """One caller in a line.

    `verdict` is None while it waits. A `Grant` or `Refuse` means what it always means; a `Wait`
    means that the deadline came first, and says what there was to wait for.
    """

    __slots__ = ("bell", "deadline", "joined_at", "key", "verdict", "waits_when_open")

    def __init__(
        self,
        key: str,
        bell: Bell,
        joined_at: Instant,
        *,
        deadline: Instant | None = None,
        waits_when_open: bool = False,
    ) -> None:
        self.key = key
        self.bell = bell  # the driver's own: what it rings to wake this caller
        self.joined_at = joined_at
        self.deadline = deadline
        self.waits_when_open = waits_when_open
        self.verdict: Decision | None = None

    def accepts(self, refusal: Refuse) -> bool:
        """Whether to wait out a refusal. One without an end is never waited for."""
        return self.waits_when_open and refusal.until is not None


class Turn(NamedTuple, Generic[Bell]):
    """What the driver has to do now: wake these callers, and serve again at `alarm_at`."""

    settled: list[Waiter[Bell]]
    alarm_at: Instant | None


class _Line(Generic[Bell]):
    """The callers waiting for one host, first come first."""

    __slots__ = ("arrivals", "deadlines", "host", "standing", "waiters")

    def __init__(self, host: str, standing: Wait | Refuse) -> None:
        self.host = host
        self.standing = standing  # what the head was told last
        # Ordered, first in first out, and a caller in the middle can leave in constant time.
        self.waiters: OrderedDict[Waiter[Bell], None] = OrderedDict()
        self.deadlines: list[tuple[Instant, int, Waiter[Bell]]] = []
        self.arrivals = count()

    def add(self, waiter: Waiter[Bell]) -> None:
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
        until = self.standing.until
        if not self.deadlines:
            return until
        deadline = self.deadlines[0][0]
        return deadline if until is None else min(until, deadline)


class Lines(Generic[Bell]):
    """Every host's line. Not thread-safe, like the core it asks."""

    def __init__(self, core: Politeness) -> None:
        self._core = core
        self._lines: dict[str, _Line[Bell]] = {}

    def __len__(self) -> int:
        return sum(len(line.waiters) for line in self._lines.values())

    def length(self, key: str) -> int:
        """How many callers wait for this host."""
        line = self._lines.get(key)
        return 0 if line is None else len(line.waiters)

    def ask(self, key: str, host: str, now: Instant) -> Decision:
        """May a newcomer go at once? Those who wait go first."""
        line = self._lines.get(key)
        if line is None:
            return self._core.reserve(host, now=now)
        standing = line.standing
        if isinstance(standing, Refuse) and standing.until is not None and standing.until <= now:
            # The refusal is over, and only the alarm is late: there is a line to stand in.
            return Wait(standing.until, standing.reason)
        return standing

    def join(
        self, waiter: Waiter[Bell], host: str, standing: Wait | Refuse, now: Instant
    ) -> Instant | None:
        """Go to the end of the line; returns when to serve it."""
        line = self._lines.get(waiter.key)
        if line is None:
            line = self._lines[waiter.key] = _Line(host, standing)
        line.add(waiter)
        self._core.waiting(line.host, +1, now=now)
        return line.alarm_at()

    def leave(self, waiter: Waiter[Bell], now: Instant) -> None:
        """Step out of the line unserved. The others' times do not change by it."""
        line = self._lines.get(waiter.key)
        if line is not None and waiter in line.waiters:
            self._remove(line, waiter, now)
            self._drop_if_empty(waiter.key, line)

    def serve(self, key: str, now: Instant) -> Turn[Bell]:
        """Let go whoever may go, turn away whoever cannot wait any longer."""
        line = self._lines.get(key)
        if line is None:
            return Turn([], None)
        settled: list[Waiter[Bell]] = []
        self._expire(line, now, settled)
        while line.waiters:
            decision = self._core.reserve(line.host, now=now)
            if not isinstance(decision, Grant):
                line.standing = decision
                break
            self._settle(line, next(iter(line.waiters)), decision, now, settled)
        if line.waiters and isinstance(line.standing, Refuse):
            refusal = line.standing
            for waiter in [each for each in line.waiters if not each.accepts(refusal)]:
                self._settle(line, waiter, refusal, now, settled)
        if self._drop_if_empty(key, line):
            return Turn(settled, None)
        return Turn(settled, line.alarm_at())

    def disband(self, now: Instant) -> list[Waiter[Bell]]:
        """Empty every line; the callers get no verdict."""
        everyone = [waiter for line in self._lines.values() for waiter in line.waiters]
        for waiter in everyone:
            self.leave(waiter, now)
        return everyone

    def _expire(self, line: _Line[Bell], now: Instant, settled: list[Waiter[Bell]]) -> None:
        while line.deadlines and line.deadlines[0][0] <= now:
            waiter = heappop(line.deadlines)[2]
            if waiter in line.waiters:
                missed = Wait(line.standing.until, line.standing.reason)
                self._settle(line, waiter, missed, now, settled)

    def _settle(
        self,
        line: _Line[Bell],
        waiter: Waiter[Bell],
        verdict: Decision,
        now: Instant,
        settled: list[Waiter[Bell]],
    ) -> None:
        waiter.verdict = verdict
        settled.append(waiter)
        self._remove(line, waiter, now)

    def _remove(self, line: _Line[Bell], waiter: Waiter[Bell], now: Instant) -> None:
        del line.waiters[waiter]
        self._core.waiting(line.host, -1, now=now)

    def _drop_if_empty(self, key: str, line: _Line[Bell]) -> bool:
        if line.waiters:
            return False
        del self._lines[key]
        return True
