"""Parse helpers: processes that do long work, so that no page stops the loop for long.

A parser holds the interpreter while it works: the tree of 8 MB takes a third of a second, in which
no other host is served. Pages above `BIG_BYTES` (40 ms, if they need a tree) go to a helper, which
is a child process (`child`). At most `limit` of them run, each started when it is first needed,
since most crawls never see such a page, and ended after `IDLE_S` without work, which gives its
memory back. More work than helpers waits in line; so does a large page while others are read.

One thread here talks to the helpers: a megabyte does not fit into a socket's buffer, and the loop
must not wait for a helper that is just starting. Work and results pass between the loop and the
thread through two queues, so nothing is shared; a result makes `descriptor` readable.

Each piece of work returns one result. If a helper dies or has no memory for its piece, only that is
affected: it is given to a new helper, and if that one dies too, the result is `HELPER_DIED`. One
that dies before it can work does not count, unless `STARTS` of them do so in a row. A helper that
takes longer than `LONGEST_S` is killed, even if its parser never releases the interpreter. If no
helper can be started (no memory, no descriptors), the work is done in the thread here. The memory
of a helper is limited by the size of the largest page: some bytes of markup can become fifty bytes
of tree each.
"""

from __future__ import annotations

import faulthandler
import os
import selectors
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from mannerly.crawler.page.parsed import HELPER_DIED, ParseFailed

from .heap import return_freed_memory
from .waking import WakingQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from .child import Channel, Child

IDLE_S = 30.0  # a helper takes 0.2 s to start, and 40 MB to keep
LONGEST_S = 30.0  # the largest page takes a second
STALLED_S = 1.0  # later than it had to: this process was stopped
SILENT_S = 8.0  # a helper that takes longer for a page is named
NAMED_S = 10.0  # so long it is said that a helper died
TRIES = 2  # helpers that one piece of work may crash
STARTS = 3  # helpers in a row that die before they can work: then that counts against their work
HELPER_BYTES = 64 * 1024 * 1024  # of memory that a helper may use, whatever the page
TREE = 24  # and so many times the largest page: four copies of it, and its tree
AT_ONCE = 4 * 1024 * 1024  # bytes of pages that are read at once, if there is more than one
PARSER = "mannerly.crawler.page.long_work"

T = TypeVar("T")


class Offload(Generic[T]):
    """Helper processes of a loop. Every piece of work returns one result, unless it is closed."""

    def __init__(self, limit: int, *, max_bytes: int = 0, idle_s: float = IDLE_S) -> None:
        self._given: WakingQueue[_Piece | None] = WakingQueue()  # None: close
        self._done: WakingQueue[tuple[int, object]] = WakingQueue()
        self._tags: dict[int, T] = {}
        self._last = 0
        self._limit = limit
        self._memory = HELPER_BYTES + TREE * max_bytes if max_bytes else None
        self._idle_s = idle_s
        self._thread: threading.Thread | None = None
        self._helpers: _Helpers | None = None

    @property
    def descriptor(self) -> int:
        """Return the descriptor that is readable when there are results; -1 after `close`."""
        return self._done.fileno()

    @property
    def pending(self) -> int:
        """Return how many pieces were given and not yet collected."""
        return len(self._tags)

    def give(self, tag: T, work: Callable[[], object], size: int = 0) -> None:
        """Give work to a helper: a picklable function without arguments, such as a `partial`.

        `tag` stays here, and comes back with the result. `size` is that of the page, in bytes.
        """
        self._last += 1
        self._tags[self._last] = tag
        self._given.put([_Piece(self._last, work, size)])
        if self._thread is None:
            return_freed_memory()  # the first large page
            self._helpers = helpers = _Helpers(
                self._given, self._done, self._limit, self._memory, self._idle_s
            )
            thread = threading.Thread(target=helpers.run, name="mannerly-offload", daemon=True)
            thread.start()
            self._thread = thread

    def trouble(self, now: float) -> str | None:
        """Return a sentence about a helper that does not answer, or one that died lately."""
        return None if self._helpers is None else self._helpers.trouble(now)

    def collect(self) -> list[tuple[T, object]]:
        """Return the results that have arrived, without waiting."""
        return [(self._tags.pop(number), result) for number, result in self._done.take()]

    def close(self) -> None:
        """End the helpers; their unfinished work is dropped. Closing twice is harmless."""
        self._given.put([None])
        if self._thread is not None:
            self._thread.join()
        self._given.close()
        self._done.close()


