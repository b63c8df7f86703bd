"""Big pages are parsed elsewhere, so that no page stops the loop for long.

A parser holds the interpreter while it works: 8 MB take a third of a second, in which no other host
is served. Pages above `BIG_BYTES` (about 40 ms of parsing) go to a pool of processes; threads would
not help. The pool is made at the first such page, since most crawls never see one, and at most
`workers` of them are parsed at once; the others wait in line.

What comes back is collected by the loop itself: a finished page makes `descriptor` readable.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from .html import parse_page
from .page import ParseFailed

if TYPE_CHECKING:
    from concurrent.futures import Future

    from .page import Page

BIG_BYTES = 1024 * 1024

T = TypeVar("T")


class ParserPool(Generic[T]):
    """Parses big pages in other processes. Every page that is given comes back once."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None
        self._done: deque[tuple[T, Page | ParseFailed]] = deque()
        self._pending = 0
        self.descriptor, self._bell = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._bell, False)

    @property
    def pending(self) -> int:
        """Pages that were given and not yet collected."""
        return self._pending

    def give(
        self,
        tag: T,
        body: bytes,
        content_type: str | None,
        url: str,
        *,
        x_robots_tag: str | None,
        agent: str,
    ) -> None:
        """Have a page parsed; `tag` comes back with it."""
        self._pending += 1
        work = partial(parse_page, body, content_type, url, x_robots_tag=x_robots_tag, agent=agent)
        try:
            future = self._executor().submit(work)
        except BrokenProcessPool:
            self._pool = None  # a page brought the parsers down: that page is lost, the rest is not
            future = self._executor().submit(work)
        future.add_done_callback(partial(self._ring, tag))

    def collect(self) -> list[tuple[T, Page | ParseFailed]]:
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
            self._pool = ProcessPoolExecutor(self._workers, mp_context=context)
        return self._pool

    def _ring(self, tag: T, future: Future[Page | ParseFailed]) -> None:
        """Called by the pool's own thread."""
        if future.cancelled():
            return
        error = future.exception()
        page = ParseFailed(type(error).__name__) if error is not None else future.result()
        self._done.append((tag, page))
        try:
            os.write(self._bell, b"!")
        except OSError:
            pass  # full: it rings already; closed: nobody waits
