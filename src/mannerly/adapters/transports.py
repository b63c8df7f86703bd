"""The transports of httpx and httpx2, which have the same interface in two packages.

A client follows redirects above its transport, so each hop comes here and takes a slot of its own.
Both packages tell a `trace` of each request when its connection is open and its bytes leave: the
delay to the next request counts from then.

A body that was looked at goes on as a stream that begins with what was read.

This module imports neither package: `httpx` and `httpx2` beside it name their classes.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Unpack

from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.aio_policies import AsyncPolicies
from mannerly.politeness.drivers.thread_policies import ThreadedPolicies
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.model import ErrorKind

from .sending import (
    ANY_AGENT,
    LOOKED_BYTES,
    ROBOTS_PATH,
    ROBOTS_TIMEOUT_S,
    Attempts,
    SlotOptions,
    checked,
    digest_of,
    first,
    first_async,
    is_looked_at,
    one_of,
    refusal,
    sending,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from os import PathLike
    from types import ModuleType

    from mannerly.politeness.drivers.policies import FetchedRobots
    from mannerly.politeness.drivers.slots import Slot
    from mannerly.politeness.errors import RobotsDisallowed

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


class BegunStream:
    """A body of which the beginning was read."""

    def __init__(self, begun: list[bytes], rest: Iterator[bytes], stream: Any) -> None:
        self._begun, self._rest, self._stream = begun, rest, stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._begun
        yield from self._rest

    def close(self) -> None:
        """Close the stream behind it."""
        self._stream.close()


class AsyncBegunStream:
    """The same for asyncio."""

    def __init__(self, begun: list[bytes], rest: AsyncIterator[bytes], stream: Any) -> None:
        self._begun, self._rest, self._stream = begun, rest, stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._begun:
            yield chunk
        async for chunk in self._rest:
            yield chunk

    async def aclose(self) -> None:
        """Close the stream behind it."""
        await self._stream.aclose()


def _is_repeatable(request: Any, bytes_stream: type) -> bool:
    """Return whether a request can be sent again: its body is in memory, or there is none."""
    return isinstance(request.stream, bytes_stream)


def _plain(agent: str) -> dict[str, Any]:
    """Return the options of a request for robots.txt."""
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), ROBOTS_TIMEOUT_S)
    return {"headers": {"User-Agent": agent}, "extensions": {"timeout": timeouts}}


class SlotTransport:
    """A transport for threads, around one of the client's own.

    Args:
        transport: sends the requests; None: a new `HTTPTransport`.
        politeness: shared by every client that is given it; None: one for this transport alone,
            with the default settings.
        memory: of that one: `"user"`, a path or the URL of a server shares hosts with other
            processes; None: it is alone.
        retries: how often a request is repeated at most (`sending`).
        robots: `"obey"` raises `RobotsDisallowed` for a URL that robots.txt forbids.
        waiting: how a request waits for its slot.
    """

    _kinds: Kinds
    _bytes: type  # of the client: a body in memory
    _begun: type[BegunStream]
    _request: type
    _disallowed: type[RobotsDisallowed]

    def __init__(
        self,
        transport: Any = None,
        *,
        politeness: ThreadedPoliteness | None = None,
        memory: str | PathLike[str] | None = None,
        retries: int = 0,
        robots: Literal["obey"] | None = None,
        **waiting: Unpack[SlotOptions],
    ) -> None:
        self._transport = self._default() if transport is None else transport
        self._is_own = politeness is None
        self.politeness = one_of(politeness, memory) or ThreadedPoliteness(memory=memory)
        self._retries = checked(retries, robots)
        self._obeys = robots is not None
        self._waiting = waiting
        self._policies: ThreadedPolicies | None = None

    def handle_request(self, request: Any) -> Any:
        """Wait for a slot of the request's host, send it, and report what came back."""
        if self._obeys and request.url.path != ROBOTS_PATH:
            self._obey(request)
        attempts: Attempts[Any] = Attempts(
            self._retries, request.method, is_repeatable=_is_repeatable(request, self._bytes)
        )
        while True:
            slot = None
            try:
                with self.politeness.slot(str(request.url), **self._waiting) as slot:
                    response = self._ask(slot, request)
                attempts.answered(slot, response)
                if attempts.due is not None:  # kept, without its connection
                    body = b"".join(response.stream)
                    response.stream.close()
                    response.stream = self._bytes(body)
            except Exception as error:  # noqa: BLE001 - raised again, unless something follows
                attempts.failed(slot, error)
            if attempts.due is None:
                return attempts.answer
            self.politeness.sleep_until(attempts.due)

    def _obey(self, request: Any) -> None:
        url, agent = str(request.url), request.headers.get("user-agent", ANY_AGENT)
        if self._policies is None:

            def fetch(url: str) -> FetchedRobots:
                asked = self._request("GET", url, **_plain(agent))
                response = self._transport.handle_request(asked)
                try:
                    return response.status_code, first(response.stream), response.headers
                finally:
                    response.close()

            self._policies = ThreadedPolicies(fetch, agent=agent, politeness=self.politeness)
        why = refusal(self._policies.policy(url), url, agent)
        if why is not None:
            raise self._disallowed(why)

    def _ask(self, slot: Slot, request: Any) -> Any:
        given = request.extensions.get("trace")

        def trace(event: str, info: Any) -> None:
            _note(slot, event)
            if given is not None:
                given(event, info)

        body, is_whole = b"", False
        with sending(slot, self._kinds), _traced(request, trace):
            response = self._transport.handle_request(request)
            slot.answered()
            if is_looked_at(response.status_code, response.headers):
                begun, rest, stream = [], iter(response.stream), response.stream
                for chunk in rest:
                    begun.append(chunk)
                    if sum(map(len, begun)) > LOOKED_BYTES:
                        break
                else:
                    body, is_whole = b"".join(begun), True
                response.stream = self._begun(begun, rest, stream)
        digest = digest_of(body) if is_whole else None
        slot.report(status=response.status_code, headers=response.headers, body_digest=digest)
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
    _bytes: type
    _begun: type[AsyncBegunStream]
    _request: type
    _disallowed: type[RobotsDisallowed]

    def __init__(
        self,
        transport: Any = None,
        *,
        politeness: AsyncPoliteness | None = None,
        memory: str | PathLike[str] | None = None,
        retries: int = 0,
        robots: Literal["obey"] | None = None,
        **waiting: Unpack[SlotOptions],
    ) -> None:
        self._transport = self._default() if transport is None else transport
        self._is_own = politeness is None
        self.politeness = one_of(politeness, memory) or AsyncPoliteness(memory=memory)
        self._retries = checked(retries, robots)
        self._obeys = robots is not None
        self._waiting = waiting
        self._policies: AsyncPolicies | None = None

    async def handle_async_request(self, request: Any) -> Any:
        """Wait for a slot of the request's host, send it, and report what came back."""
        if self._obeys and request.url.path != ROBOTS_PATH:
            await self._obey(request)
        attempts: Attempts[Any] = Attempts(
            self._retries, request.method, is_repeatable=_is_repeatable(request, self._bytes)
        )
        while True:
            slot = None
            try:
                async with self.politeness.slot(str(request.url), **self._waiting) as slot:
                    response = await self._ask(slot, request)
                attempts.answered(slot, response)
                if attempts.due is not None:  # kept, without its connection
                    body = b"".join([chunk async for chunk in response.stream])
                    await response.stream.aclose()
                    response.stream = self._bytes(body)
            except Exception as error:  # noqa: BLE001 - raised again, unless something follows
                attempts.failed(slot, error)
            if attempts.due is None:
                return attempts.answer
            await self.politeness.sleep_until(attempts.due)

    async def _obey(self, request: Any) -> None:
        url, agent = str(request.url), request.headers.get("user-agent", ANY_AGENT)
        if self._policies is None:

            async def fetch(url: str) -> FetchedRobots:
                asked = self._request("GET", url, **_plain(agent))
                response = await self._transport.handle_async_request(asked)
                try:
                    body = await first_async(response.stream)
                    return response.status_code, body, response.headers
                finally:
                    await response.aclose()

            self._policies = AsyncPolicies(fetch, agent=agent, politeness=self.politeness)
        why = refusal(await self._policies.policy(url), url, agent)
        if why is not None:
            raise self._disallowed(why)

    async def _ask(self, slot: Slot, request: Any) -> Any:
        given = request.extensions.get("trace")

        async def trace(event: str, info: Any) -> None:
            _note(slot, event)
            if given is not None:
                await given(event, info)

        body, is_whole = b"", False
        with sending(slot, self._kinds), _traced(request, trace):
            response = await self._transport.handle_async_request(request)
            slot.answered()
            if is_looked_at(response.status_code, response.headers):
                begun, rest, stream = [], aiter(response.stream), response.stream
                async for chunk in rest:
                    begun.append(chunk)
                    if sum(map(len, begun)) > LOOKED_BYTES:
                        break
                else:
                    body, is_whole = b"".join(begun), True
                response.stream = self._begun(begun, rest, stream)
        digest = digest_of(body) if is_whole else None
        slot.report(status=response.status_code, headers=response.headers, body_digest=digest)
        return response

    async def aclose(self) -> None:
        """Close the transport that sends, and the politeness unless it was given."""
        await self._transport.aclose()
        if self._is_own:
            await self.politeness.aclose()

    def _default(self) -> Any:
        raise NotImplementedError
