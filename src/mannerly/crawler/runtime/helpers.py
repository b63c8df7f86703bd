"""The thread that gives work to helper processes, and takes their results (`offload`).

Each piece of work returns one result. If a helper dies or has no memory for its piece, only that is
affected: it is given to a new helper, and if that one dies too, the result says so (`HELPER_DIED`;
`LACKED_MEMORY` if memory lacked for one of them, since the page need not be the cause then;
`CodeFailed` for the user's code). One that dies before it can work does not count, unless `STARTS`
of them do so in a row. A helper that takes longer than `Role.longest_s` is killed, even if it never
releases the interpreter; only parsing is tried again then. If no helper can be started (no memory,
no descriptors), parsing is done in the thread here; the user's code waits for a helper, for
`START_PATIENCE_S` at most.

A helper of the user's code whose work is quick gets up to `Role.ahead` pieces at once, which saves
most of the time for messages; one more helper is started only when all have as many.
"""

from __future__ import annotations

import selectors
import signal
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.page.parsed import HELPER_DIED, LACKED_MEMORY, CodeFailed, ParseFailed

from .helper_process import NO_MEMORY, Order, done

if TYPE_CHECKING:
    from collections.abc import Callable

    from .child import Child
    from .waking import WakingQueue

STARTING_S = 30.0  # for a helper to start: the user's module may import much
ALIVE_S = 0.25  # between two checks whether helpers of the user's code are alive
ENDING_S = 0.2  # for a helper to end that has closed its connection
STALLED_S = 1.0  # later than it had to: this process was stopped
SILENT_S = 8.0  # a helper that takes longer for a page is named
NAMED_S = 10.0  # so long it is said that a helper died
TRIES = 2  # helpers that one piece of work may crash
STARTS = 3  # helpers in a row that die before they can work: then that counts against their work
START_AGAIN_S = 1.0  # between two tries to start a helper, while that fails
START_PATIENCE_S = 60.0  # then work that cannot be done here has failed
AT_ONCE = 4 * 1024 * 1024  # bytes of pages that are read at once, if there is more than one
QUICK_S = 0.05  # a piece that takes longer is not worth waiting behind
HELPER = "mannerly.crawler.runtime.helper_process"


class Role(NamedTuple):
    """The work of some helpers, and its limits."""

    name: str  # in messages
    limit: int  # helpers at once
    memory: int | None  # bytes beyond those of its code; None: as many as there are
    longest_s: float  # for one piece
    ahead: int = 1  # pieces for a helper at once, if they are quick
    prepare: Callable[[], object] | None = None  # called in a new helper
    is_users: bool = False  # it runs the user's code


class Piece(NamedTuple):
    """Work with its number, and how many helpers it may still crash.

    `lacked`: one of them had no memory for it.
    """

    number: int
    work: Callable[[], object]
    size: int
    role: Role
    page: str = ""
    tries: int = TRIES
    lacked: bool = False


@dataclass(slots=True, eq=False)
class _Helper:
    """A helper process. It works on the first of `pieces`, and has to be done `until` then."""

    child: Child
    role: Role
    until: float
    begun: float  # when it was started, or began to work on its piece, or was left without one
    pieces: deque[Piece] = field(default_factory=deque)
    size: int = 0  # bytes of their pages
    is_ready: bool = False  # it has told that it waits for work
    is_quick: bool = False  # its last piece took less than `QUICK_S`
    events: int = selectors.EVENT_READ  # that are waited for

    def has_room(self) -> bool:
        """Return whether it may be given one more piece."""
        if not self.pieces:
            return True
        return self.is_quick and len(self.pieces) < self.role.ahead and self.size < AT_ONCE

    def take(self) -> Piece:
        """Remove the piece that it worked on."""
        piece = self.pieces.popleft()
        self.size -= piece.size
        return piece

    def begin(self, now: float, idle_s: float) -> None:
        """Work on the next piece, or be idle."""
        self.begun = now
        self.until = now + (self.role.longest_s if self.pieces else idle_s)


