"""One client's connection to one host: requests come in as they like, answers go out in order.

A request is judged by the host's limit when it *arrives*, however far ahead of the answers it was
sent, and answered after the wait that the limit asked for. Because answers keep their order, one
timer per connection is enough: it waits for the answer at the head of the line.

An asyncio Protocol, not streams: a page costs one call and one write. This file knows nothing of
processes and addresses.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from email.utils import formatdate
from functools import lru_cache
from itertools import count
from math import isinf
from typing import TYPE_CHECKING, cast

from . import wire
from .log import Record
from .reply import TEXT, SiteReply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from .host import DemoHost

MAX_AHEAD = 64  # requests that a connection may send before it must read
MESSAGES_KEPT = 4_096  # built pages, a few MB

_MALFORMED = wire.build(SiteReply(400, b"malformed request", TEXT))
_TOO_LARGE = wire.build(SiteReply(431, b"head too large", TEXT))
_NOT_ALLOWED = wire.build(SiteReply(405, b"GET and HEAD only", TEXT, (("Allow", "GET, HEAD"),)))


class WallClock:
    """Dates for headers, from the monotonic clock: a step of the wall clock changes no answer."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()
        self._second = 0
        self._line = b""

    def wall(self, now: float) -> float:
        """Seconds since the epoch at a monotonic instant."""
        return now + self._offset_s

    def date_line(self, now: float) -> bytes:
        """The Date header, made once a second."""
        second = int(now + self._offset_s)
        if second != self._second:
            self._second = second
            self._line = f"Date: {formatdate(second, usegmt=True)}\r\n".encode()
        return self._line


class Exchange:
    """One request and its answer; what a `Record` is made of once it is needed."""

    __slots__ = (
        "answered_at",
        "arrived_at",
        "connection",
        "due_at",
        "host",
        "in_flight",
        "message",
        "more_headers",
        "request",
        "sent_bytes",
        "silent_until",
    )

    def __init__(
        self, host: DemoHost, request: wire.RequestHead, arrived_at: float, connection: int
    ) -> None:
        self.host = host
        self.request = request
        self.arrived_at = arrived_at
        self.connection = connection
        self.in_flight = host.in_flight
        self.message = _NOT_ALLOWED
        self.more_headers = b""
        self.due_at = arrived_at
        self.sent_bytes = 0
        self.answered_at: float | None = None
        self.silent_until: float | None = None

    def record(self) -> Record:
        """The line in the log."""
        return Record(
            t=self.arrived_at,
            host=self.host.netloc,
            method=self.request.method,
            path=self.request.target,
            status=self.message.status,
            user_agent=self.request.user_agent,
            connection=self.connection,
            bytes=self.sent_bytes,
            answered_at=self.answered_at,
            silent_until=self.silent_until,
            in_flight=self.in_flight,
        )


class AccessLog:
    """Every exchange since the start, a file of those that ended if asked for, and who is here."""

    def __init__(self, file: TextIO | None = None) -> None:
        self.exchanges: list[Exchange] = []
        self.connections = count(1)
        self.guests: set[asyncio.Transport] = set()
        self._file = file

    def ended(self, exchange: Exchange) -> None:
        """An exchange will not change any more."""
        if self._file:
            self._file.write(json.dumps(exchange.record()) + "\n")

    async def close(self) -> None:
        """Send every client away, so that what was under way is in the file too."""
        for transport in tuple(self.guests):
            transport.abort()
        await asyncio.sleep(0)  # the aborted connections say farewell in the loop's next turn
        self.flush()

    def flush(self) -> None:
        """Let readers of the file see what there is."""
        if self._file:
            self._file.flush()


@lru_cache(maxsize=MESSAGES_KEPT)
def _page(host: DemoHost, target: str, *, zipped: bool) -> wire.Message:
    return wire.build(host.content(target), zipped=zipped)


