"""The contract of a fetcher: curl on the network, or a fake in virtual time.

The contract is synchronous, because a shard's loop is: start the requests that are due, wait on
the sockets until the next wake-up, handle the finished requests.

- Bodies come back as they were received; the engine decodes them (`decoding`).
- Every started request comes back exactly once: from `wait`, or from `cancel`.
- `start` never blocks, and never raises because of a URL or a server: a refusal comes back from
  `wait` like any answer.
- Of `status` and `error` exactly one is set. A body that was cut at `max_bytes` is still an answer
  (`is_truncated`): asking again would bring the same bytes, and the first ten megabytes of a page
  hold its links.
- An answer of 300 or more counts even if its body broke off (`is_truncated`, and `detail` says
  how): the content of a redirect or a refusal is in its headers, and a Retry-After must not be
  lost because the connection broke after it.
- Redirects are not followed. Set-Cookie is left out of the answer's headers; cookies are kept and
  sent only if the fetcher was told to.

An `ErrorKind` says something about the server, so it belongs in the politeness report. With a
`LocalError` the failure says nothing about the server: its permit is cancelled.

`Request` and `Fetched` are made for every page and read a dozen times; a slotted class takes half
the time of a named tuple for both. They are never changed after they were made.
This module imports no client and no socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.model import Fetched, Request
    from mannerly.politeness.model import Instant


HEADERS_SUFFICE = 300  # from this status on an answer counts without its body


def always(_request: Request, _instant: Instant, _address: str) -> bool:
    """Let every request leave: the judge of a fetcher that was not told to ask another one."""
    return True


def every(_request: Request) -> bool:
    """Choose every request."""
    return True


def never(_request: Request, _instant: Instant, _address: str) -> bool:
    """Let no request leave: the judge of a fetcher whose run ends."""
    return False


class Fetcher(Protocol):
    """Starts requests and returns the finished ones. One owner, one thread, one process."""

    @property
    def in_flight(self) -> int:
        """Number of requests that were started and have not come back yet."""
        ...

    @property
    def oldest(self) -> Request | None:
        """The request that was started first of those in flight; None if there is none."""
        ...

    @property
    def was_idle(self) -> bool:
        """Return whether the last `wait` had nothing to do for a while."""
        ...

    def start(self, request: Request) -> None:
        """Begin a request; it is sent at the beginning of the next `wait`."""
        ...

    def wait(self, timeout_s: float) -> list[Fetched]:
        """Return the finished requests.

        Blocks until a request finishes, a watched descriptor is readable, or the time is over.
        The time is finite; 0 means: do what can be done at once.
        """
        ...

    def ask(self, may_leave: Callable[[Request, Instant, str], bool]) -> None:
        """Ask this immediately before a request is sent, when its connection is open.

        The text is the address that was connected; it is empty if that is unknown, as with a proxy.
        If it may not leave, nothing is sent and it comes back with `LocalError.HELD`.
        """
        ...

    def sent(self) -> list[tuple[Request, Instant]]:
        """Return the requests that were sent since the last call, each with its instant.

        Opening a connection takes time, so the server sees a request later than it was started:
        politeness counts from the instant of sending.
        """
        ...

    def watch(self, descriptor: int) -> None:
        """Let `wait` end early while this descriptor is readable; the caller drains it.

        On Windows it must be a socket's.
        """
        ...

    def cancel(self, which: Callable[[Request], bool] = every) -> list[Request]:
        """Drop requests in flight and return them, so that their permits can be cancelled."""
        ...

    def set_max_connections(self, most: int) -> None:
        """Change how many connections may be open, and how many requests in flight."""

    def close(self) -> None:
        """Cancel all requests and close all sockets. A second call does nothing."""
        ...
