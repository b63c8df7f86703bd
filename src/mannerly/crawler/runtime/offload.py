"""Long work is done elsewhere, so that no page stops the loop for long.

A parser holds the interpreter while it works: the tree of 8 MB takes a third of a second, in which
no other host is served. Pages above `BIG_BYTES` (40 ms, if they need a tree) go to a pool of
processes; threads would not help. The pool is made when it is first needed, since most crawls never
see such a page; at most `workers` pieces of work are done at once, and the others wait in line.

What comes back is collected by the loop itself: a finished piece makes `descriptor` readable.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from mannerly.crawler.page.parsed import ParseFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

T = TypeVar("T")


class Offload(Generic[T]):
    """Other processes that work for the loop. What is given comes back once."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None
        self._done: deque[tuple[T, object]] = deque()
        self._pending = 0
        self.descriptor, self._bell = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._bell, False)

    @property
    def pending(self) -> int:
        """What was given and not yet collected."""
        return self._pending

    def give(self, tag: T, work: Callable[[], object]) -> None:
        """Have something done (it must be picklable); `tag` comes back with its result."""
        self._pending += 1
        try:
            future = self._executor().submit(work)
        except BrokenProcessPool:
            self._pool = None  # one piece brought the processes down: that one is lost, no other
            future = self._executor().submit(work)
        future.add_done_callback(partial(self._ring, tag))

    def collect(self) -> list[tuple[T, object]]:
        """What is finished by now."""
        try:
            os.read(self.descriptor, 65536)
        except BlockingIOError:
            return []
        finished = []
        while self._done:
            finished.append(self._done.popleft())
        self._pending -= len(finished)
        return finished

    def close(self) -> None:
        """Stop the processes; what they were at is dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        for descriptor in (self.descriptor, self._bell):
            if descriptor >= 0:
                os.close(descriptor)
        self.descriptor = self._bell = -1

    def _executor(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._workers, mp_context=context, initializer=_end_with_parent
            )
        return self._pool

    def _ring(self, tag: T, future: Future[object]) -> None:
        """Called by the pool's own thread."""
        if future.cancelled():
            return
        error = future.exception()
        failed = ParseFailed(type(error).__name__) if error is not None else None
        self._done.append((tag, failed or future.result()))
        with suppress(OSError):  # full: it rings already; closed: nobody waits
            os.write(self._bell, b"!")


def _end_with_parent() -> None:
    """A crawl that is killed takes its helpers along: nobody else would end them."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
