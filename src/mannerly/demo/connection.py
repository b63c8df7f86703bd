"""One client's connection to one host, and the access log of all connections.

The host's limit judges a request when it is read, also when the client sends it before earlier
answers are out (pipelining). The log has the instant at which it arrived (`arrivals`). The answer
leaves after the latency that the limit decided. Answers keep the order of the requests, so one
timer per connection is enough: it waits for the first unanswered request.

This is an asyncio Protocol and not a pair of streams, because a page then costs one call and one
write. This module knows nothing of processes and addresses.
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
from .sockets import Arrived
from .wire import TEXT, SiteReply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from .host import DemoHost

MAX_AHEAD = 64  # unanswered requests of one connection; beyond that it is not read from
MESSAGES_KEPT = 4_096  # built pages in memory, a few MB

_MALFORMED = wire.build(SiteReply(400, b"malformed request", TEXT))
_TOO_LARGE = wire.build(SiteReply(431, b"head too large", TEXT))
_NOT_ALLOWED = wire.build(SiteReply(405, b"GET and HEAD only", TEXT, (("Allow", "GET, HEAD"),)))


class WallClock:
    """Dates for headers, derived from the monotonic clock.

    So an adjustment of the system's clock during a crawl changes no Date and no Retry-After.
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()
        self._second = 0
        self._line = b""

    def wall(self, now: float) -> float:
        """Return the seconds since the epoch at a monotonic instant."""
        return now + self._offset_s

    def date_line(self, now: float) -> bytes:
        """Return the Date header; it is formatted once a second."""
        second = int(now + self._offset_s)
        if second != self._second:
            self._second = second
            self._line = f"Date: {formatdate(second, usegmt=True)}\r\n".encode()
        return self._line


class Exchange:
    """One request and its answer; `record` turns it into a line of the log."""

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
        """Return this exchange as a record of the log."""
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
    """All exchanges since the start, the open connections, and an optional log file.

    The file gets an exchange when it has ended.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self.exchanges: list[Exchange] = []
        self.connections = count(1)
        self.transports: set[asyncio.Transport] = set()
        self._file = file

    def ended(self, exchange: Exchange) -> None:
        """Write an exchange that will not change any more to the file."""
        if self._file:
            self._file.write(json.dumps(exchange.record()) + "\n")

    async def close(self) -> None:
        """Close all connections, so that unanswered requests are in the file too."""
        for transport in tuple(self.transports):
            transport.abort()
        await asyncio.sleep(0)  # lets the loop call `connection_lost` of the aborted ones
        self.flush()

    def flush(self) -> None:
        """Flush the file, so that readers see all exchanges that have ended."""
        if self._file:
            self._file.flush()


@lru_cache(maxsize=MESSAGES_KEPT)
def _page(host: DemoHost, target: str, *, zipped: bool) -> wire.Message:
    return wire.build(host.content(target), zipped=zipped)


class Connection(asyncio.Protocol):
    """The asyncio protocol of one client connection."""

    def __init__(self, host: DemoHost, log: AccessLog, clock: WallClock) -> None:
        self._host = host
        self._log = log
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._number = next(log.connections)
        self._received = b""
        self._unanswered: deque[Exchange] = deque()
        self._stream: Iterator[bytes] | None = None  # the body of the first unanswered exchange
        self._timer: asyncio.TimerHandle | None = None
        self._is_full = False  # the send buffer is: the client reads too slowly
        self._ignores_input = False  # after the client's last request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport of a new connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._log.transports.add(self._transport)

    def data_received(self, data: bytes) -> None:
        """Handle every complete request in the buffer; all of them arrived with its last bytes."""
        now = self._loop.time()
        at = data.at if isinstance(data, Arrived) else now
        received = self._received + data if self._received else data
        while not self._ignores_input and (end := received.find(wire.HEAD_END)) >= 0:
            self._arrived(received[:end], now, at)
            received = received[end + len(wire.HEAD_END) :]
        self._received = received
        if len(received) > wire.MAX_HEAD_BYTES and not self._ignores_input:
            self._send_error_and_close(_TOO_LARGE)

    def _send_error_and_close(self, message: wire.Message) -> None:
        """Send an error and close: the rest of the input cannot be parsed."""
        self._ignores_input = True
        self._transport.write(message.head + b"Connection: close\r\n\r\n" + message.body)
        self._transport.close()

    def _arrived(self, head: bytes, now: float, at: float) -> None:
        request = wire.parse_head(head)
        if request is None:
            self._send_error_and_close(_MALFORMED)
            return
        host = self._host
        host.in_flight += 1
        exchange = Exchange(host, request, at, self._number)
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
        self._unanswered.append(exchange)
        self._ignores_input = not request.keeps_alive
        if len(self._unanswered) == MAX_AHEAD:
            self._transport.pause_reading()
        if len(self._unanswered) == 1:
            self._advance()

    def _advance(self) -> None:
        """Send all answers that are due, in order; set the timer for the first that is not."""
        self._timer = None
        while self._unanswered and not self._transport.is_closing():
            exchange, now = self._unanswered[0], self._loop.time()
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
            self._send_chunk()
            return
        if request.method != "HEAD":
            parts.append(message.body)
            exchange.sent_bytes = len(message.body)
        self._transport.write(b"".join(parts))
        self._finish(exchange, now)

    def _send_chunk(self) -> None:
        """Send one chunk of a stream; the next one after its pause, when others had their turn."""
        self._timer = None
        exchange = self._unanswered[0]
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
        self._timer = self._loop.call_later(exchange.message.stream.pause_s, self._send_chunk)

    def _finish(self, exchange: Exchange, now: float) -> None:
        exchange.answered_at = now
        self._unanswered.popleft()
        self._host.in_flight -= 1
        self._log.ended(exchange)
        if not exchange.request.keeps_alive:
            self._transport.close()
        elif len(self._unanswered) == MAX_AHEAD - 1:
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Stop sending: the client reads too slowly (called by asyncio)."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Go on sending: the client has caught up (called by asyncio)."""
        self._is_full = False
        if self._stream and self._timer is None:
            self._send_chunk()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Log the unanswered requests as such, and forget the connection."""
        self._log.transports.discard(self._transport)
        if self._timer:
            self._timer.cancel()
        for exchange in self._unanswered:
            self._host.in_flight -= 1
            self._log.ended(exchange)
        self._unanswered.clear()
        self._stream = None
