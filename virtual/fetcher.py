"""A fetcher in virtual time: the real shard loop runs through a day in a second.

It keeps the contract of `mannerly.crawler.fetch.base` without any network: a function or a table
gives the answer of each URL and its latency, and `wait` moves a shared clock to the next answer
instead of sleeping.
Order is by finishing time, then by start: the same run gives the same log.

    clock = VirtualClock()
    fetcher = FakeFetcher(clock, lambda request: FakeReply(body=b"hello", latency_s=0.2))

It reads no other clock and draws no random numbers: the caller chooses the latencies.
"""

from __future__ import annotations

import selectors
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mannerly.crawler.fetch.base import always, every
from mannerly.crawler.model import Fetched, FetchError, LocalError, Request
from mannerly.politeness.model import ErrorKind
from mannerly.politeness.retry import RetryQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class VirtualClock:
    """A clock that only moves when told to."""

    __slots__ = ("now",)

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def advance(self, seconds: float) -> None:
        """Move the clock forward. Raises ValueError for a negative number of seconds."""
        if seconds < 0:
            raise ValueError(f"time does not run backwards (by {seconds} s)")
        self.now += seconds


class FakeReply(NamedTuple):
    """The answer of a fake server; with `error` it has no status. Header names in lower case."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}  # noqa: RUF012  # a shared empty default, never written to
    latency_s: float = 0.1
    error: FetchError | None = None
    detail: str | None = None


FakeSite: TypeAlias = "Callable[[Request], FakeReply] | Mapping[str, FakeReply]"

NOT_FOUND = FakeReply(status=404)


class FakeFetcher:
    """Answers every request from a function or a table of URLs; 404 for others.

    `connect_s` returns how long it takes until a request can be sent; by default no time.
    `address_of` returns the address of a host; by default it is unknown.
    """

    def __init__(
        self,
        clock: VirtualClock,
        answer: FakeSite,
        *,
        connect_s: Callable[[Request], float] | None = None,
        address_of: Callable[[str], str] | None = None,
    ) -> None:
        self.clock = clock
        self._connect_s = connect_s
        self._connecting: RetryQueue[Request] = RetryQueue()
        self._may_leave: Callable[[Request, float, str], bool] = always
        self._address_of = address_of
        self._answer = answer if callable(answer) else _from_table(answer)
        # Answers by the instant at which they are due: many share one, and a heap of instants is
        # small where a heap of answers would not be.
        self._due: dict[float, list[Fetched]] = {}
        self._instants: list[float] = []
        self._sent: list[tuple[Request, float]] = []
        self._in_flight = 0
        self._watched: selectors.BaseSelector | None = None

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def oldest(self) -> Request | None:
        return next((fetched.request for due in self._due.values() for fetched in due), None)

    @property
    def next_at(self) -> float | None:
        """Return when the next answer arrives or the next connection opens; None: none will."""
        opens_at = self._connecting.next_due()
        return min([*self._instants[:1], *([] if opens_at is None else [opens_at])], default=None)

    @property
    def was_idle(self) -> bool:
        """Return True: a loop in virtual time is never busy."""
        return True

    def set_max_connections(self, most: int) -> None:
        """Do nothing: there are no connections."""

    def start(self, request: Request) -> None:
        self._in_flight += 1
        if self._connect_s is None:
            self._leave(request)
        else:
            self._connecting.push(self.clock.now + self._connect_s(request), request)

    def _leave(self, request: Request) -> None:
        now = self.clock.now
        address = "" if self._address_of is None else self._address_of(request.host)
        if self._may_leave(request, now, address):
            self._sent.append((request, now))
            fetched = _fetched(request, self._answer(request))
        else:
            fetched = Fetched(request, error=LocalError.HELD, detail=LocalError.HELD.value)
        instant = now + fetched.total_s
        due = self._due.get(instant)
        if due is None:
            due = self._due[instant] = []
            heappush(self._instants, instant)
        due.append(fetched)

    def wait(self, timeout_s: float) -> list[Fetched]:
        if timeout_s > 0.0 and self._watched is not None and self._watched.select(0):
            return self._finished()
        clock = self.clock
        until = clock.now + max(0.0, timeout_s)
        while (open_at := self._connecting.next_due()) is not None and open_at <= min(
            [until, *self._instants[:1]]
        ):
            clock.now = max(clock.now, open_at)
            for request in self._connecting.pop_due(clock.now):
                self._leave(request)
        clock.now = max(clock.now, min(until, self._instants[0])) if self._instants else until
        return self._finished()

    def ask(self, may_leave: Callable[[Request, float, str], bool]) -> None:
        self._may_leave = may_leave

    def sent(self) -> list[tuple[Request, float]]:
        sent, self._sent = self._sent, []
        return sent

    def watch(self, descriptor: int) -> None:
        if self._watched is None:
            self._watched = selectors.DefaultSelector()
        self._watched.register(descriptor, selectors.EVENT_READ)

    def cancel(self, which: Callable[[Request], bool] = every) -> list[Request]:
        pending = self._connecting.discard(which)
        for instant, due in self._due.items():
            pending += [fetched.request for fetched in due if which(fetched.request)]
            self._due[instant] = [fetched for fetched in due if not which(fetched.request)]
        self._in_flight -= len(pending)
        return pending

    def close(self) -> None:
        self.cancel()
        if self._watched is not None:
            self._watched.close()
            self._watched = None

    def _finished(self) -> list[Fetched]:
        now, instants = self.clock.now, self._instants
        finished: list[Fetched] = []
        while instants and instants[0] <= now:
            finished += self._due.pop(heappop(instants))
        self._in_flight -= len(finished)
        return finished


def _from_table(table: Mapping[str, FakeReply]) -> Callable[[Request], FakeReply]:
    return lambda request: table.get(request.url, NOT_FOUND)


def _fetched(request: Request, reply: FakeReply) -> Fetched:
    status, body, headers, lasts_s, error, detail = reply
    if lasts_s > request.timeout_s:
        lasts_s = request.timeout_s
        return Fetched(
            request,
            latency_s=lasts_s,
            total_s=lasts_s,
            error=ErrorKind.TIMEOUT,
            detail="first_byte_timeout",
        )
    if error is not None:
        return Fetched(request, latency_s=lasts_s, total_s=lasts_s, error=error, detail=detail)
    is_cut = len(body) > request.max_bytes
    if is_cut:
        body, detail = body[: request.max_bytes], "cut_at_cap"
    return Fetched(request, status, headers, body, lasts_s, lasts_s, None, detail, is_cut)
