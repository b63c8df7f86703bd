"""The end of a server, for the requests that are under way when it comes.

Cancelled requests would be answered "500 Internal Server Error" by the web server. Here, in order:

    1. Event streams end, each as a whole answer.
    2. Other requests have `LAST_ANSWERS_S` to be answered.
    3. Those that have no answer by then are cancelled, and answered 503 with the reason.

An answer that has begun cannot become another one: `server` closes its connection in the end, so
that the client sees that a part is missing.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from .problems import Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LAST_ANSWERS_S = 1.0
_REFUSALS_S = 0.5  # for the answers 503 to be sent


class Ending:
    """The end of one server: those who serve ask for it, and one calls `end`."""

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
