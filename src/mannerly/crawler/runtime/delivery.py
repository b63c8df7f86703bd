"""Pages on their way from a crawl to the program that iterates over it.

    shard ──give──► Delivery ──post──► PageQueue ──next──► the program
      ▲                                                       │ asks for the next page: done
      └──settle──◄── acknowledged ◄────────────acknowledge────┘

A page is settled (recorded, its links queued) when the program asks for the next one. Until then it
is in flight: after a crash it is fetched and delivered again. That a page was acknowledged is
written down at once (`CrawlStore.acknowledge`, a few bytes that survive kill -9), so a page whose
commit was lost in a crash is fetched again, but not delivered again.

Pages that wait here count as in flight, so `concurrency` bounds them, and fetching waits for a slow
program. `Delivery` belongs to the engine's process, `PageQueue` to the program's; with one process
they are used by two threads of it.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from .waking import WakingQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from mannerly.crawler.host.inflight import InFlight
    from mannerly.crawler.model import Fetched, PageRecord, Received
    from mannerly.crawler.shard.interfaces import PageResult


class Delivered(NamedTuple):
    """A page on its way to the program; it can be sent to another process."""

    worker: int  # the process that it came from
    token: int  # names it there
    shard: int
    seq: int
    record: PageRecord
    headers: dict[str, str]
    body: bytes
    items: Sequence[bytes] = ()  # that the user's code made of it
    received: Received | None = None  # if a browser has shown it


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
        self._out: dict[int, tuple[InFlight, PageResult]] = {}  # with the program, by token
        self._outgoing: list[Delivered] = []
        self._done_before: list[int] = []  # tokens of pages that need not be delivered again
        self._tokens: WakingQueue[int] = WakingQueue()

    @property
    def descriptor(self) -> int:
        """Return a descriptor that is readable while there are pages to settle."""
        return self._tokens.fileno()

    def give(self, flight: InFlight, answer: Fetched, result: PageResult) -> None:
        """Hand a page over; with `flush` it leaves."""
        token = self._next_token = self._next_token + 1
        self._out[token] = (flight, result)
        entry = flight.item
        seq: int = entry.seq  # type: ignore[union-attr]  # only pages are delivered
        if seq in self._known.get(flight.shard, ()):
            self._done_before.append(token)
            return
        page = Delivered(
            self._worker,
            token,
            flight.shard,
            seq,
            result.found.record,
            answer.headers,
            answer.body,
            () if result.found.items is None else result.found.items.items,
            answer.received,
        )
        self._outgoing.append(page)

    def flush(self) -> None:
        """Send what was handed over since the last time."""
        if self._outgoing:
            pages, self._outgoing = self._outgoing, []
            self._post(pages)

    def acknowledge(self, tokens: Iterable[int]) -> None:
        """Note that the program is done with these pages. Any thread may call this."""
        self._tokens.put(tokens)

    def settled(self) -> list[tuple[InFlight, PageResult]]:
        """Return the pages that can be settled now."""
        tokens = self._tokens.take()
        if self._done_before:
            tokens += self._done_before
            self._done_before = []
        out = self._out
        return [out.pop(token) for token in tokens if token in out]

    def close(self) -> None:
        """Close the descriptors."""
        self._tokens.close()


class PageQueue:
    """The program's end: pages that it has not asked for yet, in order of arrival.

    A worker process that dies is replaced (`supervisor`), and its successor fetches again what was
    not settled. So pages of the first one that wait here are dropped: they come again. The page
    that the program has in hand is not delivered a second time: when it comes again, it is kept
    aside until the program is done with the first one, and settled then.
    """

    def __init__(self) -> None:
        self._pages: deque[Delivered] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._in_hand: Delivered | None = None  # taken last, and not acknowledged
        # By shard and seq: pages that the program had in hand when their worker died. In `_again`
        # those that it still has, with their second delivery; in `_done` those that it has
        # acknowledged and that may be delivered again.
        self._again: dict[tuple[int, int], Delivered | None] = {}
        self._done: set[tuple[int, int]] = set()
        self.on_change: Callable[[], None] | None = None  # for asyncio; other threads call it
        self.route: Callable[[Delivered], None] = _nowhere  # where acknowledgements go

    def put(self, pages: Iterable[Delivered]) -> None:
        """Add pages. Any thread may call this."""
        with self._changed:
            if self._again or self._done:
                pages = [page for page in pages if not self._is_known(page)]
            self._pages.extend(pages)
            self._changed.notify()
        self._tell()

    def lost(self, worker: int) -> None:
        """Note that a worker has ended: another worker will send its pages again."""
        with self._changed:
            kept = [page for page in self._pages if page.worker != worker]
            self._pages = deque(kept)
            for place, page in self._again.items():
                if page is not None and page.worker == worker:
                    self._again[place] = None
            page = self._in_hand
            if page is not None and page.worker == worker:
                self._again[page.shard, page.seq] = None

    def _is_known(self, page: Delivered) -> bool:
        """Return whether the program got this page from a worker that died."""
        place = (page.shard, page.seq)
        if place in self._done:
            self._done.remove(place)
            self.route(page)
            return True
        if place in self._again:
            self._again[place] = page
            return True
        return False

    def close(self) -> None:
        """Note that no more pages will come; those that are here can still be taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._tell()

    @property
    def is_closed(self) -> bool:
        """Return whether no more pages will come."""
        return self._is_closed

    def acknowledge(self, page: Delivered) -> None:
        """Note that the program is done with a page: it can be settled."""
        with self._changed:
            if self._in_hand is page:
                self._in_hand = None
            if self._again and (page.shard, page.seq) in self._again:
                again = self._again.pop((page.shard, page.seq))
                if again is None:
                    self._done.add((page.shard, page.seq))
                else:
                    page = again
        self.route(page)

    def take(self) -> Delivered | None:
        """Return the next page, waiting for it; None at the end."""
        with self._changed:
            while not self._pages and not self._is_closed:
                self._changed.wait()
            return self._next()

    def take_at_once(self) -> Delivered | None:
        """Return the next page if there is one."""
        with self._changed:
            return self._next()

    def _next(self) -> Delivered | None:
        self._in_hand = self._pages.popleft() if self._pages else None
        return self._in_hand

    def _tell(self) -> None:
        if self.on_change is not None:
            self.on_change()


def _nowhere(_page: Delivered) -> None:
    """Do nothing: the crawl does not run, and the store has noted that the page is done."""
