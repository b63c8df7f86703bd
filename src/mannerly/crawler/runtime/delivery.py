"""Pages on their way from a crawl to the program that iterates over it.

    shard ──give──► Delivery ──post──► PageQueue ──next──► the program
      ▲                                                       │ asks for the next page: done
      └──settle──◄── acknowledged ◄────────────acknowledge────┘

A page is settled (recorded, its links queued) when the program asks for the next one. Until then it
is in flight: after a crash it is fetched and delivered again. That a page was acknowledged is
written down at once (`CrawlStore.acknowledge`, a few bytes that survive kill -9), so a page whose
commit was lost in a crash is fetched again, but not delivered again.

Pages that wait here count as in flight, so `workers` bounds them, and fetching waits for a slow
program. `Delivery` belongs to the engine's process, `PageQueue` to the program's; with one process
they are two threads' ends of the same thing.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from mannerly.crawler.model import Fetched, InFlight, PageRecord
    from mannerly.crawler.shard.elsewhere import Result


class Delivered(NamedTuple):
    """A page on its way to the program; it can be sent to another process."""

    worker: int  # the process that it came from
    token: int  # names it there
    shard: int
    seq: int
    record: PageRecord
    headers: dict[str, str]
    body: bytes


class Delivery:
    """The engine's end: a shard's `Consumer`.

    Args:
        post: takes pages to the program's end.
        acknowledged: by shard, the pages that the program acknowledged before a crash.
        worker: the number of this process.
    """

    def __init__(
        self,
        post: Callable[[list[Delivered]], None],
        acknowledged: Mapping[int, Container[int]],
        worker: int = 0,
    ) -> None:
        self._post = post
        self._known = acknowledged
        self._worker = worker
        self._next_token = 0
        self._out: dict[int, tuple[InFlight, Result]] = {}  # with the program, by token
        self._outgoing: list[Delivered] = []
        self._tokens: deque[int] = deque()  # appended to by the program's thread
        # The loop watches `descriptor` and so wakes up when a page is acknowledged.
        self._bell, self._rung = socket.socketpair()
        self._bell.setblocking(False)
        self._rung.setblocking(False)

    @property
    def descriptor(self) -> int:
        """Readable while there is something to settle."""
        return self._rung.fileno()

    def give(self, flight: InFlight, answer: Fetched, result: Result) -> None:
        """Hand a page over; with `flush` it leaves."""
        token = self._next_token = self._next_token + 1
        self._out[token] = (flight, result)
        entry = flight.item
        seq: int = entry.seq  # type: ignore[union-attr]  # only pages are delivered
        if seq in self._known.get(flight.shard, ()):
            self._tokens.append(token)
            return
        page = Delivered(
            self._worker,
            token,
            flight.shard,
            seq,
            result.found.record,
            answer.headers,
            answer.body,
        )
        self._outgoing.append(page)

    def flush(self) -> None:
        """Send what was handed over since the last time."""
        if self._outgoing:
            pages, self._outgoing = self._outgoing, []
            self._post(pages)

    def acknowledge(self, tokens: Iterable[int]) -> None:
        """The program is done with these pages. Any thread may call this."""
        was_empty = not self._tokens
        self._tokens.extend(tokens)
        if was_empty:
            with suppress(OSError):  # full: it is readable already; closed: the crawl has ended
                self._bell.send(b"!")

    def settled(self) -> list[tuple[InFlight, Result]]:
        """Return the pages that can be settled now."""
        tokens, out = self._tokens, self._out
        if not tokens:
            return []
        with suppress(BlockingIOError):
            self._rung.recv(4096)
        found = []
        while tokens:
            page = out.pop(tokens.popleft(), None)
            if page is not None:
                found.append(page)
        return found

    def close(self) -> None:
        """Let go of the descriptors."""
        self._bell.close()
        self._rung.close()


class PageQueue:
    """The program's end: pages that it has not asked for yet, in order of arrival."""

    def __init__(self) -> None:
        self._pages: deque[Delivered] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self.on_change: Callable[[], None] | None = None  # for asyncio: called by other threads
        self.route: Callable[[Delivered], None] = _nowhere  # where acknowledgements go

    def put(self, pages: Iterable[Delivered]) -> None:
        """Add pages. Any thread may call this."""
        with self._changed:
            self._pages.extend(pages)
            self._changed.notify_all()
        self._tell()

    def close(self) -> None:
        """No more pages will come; those that are here can still be taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._tell()

    @property
    def is_closed(self) -> bool:
        """Whether no more pages will come."""
        return self._is_closed

    def acknowledge(self, page: Delivered) -> None:
        """The program is done with a page: it can be settled."""
        self.route(page)

    def take(self) -> Delivered | None:
        """Return the next page, waiting for it; None at the end."""
        pages = self._pages
        if pages:  # without the lock: only this thread takes
            return pages.popleft()
        with self._changed:
            while not pages and not self._is_closed:
                self._changed.wait()
            return pages.popleft() if pages else None

    def take_at_once(self) -> Delivered | None:
        """Return the next page if there is one."""
        return self._pages.popleft() if self._pages else None

    def _tell(self) -> None:
        if self.on_change is not None:
            self.on_change()


def _nowhere(_page: Delivered) -> None:
    """The crawl has not begun, or has ended: the page was noted as done in the store."""
