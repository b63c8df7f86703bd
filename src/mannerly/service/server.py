"""The web server of a service and of the page of one crawl: it ends in bounded time.

uvicorn alone waits without limit for clients that read an event stream, and for those that read
nothing at all.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from .ending import Ending

LAST_BYTES_S = 0.5  # for clients to take what was written to their connections
_LOOKS = 20  # in this time, whether all have
STUCK_S = 10.0  # then even requests are left behind that cannot be cancelled: a disk that hangs


class Server(uvicorn.Server):
    """Serve until told to end; then answer what is under way, as `ending` says, and end.

    Args:
        config: of uvicorn.
        ending: knows the requests under way.
        has_signals: SIGINT and SIGTERM end it; otherwise `should_exit` alone.
    """

    def __init__(self, config: uvicorn.Config, ending: Ending, *, has_signals: bool = True) -> None:
        super().__init__(config)
        config.timeout_graceful_shutdown = round(STUCK_S)
        self._ending = ending
        self._has_signals = has_signals

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take over signals, if they are for this server."""
        if not self._has_signals:
            yield
            return
        with super().capture_signals():
            yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and end those that there are."""
        ending = asyncio.create_task(self._end_connections())
        await super().shutdown(sockets)
        await ending

    async def _end_connections(self) -> None:
        await self._ending.end()
        connections = self.server_state.connections
        for _ in range(_LOOKS):
            if not connections:
                return
            await asyncio.sleep(LAST_BYTES_S / _LOOKS)
        for connection in list(connections):
            connection.transport.abort()
