"""The transports of httpx and httpx2, which have the same interface in two packages.

A client follows redirects above its transport, so each hop comes here and takes a slot of its own.
Both packages tell a `trace` of each request when its connection is open and its bytes leave: the
delay to the next request counts from then.

This module imports neither package: `httpx` and `httpx2` beside it name their classes.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Unpack

from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.model import ErrorKind

from .sending import SlotOptions, one_of, sending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike
    from types import ModuleType

    from mannerly.politeness.drivers.slots import Slot

    from .sending import Kinds


def kinds_of(client: ModuleType) -> Kinds:
    """Return the kinds of error that the exceptions of httpx or httpx2 mean for a host."""
    return (
        (client.PoolTimeout, None),  # too many requests of our own
        (client.TimeoutException, ErrorKind.TIMEOUT),
        (client.ConnectError, ErrorKind.CONNECT),
        (client.NetworkError, ErrorKind.RESET),
        (client.RemoteProtocolError, ErrorKind.RESET),  # nearly always: closed without an answer
    )


def _note(slot: Slot, event: str) -> None:
    if event.endswith(".send_request_headers.started"):
        slot.sent()


@contextmanager
def _traced(request: Any, trace: Callable[[str, Any], Any]) -> Iterator[None]:
    """Have a request traced while it is sent; the next hop of a redirect copies its extensions."""
    given = request.extensions
    request.extensions = {**given, "trace": trace}
    try:
        yield
    finally:
        request.extensions = given


class SlotTransport:
    """A transport for threads, around one of the client's own.

    Args:
        transport: sends the requests; None: a new `HTTPTransport`.
        politeness: shared by every client that is given it; None: one for this transport alone,
            with the default settings.
        memory: of that one: `"user"`, a path or the URL of a server shares hosts with other
            processes; None: it is alone.
        waiting: how a request waits for its slot.
    """

    _kinds: Kinds

    def __init__(
        self,
        transport: Any = None,
        *,
        politeness: ThreadedPoliteness | None = None,
        memory: str | PathLike[str] | None = None,
        **waiting: Unpack[SlotOptions],
    ) -> None:
        self._transport = self._default() if transport is None else transport
        self._is_own = politeness is None
        self.politeness = one_of(politeness, memory) or ThreadedPoliteness(memory=memory)
        self._waiting = waiting

    def handle_request(self, request: Any) -> Any:
        """Wait for a slot of the request's host, send it, and report what came back."""
        given = request.extensions.get("trace")
        with self.politeness.slot(str(request.url), **self._waiting) as slot:

            def trace(event: str, info: Any) -> None:
                _note(slot, event)
                if given is not None:
                    given(event, info)

            with sending(slot, self._kinds), _traced(request, trace):
                response = self._transport.handle_request(request)
            slot.report(status=response.status_code, headers=response.headers)
            return response

    def close(self) -> None:
        """Close the transport that sends, and the politeness unless it was given."""
        self._transport.close()
        if self._is_own:
            self.politeness.close()

    def _default(self) -> Any:
        raise NotImplementedError


class AsyncSlotTransport:
    """The same for asyncio. For the arguments see `SlotTransport`."""

    _kinds: Kinds

    def __init__(
        self,
        transport: Any = None,
        *,
        politeness: AsyncPoliteness | None = None,
        memory: str | PathLike[str] | None = None,
        **waiting: Unpack[SlotOptions],
    ) -> None:
        self._transport = self._default() if transport is None else transport
        self._is_own = politeness is None
        self.politeness = one_of(politeness, memory) or AsyncPoliteness(memory=memory)
        self._waiting = waiting

    async def handle_async_request(self, request: Any) -> Any:
        """Wait for a slot of the request's host, send it, and report what came back."""
        given = request.extensions.get("trace")
        async with self.politeness.slot(str(request.url), **self._waiting) as slot:

            async def trace(event: str, info: Any) -> None:
                _note(slot, event)
                if given is not None:
                    await given(event, info)

            with sending(slot, self._kinds), _traced(request, trace):
                response = await self._transport.handle_async_request(request)
            slot.report(status=response.status_code, headers=response.headers)
            return response

    async def aclose(self) -> None:
        """Close the transport that sends, and the politeness unless it was given."""
        await self._transport.aclose()
        if self._is_own:
            await self.politeness.aclose()

    def _default(self) -> Any:
        raise NotImplementedError
