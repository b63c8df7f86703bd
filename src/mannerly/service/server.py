"""The web server of a service and of the page of one crawl: it ends in bounded time.

uvicorn alone waits without limit for clients that read an event stream or read nothing at all, and
answers cancelled requests with "500 Internal Server Error". Here a server ends in this order:

    1. Event streams end, each as a whole answer.
    2. Other requests have `LAST_ANSWERS_S` to be answered.
    3. Requests without an answer by then are cancelled, and answered 503 with the reason.
    4. Connections are closed; a client whose answer had begun sees that a part is missing.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import uvicorn

from .operations import Problem

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LAST_BYTES_S = 0.5  # for clients to take what was written to their connections
_POLLS = 20  # in this time, whether all have
STUCK_S = 10.0  # then even requests are left behind that cannot be cancelled: a disk that hangs


class WebServer(uvicorn.Server):
    """Serve until told to end; then answer what is under way, as `LastAnswers` says, and end.

    Args:
        config: of uvicorn.
        ending: knows the requests under way.
        has_signals: SIGINT and SIGTERM end it; otherwise `should_exit` alone.
    """

    def __init__(
        self, config: uvicorn.Config, ending: LastAnswers, *, has_signals: bool = True
    ) -> None:
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
        for _ in range(_POLLS):
            if not connections:
                return
            await asyncio.sleep(LAST_BYTES_S / _POLLS)
        for connection in list(connections):
            connection.transport.abort()


LAST_ANSWERS_S = 1.0
_REFUSALS_S = 0.5  # for the answers 503 to be sent


class LastAnswers:
    """The requests that one server has to answer before it ends."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()
        self._open: set[asyncio.Task[Any]] = set()
        self._unanswered: set[asyncio.Task[Any]] = set()

    @property
    def has_begun(self) -> bool:
        """Return whether streams have to end."""
        return self._begun.is_set()

    async def sleep(self, seconds: float) -> None:
        """Wait, until the end begins at most."""
        try:
            async with asyncio.timeout(seconds):
                await self._begun.wait()
        except TimeoutError:
            pass

    async def end(self) -> None:
        """End streams, wait for the answers under way, and refuse what has none in the end."""
        self._begun.set()
        if self._open:
            await asyncio.wait(self._open, timeout=LAST_ANSWERS_S)
        late = set(self._unanswered)
        for request in late:
            request.cancel()
        if late:
            await asyncio.wait(late, timeout=_REFUSALS_S)

    def around(self, app: ASGIApp) -> ASGIApp:
        """Return an application whose requests are known here until they are answered."""

        async def served(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            request = asyncio.current_task()
            assert request is not None, "servers run each request in a task"

            async def answer(message: Message) -> None:
                self._unanswered.discard(request)
                await send(message)

            self._open.add(request)
            self._unanswered.add(request)
            try:
                await app(scope, receive, answer)
            except asyncio.CancelledError:
                if request not in self._unanswered:
                    raise
                await _refusal().response()(scope, receive, send)
            finally:
                self._open.discard(request)
                self._unanswered.discard(request)

        return served


def _refusal() -> Problem:
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "this server has ended before it could answer")
