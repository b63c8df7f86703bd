"""What the fetch stage promises, whoever does the fetching: curl, or a fake in virtual time.

The contract is synchronous, because a shard's loop is: start what is due, wait on the sockets
until the next wake-up, handle what finished.

- Every started request comes back exactly once: from `wait`, or from `cancel_all`.
- `start` never blocks and never raises for what a URL or a server does: a refusal comes back
  from `wait` like any answer.
- Of `status` and `error` exactly one is set. A body that was cut at `max_bytes` is an answer all
  the same (`is_truncated`): the server did what we asked, asking again would bring the same
  bytes, and the first ten megabytes of a page hold its links.
- An answer of 300 or more stands even if its body broke off (`is_truncated`, and `detail` says
  how): what a redirect or a refusal has to say is in its headers, and a Retry-After must not be
  forgotten because a connection died after it.
- Redirects are not followed, cookies are neither kept nor sent.

An `ErrorKind` says something about the server, so it belongs in the politeness report; a
`LocalError` does not (no byte of an answer was waited for in vain): its permit is cancelled.

`Request` and `Fetched` are made for every page and read a dozen times; a slotted class takes half
the time of a named tuple for both. Nobody changes one that was made.
This file knows no client and no socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mannerly.crawler.model import Fetched, Request
    from mannerly.politeness.model import Instant


class Fetcher(Protocol):
    """Starts requests and tells which finished. One owner, one thread, one process."""

    @property
    def in_flight(self) -> int:
        """Requests that were started and have not come back yet."""
        ...

    def start(self, request: Request) -> None:
        """Begin a request; it is sent within the next `wait`, at its very beginning."""
        ...

    def wait(self, timeout_s: float) -> list[Fetched]:
        """What finished; blocks until something does, a watched descriptor is readable,
        or the time is over. The time is finite; with 0 it does what can be done at once.
        """
        ...

    def sent(self) -> list[tuple[Request, Instant]]:
        """What has left since the last call, and when. A connection may take its time to open, so
        the server sees a request later than it was started: politeness counts from here.
        """
        ...

    def watch(self, descriptor: int) -> None:
        """From now on `wait` ends early while this descriptor is readable. Its owner drains it."""
        ...

    def cancel_all(self) -> list[Request]:
        """Drop everything in flight and name it: whoever holds the permits gives them back."""
        ...

    def close(self) -> None:
        """Cancel everything and give back every socket. A second call does nothing."""
        ...