class _Piece(NamedTuple):
    """Work with its number, and how many helpers it may still crash."""

    number: int
    work: Callable[[], object]
    size: int
    tries: int = TRIES


@dataclass(slots=True, eq=False)
class _Helper:
    """A helper process; `piece` is what it works on, `until` when its patience ends."""

    child: Child
    piece: _Piece | None
    until: float
    is_ready: bool = False  # it has told that it waits for work


class _Helpers:
    """The thread that talks to the helpers. Only `run` is called from another thread."""

    def __init__(
        self,
        given: WakingQueue[_Piece | None],
        done: WakingQueue[tuple[int, object]],
        limit: int,
        memory: int | None,
        idle_s: float,
    ) -> None:
        self._given = given
        self._done = done
        self._limit = limit
        self._memory = memory
        self._idle_s = idle_s
        self._line: deque[_Piece] = deque()
        self._death = ""  # of a helper, in words, and until when that is said
        self._named_until = 0.0
        self._helpers: list[_Helper] = []
        self._failed_starts = 0  # in a row
        self._selector = selectors.DefaultSelector()
        self._selector.register(given, selectors.EVENT_READ)

    def run(self) -> None:
        """Work until told to close, then kill the helpers."""
        try:
            while self._take_given():
                self._assign()
                self._wait()
                self._end_overdue()
        finally:
            for helper in list(self._helpers):
                self._end(helper)
            self._selector.close()

    def trouble(self, now: float) -> str | None:
        """Return what the operator should know. Any thread may call this: it only reads."""
        for helper in list(self._helpers):
            took_s = now - (helper.until - LONGEST_S)
            if helper.piece is not None and took_s >= SILENT_S:
                return (
                    f"parse helper {helper.child.pid} has worked on one page for {took_s:.0f} s; "
                    f"after {LONGEST_S:.0f} s it is replaced"
                )
        return self._death if now < self._named_until else None

    def _take_given(self) -> bool:
        """Queue the work that came in; return whether to go on."""
        for piece in self._given.take():
            if piece is None:
                return False
            self._line.append(piece)
        return True

    def _assign(self) -> None:
        """Give waiting work to idle helpers, and start helpers for the rest."""
        idle = [helper for helper in self._helpers if helper.piece is None]
        while self._line and (idle or len(self._helpers) < self._limit) and self._has_memory():
            piece = self._line.popleft()
            try:
                helper = idle.pop() if idle else self._start()
            except OSError:
                self._do_here(piece)
                continue
            helper.piece, helper.until = piece, time.monotonic() + LONGEST_S
            from pickle import PicklingError  # 4 ms: most crawls have no large page

            try:
                helper.child.channel.send(piece.work)
            except MemoryError:  # half of it may have been sent
                self._end(helper)
            except (PicklingError, AttributeError, TypeError) as error:
                self._done.put([(piece.number, ParseFailed(type(error).__name__))])
                helper.piece = None
                idle.append(helper)

    def _has_memory(self) -> bool:
        """Return whether the next page may be read now: large ones are read one at a time."""
        sizes = [helper.piece.size for helper in self._helpers if helper.piece is not None]
        return not sizes or sum(sizes) + self._line[0].size <= AT_ONCE

    def _wait(self) -> None:
        """Wait for results, for room to send more of a page, for work, or for a time limit."""
        for helper in self._helpers:
            channel = helper.child.channel
            sends = selectors.EVENT_WRITE if channel.has_unsent else 0
            self._selector.modify(channel, selectors.EVENT_READ | sends, helper)
        until = min((helper.until for helper in self._helpers), default=None)
        began = time.monotonic()
        timeout_s = None if until is None else max(0.0, until - began)
        ready = self._selector.select(timeout_s)
        now = time.monotonic()
        if timeout_s is not None and now - began > timeout_s + STALLED_S:
            for helper in self._helpers:  # it was stopped with us, perhaps: it may need a moment
                helper.until = now + LONGEST_S
        for key, _ in ready:
            if isinstance(key.data, _Helper):
                self._hear(key.data)

    def _hear(self, helper: _Helper) -> None:
        try:
            results = helper.child.channel.receive()
        except MemoryError:  # the rest of the result is lost
            self._end(helper)
            return
        for result in results:
            if not helper.is_ready:
                helper.is_ready, self._failed_starts = True, 0
                continue
            assert helper.piece is not None, "a helper answers only its work"
            self._done.put([(helper.piece.number, result)])
            helper.piece, helper.until = None, time.monotonic() + self._idle_s
        if helper.child.channel.is_ended:
            self._name(helper)
            self._end(helper)

    def _end_overdue(self) -> None:
        now = time.monotonic()
        for helper in [each for each in self._helpers if each.until <= now]:
            self._end(helper)

    def _name(self, helper: _Helper) -> None:
        """Say for some seconds that a helper died. Most end because there is nothing to do."""
        does = "read a page" if helper.piece is not None else "waited for work"
        self._death = f"parse helper {helper.child.pid} died while it {does}"
        self._named_until = time.monotonic() + NAMED_S

    def _start(self) -> _Helper:
        from .child import Child  # see `_assign`

        helper = _Helper(Child(__name__, self._memory), None, time.monotonic() + LONGEST_S)
        self._helpers.append(helper)
        self._selector.register(helper.child.channel, selectors.EVENT_READ, helper)
        return helper

    def _end(self, helper: _Helper) -> None:
        """End a helper that is idle, dead or overdue; its work is tried once more."""
        self._helpers.remove(helper)
        self._selector.unregister(helper.child.channel)
        helper.child.close()
        piece = helper.piece
        if piece is None:
            return
        self._failed_starts += not helper.is_ready
        if helper.is_ready or self._failed_starts >= STARTS:
            self._try_again(piece)
        else:
            self._line.appendleft(piece)  # it was not read yet

    def _do_here(self, piece: _Piece) -> None:
        """Do work for which no helper can be started."""
        try:
            self._done.put([(piece.number, _done(piece.work))])
        except MemoryError:
            self._try_again(piece)

    def _try_again(self, piece: _Piece) -> None:
        if piece.tries > 1:
            self._line.appendleft(piece._replace(tries=piece.tries - 1))
        else:
            self._done.put([(piece.number, HELPER_DIED)])


def main(channel: Channel) -> None:
    """Run a helper process: do one piece of work after the other until the parent is gone."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - not worth an import
        return_freed_memory()
        _limit_memory(channel.wait())
        channel.send(None)  # ready for work
        while True:
            try:
                work = channel.wait()
                # The parent kills a helper that takes too long; this is for one without a parent.
                faulthandler.dump_traceback_later(LONGEST_S, exit=True, file=nowhere)
                channel.send(_done(work))
            except EOFError:
                return
            except MemoryError:  # the parent starts another helper for it
                os._exit(1)
            except Exception as error:  # noqa: BLE001 - the work or its result cannot be pickled
                channel.send(ParseFailed(type(error).__name__))
            finally:
                faulthandler.cancel_dump_traceback_later()


def _limit_memory(room: int | None) -> None:
    """Let this process use so many bytes more than now, where the system can limit that."""
    if room is None or not sys.platform.startswith("linux"):
        return
    import resource

    import_module(PARSER)  # before the limit is set: its code counts too
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + room
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _done(work: Callable[[], object]) -> object:
    try:
        return work()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a page that fails affects no other page
        return ParseFailed(type(error).__name__)
