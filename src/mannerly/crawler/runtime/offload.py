"""Parse helpers: processes that do long work, so that no page stops the loop for long.

A parser holds the interpreter while it works: the tree of 8 MB takes a third of a second, in which
no other host is served. Pages above `BIG_BYTES` (40 ms, if they need a tree) go to a helper, which
is a child process (`child`). At most `limit` of them run, each started when it is first needed,
since most crawls never see such a page, and ended after `IDLE_S` without work, which gives its
memory back. More work than helpers waits in line.

Every helper has a thread here that sends work and waits for its result, nothing else: a megabyte
does not fit into a socket's buffer, and the loop must not wait for a helper that is just starting.
A result makes `descriptor` readable, and the loop collects it.

Each piece of work returns one result. If a helper dies, only its own piece is affected: it is given
to a new helper, and if that one dies too, the result is `ParseFailed("helper_died")`. A piece that
takes longer than `LONGEST_S` ends its helper, even if the parser never releases the interpreter.
If no helper can be started (no memory, no descriptors), the work is done in the thread here.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from mannerly.crawler.page.parsed import ParseFailed

from .child import Child
from .waking import WakingQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from .child import Channel

IDLE_S = 30.0  # a helper takes 0.2 s to start, and 40 MB to keep
LONGEST_S = 60.0  # the largest page takes a second
TRIES = 2  # helpers that one piece of work may crash

T = TypeVar("T")


class Offload(Generic[T]):
    """Helper processes of a loop. Every piece of work returns one result, unless it is closed."""

    def __init__(self, limit: int, *, idle_s: float = IDLE_S) -> None:
        self._limit = limit
        self._idle_s = idle_s
        self._helpers: set[_Helper[T]] = set()
        self._line: deque[tuple[T, Callable[[], object]]] = deque()
        self._changed = threading.Condition()  # guards all of these
        self._done: WakingQueue[tuple[T, object]] = WakingQueue()
        self._pending = 0
        self._is_closed = False

    @property
    def descriptor(self) -> int:
        """Return the descriptor that is readable when there are results; -1 after `close`."""
        return self._done.fileno()

    @property
    def pending(self) -> int:
        """Return how many pieces were given and not yet collected."""
        return self._pending

    def give(self, tag: T, work: Callable[[], object]) -> None:
        """Give work to a helper: a picklable function without arguments, such as a `partial`.

        `tag` stays here, and comes back with the result.
        """
        self._pending += 1
        with self._changed:
            self._line.append((tag, work))
            if len(self._helpers) < min(self._limit, self._pending):
                helper = _Helper(self)
                self._helpers.add(helper)
                helper.start()
            self._changed.notify()

    def collect(self) -> list[tuple[T, object]]:
        """Return the results that have arrived, without waiting."""
        finished = self._done.take()
        self._pending -= len(finished)
        return finished

    def close(self) -> None:
        """End the helpers; their unfinished work is dropped. Closing twice is harmless."""
        with self._changed:
            self._is_closed = True
            self._line.clear()
            helpers = list(self._helpers)
            self._changed.notify_all()
        for helper in helpers:
            helper.kill()
        for helper in helpers:
            helper.join()
        self._done.close()

    # ------------------------------------------------------------------ called by helpers' threads

    @property
    def is_closed(self) -> bool:
        """Return whether results are not wanted any more."""
        return self._is_closed

    def next_piece(self, helper: _Helper[T]) -> tuple[T, Callable[[], object]] | None:
        """Wait for work; None if there was none for `idle_s`: then the helper has to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._line or self._is_closed, self._idle_s)
            if self._line and not self._is_closed:
                return self._line.popleft()
            self._helpers.discard(helper)
            return None

    def finish(self, tag: T, result: object) -> None:
        """Keep a result for the loop, and wake the loop."""
        self._done.put([(tag, result)])


class _Helper(threading.Thread, Generic[T]):
    """The thread that talks to one helper process."""

    def __init__(self, offload: Offload[T]) -> None:
        super().__init__(name="mannerly-offload", daemon=True)
        self._offload = offload
        self._child: Child | None = None
        self._lock = threading.Lock()  # starting a child and killing it exclude each other

    def run(self) -> None:
        try:
            while (piece := self._offload.next_piece(self)) is not None:
                tag, work = piece
                self._offload.finish(tag, self._result(work))
        finally:
            self._put_away()

    def kill(self) -> None:
        """End the process; its thread stops waiting for a result then."""
        with self._lock:
            if self._child is not None:
                self._child.end()

    def _result(self, work: Callable[[], object]) -> object:
        for _ in range(TRIES):
            try:
                channel = self._channel()
            except EOFError:
                break
            except OSError:
                return _done(work)
            try:
                channel.send(work)
                channel.flush(LONGEST_S)
                return channel.wait()
            except EOFError:
                self._put_away()
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                return ParseFailed(type(error).__name__)  # the work cannot be pickled
        return ParseFailed("helper_died")

    def _channel(self) -> Channel:
        with self._lock:
            if self._offload.is_closed:
                raise EOFError("there is no helper any more")
            if self._child is None:
                self._child = Child(__name__, None)
            return self._child.channel

    def _put_away(self) -> None:
        with self._lock:
            if self._child is not None:
                self._child.close()
                self._child = None


def main(channel: Channel) -> None:
    """Run a helper process: do one piece of work after the other until the parent is gone."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - not worth an import
        channel.wait()  # the order is None: all helpers are alike
        while True:
            try:
                work = channel.wait()
                # Not a Python thread: it ends the process even if a parser never returns.
                faulthandler.dump_traceback_later(LONGEST_S, exit=True, file=nowhere)
                channel.send(_done(work))
            except EOFError:
                return
            except Exception as error:  # noqa: BLE001 - the work or its result cannot be pickled
                channel.send(ParseFailed(type(error).__name__))
            finally:
                faulthandler.cancel_dump_traceback_later()


def _done(work: Callable[[], object]) -> object:
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - a page that fails affects no other page
        return ParseFailed(type(error).__name__)