class Connection(asyncio.Protocol):
    """The protocol that asyncio drives."""

    def __init__(self, host: DemoHost, log: AccessLog, clock: WallClock) -> None:
        self._host = host
        self._log = log
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._number = next(log.connections)
        self._received = b""
        self._line: deque[Exchange] = deque()  # arrived and not yet answered
        self._stream: Iterator[bytes] | None = None  # the body of the first in line
        self._timer: asyncio.TimerHandle | None = None
        self._is_full = False  # of bytes that the client does not read
        self._is_deaf = False  # nothing more is read from this client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        self._transport = cast("asyncio.Transport", transport)
        self._log.guests.add(self._transport)

    def data_received(self, data: bytes) -> None:
        """Take in every request that is complete; all of them arrived now."""
        now = self._loop.time()
        received = self._received + data if self._received else data
        while not self._is_deaf and (end := received.find(wire.HEAD_END)) >= 0:
            self._arrived(received[:end], now)
            received = received[end + len(wire.HEAD_END) :]
        self._received = received
        if len(received) > wire.MAX_HEAD_BYTES and not self._is_deaf:
            self._hang_up(_TOO_LARGE)

    def _hang_up(self, message: wire.Message) -> None:
        """Say why and close: what follows on this connection cannot be understood."""
        self._is_deaf = True
        self._transport.write(message.head + b"Connection: close\r\n\r\n" + message.body)
        self._transport.close()

    def _arrived(self, head: bytes, now: float) -> None:
        request = wire.parse_head(head)
        if request is None:
            self._hang_up(_MALFORMED)
            return
        host = self._host
        host.in_flight += 1
        exchange = Exchange(host, request, now, self._number)
        status, latency_s, headers, exchange.silent_until = host.decide(now, self._clock.wall(now))
        if headers:
            exchange.more_headers = wire.header_lines(headers)
        if status != 200:
            exchange.message = wire.build(host.content(request.target, status))
        elif request.method in ("GET", "HEAD"):
            zipped = host.site.gzip and request.accepts_gzip
            exchange.message = _page(host, request.target, zipped=zipped)
        exchange.due_at = now + latency_s + exchange.message.delay_s
        self._log.exchanges.append(exchange)
        self._line.append(exchange)
        self._is_deaf = not request.keeps_alive
        if len(self._line) == MAX_AHEAD:
            self._transport.pause_reading()
        if len(self._line) == 1:
            self._advance()

    def _advance(self) -> None:
        """Send what is due, in order; wait for the first that is not."""
        self._timer = None
        while self._line and not self._transport.is_closing():
            exchange, now = self._line[0], self._loop.time()
            if exchange.due_at > now:
                if not isinf(exchange.due_at):
                    self._timer = self._loop.call_at(exchange.due_at, self._advance)
                return
            self._send(exchange, now)
            if self._stream:
                return

    def _send(self, exchange: Exchange, now: float) -> None:
        message, request = exchange.message, exchange.request
        if not message.status:
            self._finish(exchange, now)
            self._transport.abort()
            return
        end = b"\r\n" if request.keeps_alive else b"Connection: close\r\n\r\n"
        parts = [message.head, exchange.more_headers, self._clock.date_line(now), end]
        if request.method != "HEAD" and message.stream:
            self._transport.write(b"".join(parts))
            self._stream = message.stream.chunks()
            self._pour()
            return
        if request.method != "HEAD":
            parts.append(message.body)
            exchange.sent_bytes = len(message.body)
        self._transport.write(b"".join(parts))
        self._finish(exchange, now)

    def _pour(self) -> None:
        """Send one piece of a stream, then let other connections have their turn."""
        self._timer = None
        exchange = self._line[0]
        if self._stream is None or exchange.message.stream is None or self._is_full:
            return
        data = next(self._stream, None)
        if data is None:
            self._stream = None
            self._transport.write(wire.LAST_CHUNK)
            self._finish(exchange, self._loop.time())
            self._advance()
            return
        self._transport.write(wire.chunk(data))
        exchange.sent_bytes += len(data)
        self._timer = self._loop.call_later(exchange.message.stream.pause_s, self._pour)

    def _finish(self, exchange: Exchange, now: float) -> None:
        exchange.answered_at = now
        self._line.popleft()
        self._host.in_flight -= 1
        self._log.ended(exchange)
        if not exchange.request.keeps_alive:
            self._transport.close()
        elif len(self._line) == MAX_AHEAD - 1:
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """The client reads too slowly for what is being sent."""
        self._is_full = True

    def resume_writing(self) -> None:
        """It has caught up."""
        self._is_full = False
        if self._stream and self._timer is None:
            self._pour()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """What was not answered never will be."""
        self._log.guests.discard(self._transport)
        if self._timer:
            self._timer.cancel()
        for exchange in self._line:
            self._host.in_flight -= 1
            self._log.ended(exchange)
        self._line.clear()
        self._stream = None
