"""The connections of a server: how many there are, and how long one may say nothing.

uvicorn alone waits for a request's headers without limit, and accepts connections until the process
has no descriptor left. Here

    headers     have to arrive within `HEADERS_S`; else the connection is closed
    number      at most `most_connections()`; one too many takes the place of the connection that
                has waited for a request the longest, or is closed itself if all are being answered
    lines       of the log that repeat are written once in `QUIET_S`, with their number
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp

HEADERS_S = 10.0
MOST_CONNECTIONS = 1000
FEWEST_CONNECTIONS = 8
QUIET_S = 10.0
_OTHERS = 64  # descriptors for stores, pipes and files


def most_connections() -> int:
    """Return how many connections leave enough descriptors, for twice as many and other files."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    import resource

    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, allowed // 2 - _OTHERS))


def web_config(
    app: ASGIApp,
    *,
    log_level: str,
    host: str = "127.0.0.1",
    port: int = 0,
    lifespan: bool = True,
    connections: int | None = None,
) -> uvicorn.Config:
    """Return the configuration of a server whose connections are limited."""
    most = most_connections() if connections is None else connections
    for name in ("asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(_REPEATS)
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level=log_level,
        lifespan="on" if lifespan else "off",
        server_header=False,
        http=ClientConnection,
        ws="none",
        limit_concurrency=most + 1,  # it refuses requests when there are so many connections
        backlog=most,  # so many are accepted before the first of them is handled
    )


class ClientConnection(H11Protocol):
    """One connection of a client."""

    waits_since: float | None = None  # for a request, by the loop's clock; None: one is answered
    _closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Take what has arrived."""
        super().data_received(data)
        if self._is_answering:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self._is_answering and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete  # None before the first one

    def _wait(self) -> None:
        self._stop_waiting()
        self.waits_since = self.loop.time()
        self._closing = self.loop.call_later(HEADERS_S, self.transport.abort)

    def _stop_waiting(self) -> None:
        self.waits_since = None
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None

    def _make_room(self) -> None:
        """Close the connection that has waited the longest, or this one."""
        waiting = [
            (each.waits_since, number, each)
            for number, each in enumerate(self.connections)
            if isinstance(each, ClientConnection)
            and each.waits_since is not None
            and not each.transport.is_closing()
        ]
        chosen = min(waiting)[2] if waiting else self
        self.connections.discard(chosen)  # it is closed in the next turn of the loop
        chosen.transport.abort()


class RepeatedLines(logging.Filter):
    """Lets a message of a logger through once in `QUIET_S`, then with the number of the others."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written."""
        key = (record.name, str(record.msg)[:200])
        said_at, left_out = self._said.get(key, (0.0, 0))
        if record.created - said_at < QUIET_S:
            self._said[key] = said_at, left_out + 1
            return False
        if len(self._said) > 100:
            self._said.clear()
        self._said[key] = record.created, 0
        if left_out:
            record.msg = f"{record.msg} (and {left_out:,} more times since the last such line)"
        return True


_REPEATS = RepeatedLines()