class HelperThread:
    """The thread that talks to the helpers. Only `run` and `trouble` are for other threads."""

    def __init__(
        self,
        given: WakingQueue[Piece | None],
        done: WakingQueue[tuple[int, object]],
        idle_s: float,
    ) -> None:
        self._given = given
        self._done = done
        self._idle_s = idle_s
        self._lines: dict[Role, deque[Piece]] = {}
        self._death = ""  # of a helper, in words, and until when that is said
        self._named_until = 0.0
        self._helpers: list[_Helper] = []
        self._failed_starts = 0  # in a row
        self._next_check = 0.0  # whether helpers are alive
        self._no_start: tuple[float, float] | None = None  # since when none starts, next try
        self._selector = selectors.DefaultSelector()
        self._selector.register(given, selectors.EVENT_READ)

    def run(self) -> None:
        """Work until told to close, then kill the helpers."""
        try:
            while self._take_given():
                for role, line in self._lines.items():
                    self._assign(role, line)
                self._wait()
                self._end_dead()
                self._end_overdue()
        finally:
            for helper in list(self._helpers):
                self._end(helper)
            self._selector.close()

    def trouble(self, now: float) -> str | None:
        """Return what the operator should know. Any thread may call this: it only reads."""
        for helper in list(self._helpers):
            took_s = now - helper.begun
            if took_s >= SILENT_S and (pieces := list(helper.pieces)):
                does = (
                    f"worked on {pieces[0].page or 'one page'}"
                    if helper.is_ready
                    else "been starting"
                )
                return (
                    f"{helper.role.name} {helper.child.pid} has {does} for {took_s:.0f} s; "
                    f"after {helper.until - helper.begun:.0f} s it is replaced"
                )
        return self._death if now < self._named_until else None

    def _take_given(self) -> bool:
        """Queue the work that came in; return whether to go on."""
        for piece in self._given.take():
            if piece is None:
                return False
            self._lines.setdefault(piece.role, deque()).append(piece)
        return True

    def _assign(self, role: Role, line: deque[Piece]) -> None:
        """Give waiting work to helpers that have room, and start helpers for more."""
        while line and (role.is_users or self._has_memory(role, line[0])):
            helper = self._with_room(role)
            if helper is None and not self._may_start(role):
                return
            piece = line.popleft()
            try:
                helper = helper or self._start(role)
            except (OSError, RuntimeError) as error:
                if role.is_users and self._waits_for_helper():
                    line.appendleft(piece)
                    return
                self._do_here(piece, error)
                continue
            self._send(helper, piece)

    def _with_room(self, role: Role) -> _Helper | None:
        """Return the helper with the fewest pieces, if it may have another one."""
        ours = [helper for helper in self._helpers if helper.role is role and helper.has_room()]
        return min(ours, key=lambda helper: len(helper.pieces), default=None)

    def _may_start(self, role: Role) -> bool:
        """Return whether to start one more helper."""
        ours = [helper for helper in self._helpers if helper.role is role]
        if role.is_users and not all(helper.is_ready for helper in ours):
            return False  # it may be quick, and then one will do
        if self._no_start is not None and time.monotonic() < self._no_start[1]:
            return False
        return len(ours) < role.limit

    def _has_memory(self, role: Role, piece: Piece) -> bool:
        """Return whether a page may be parsed now: large ones are read one at a time."""
        ours = [helper for helper in self._helpers if helper.role is role]
        sizes = [each.size for helper in ours for each in helper.pieces]
        return not sizes or sum(sizes) + piece.size <= AT_ONCE

    def _send(self, helper: _Helper, piece: Piece) -> None:
        from pickle import PicklingError  # 4 ms: most crawls have no large page

        helper.pieces.append(piece)
        helper.size += piece.size
        if len(helper.pieces) == 1 and helper.is_ready:
            helper.begin(time.monotonic(), self._idle_s)
        try:
            helper.child.channel.send(piece.work)
        except MemoryError:  # half of it may have been sent
            self._end(helper, "MemoryError: no memory for a copy of the page", lacked=True)
        except (PicklingError, AttributeError, TypeError) as error:
            helper.pieces.pop()
            self._done.put([(piece.number, ParseFailed(type(error).__name__))])

    def _wait(self) -> None:
        """Wait for results, for room to send more of a page, for work, or for a time limit."""
        for helper in self._helpers:
            channel = helper.child.channel
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if channel.has_unsent else 0)
            if events != helper.events:
                helper.events = events
                self._selector.modify(channel, events, helper)
        ends = [helper.until for helper in self._helpers]
        if any(helper.role.is_users and helper.pieces for helper in self._helpers):
            ends.append(self._next_check)
        if self._no_start is not None:
            ends.append(self._no_start[1])
        began = time.monotonic()
        timeout_s = max(0.0, min(ends) - began) if ends else None
        ready = self._selector.select(timeout_s)
        now = time.monotonic()
        if timeout_s is not None and now - began > timeout_s + STALLED_S:
            for helper in self._helpers:  # it was stopped with us, perhaps: it may need a moment
                helper.begin(now, self._idle_s)
        for key, _ in ready:
            if isinstance(key.data, _Helper):
                self._hear(key.data)

    def _hear(self, helper: _Helper) -> None:
        try:
            results = helper.child.channel.receive()
        except Exception as error:  # noqa: BLE001 - no memory for it, or no message of ours
            lacked = isinstance(error, MemoryError)
            self._end(helper, f"its result was lost: {type(error).__name__}", lacked=lacked)
            return
        if results and not helper.is_ready:
            results = results[1:]
            helper.is_ready, self._failed_starts = True, 0
            helper.begin(time.monotonic(), self._idle_s)
        if results:
            self._take_results(helper, results)
        if helper.child.channel.is_ended:
            self._name(helper)
            helper.child.end(ENDING_S)
            self._end(helper, _death_of(helper))

    def _take_results(self, helper: _Helper, results: list[object]) -> None:
        pieces = helper.pieces
        if len(results) > len(pieces):  # the user's code wrote to the channel
            self._end(helper, "more than one result")
            return
        self._done.put([(helper.take().number, result) for result in results])
        now = time.monotonic()
        helper.is_quick = now - helper.begun < QUICK_S * len(results)
        helper.begin(now, self._idle_s)

    def _end_dead(self) -> None:
        """End helpers that are dead: their socket stays open if the user's code has copied them."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + ALIVE_S
        for helper in list(self._helpers):
            if helper.role.is_users and helper.pieces and not helper.child.is_alive:
                self._hear(helper)
                if helper in self._helpers:
                    self._name(helper)
                    self._end(helper, _death_of(helper))

    def _end_overdue(self) -> None:
        now = time.monotonic()
        for helper in [each for each in self._helpers if each.until <= now]:
            if helper.is_ready and helper.role.is_users and helper.pieces:
                late = f"TimeoutError: took longer than {helper.role.longest_s:g} s"
                self._done.put([(helper.take().number, CodeFailed(late))])
                self._lines[helper.role].extendleft(reversed(helper.pieces))
                helper.pieces.clear()
            self._end(helper)

    def _name(self, helper: _Helper) -> None:
        """Say for some seconds that a helper died. Most end because there is nothing to do."""
        does = "worked on a page" if helper.pieces else "waited for work"
        self._death = f"{helper.role.name} {helper.child.pid} died while it {does}"
        self._named_until = time.monotonic() + NAMED_S

    def _start(self, role: Role) -> _Helper:
        from .child import Child  # see `_send`

        order = Order(role.memory, role.longest_s, role.prepare, role.is_users)
        now = time.monotonic()
        helper = _Helper(Child(HELPER, order), role, now + max(STARTING_S, role.longest_s), now)
        self._no_start = None
        self._helpers.append(helper)
        self._selector.register(helper.child.channel, selectors.EVENT_READ, helper)
        return helper

    def _waits_for_helper(self) -> bool:
        """Return whether to wait until a helper can be started; note when to try again."""
        now = time.monotonic()
        since = now if self._no_start is None else self._no_start[0]
        self._no_start = (since, now + START_AGAIN_S)
        return now - since < START_PATIENCE_S

    def _end(self, helper: _Helper, cause: str = "", *, lacked: bool = False) -> None:
        """End a helper that is idle, dead or overdue; its work is tried once more.

        `cause` says why the user's code has no result, if this was the last try; `lacked`: there
        was no memory for its work or its result.
        """
        self._helpers.remove(helper)
        self._selector.unregister(helper.child.channel)
        helper.child.close()
        pieces = helper.pieces
        if not pieces:
            return
        line = self._lines[helper.role]
        self._failed_starts += not helper.is_ready
        if helper.is_ready or self._failed_starts >= STARTS:
            first = pieces.popleft()
            line.extendleft(reversed(pieces))
            lacked = lacked or not helper.is_ready or helper.child.exit_status == NO_MEMORY
            self._try_again(first, cause, lacked=lacked)
        else:
            line.extendleft(reversed(pieces))  # none was read yet

    def _do_here(self, piece: Piece, error: Exception) -> None:
        """Do work for which no helper can be started, unless it runs the user's code."""
        if piece.role.is_users:
            self._done.put([(piece.number, CodeFailed(f"no helper could be started: {error}"))])
            return
        try:
            self._done.put([(piece.number, done(piece.work))])
        except MemoryError:
            self._try_again(piece, "", lacked=True)

    def _try_again(self, piece: Piece, cause: str, *, lacked: bool) -> None:
        lacked |= piece.lacked
        if piece.tries > 1:
            again = piece._replace(tries=piece.tries - 1, lacked=lacked)
            self._lines[piece.role].appendleft(again)
        else:
            died = LACKED_MEMORY if lacked else HELPER_DIED
            failed = CodeFailed(cause) if piece.role.is_users else died
            self._done.put([(piece.number, failed)])


def _death_of(helper: _Helper) -> str:
    """Return how a helper that runs the user's code has ended, in words."""
    status = helper.child.exit_status
    if status == NO_MEMORY and helper.role.memory is not None:
        return f"MemoryError: needs more than {helper.role.memory >> 20} MB"
    if status == -signal.SIGKILL:
        return "ended its process, or closed its connection to the crawl"
    if status is not None and status < 0:
        try:
            return f"ended its process with {signal.Signals(-status).name}"
        except ValueError:
            return f"ended its process with signal {-status}"
    return f"ended its process with exit status {status}"
