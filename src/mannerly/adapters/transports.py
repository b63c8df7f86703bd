"""The transports of httpx and httpx2, which have the same interface in two packages.

A client follows redirects above its transport, so each hop comes here and takes a slot of its own.
Both packages tell a `trace` of each request when its connection is open and its bytes leave: the
delay to the next request counts from then.

A body that was looked at goes on as a stream that begins with what was read, and that ends with the
error that was met, if any.

This module imports neither package: `httpx` and `httpx2` beside it name their classes.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Literal, Unpack

from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.aio_policies import AsyncPolicies
from mannerly.politeness.drivers.thread_policies import ThreadedPolicies
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.model import ErrorKind

from .attempts import Attempts, attempted, attempted_async
from .sending import (
    ANY_AGENT,
    LOOKED_BYTES,
    ROBOTS_PATH,
    ROBOTS_TIMEOUT_S,
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
    """A body that is read in two parts: its beginning here, the rest by the client."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._rest = stream, iter(stream)
        self._begun: list[bytes] = []
        self._error: Exception | None = None

    def begin(self, most: float) -> bytes | None:
        """Read until more than so many bytes are there; return the body if that is all of it."""
        try:
            for chunk in self._rest:
                self._begun.append(chunk)
                if sum(map(len, self._begun)) > most:
                    return None
        except Exception as error:
            self._error = error  # for the client, when it reads on
            raise
        return b"".join(self._begun)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._begun
        if self._error is not None:
            raise self._error
        yield from self._rest

    def close(self) -> None:
        """Close the stream behind it."""
        self._stream.close()


class AsyncBegunStream:
    """The same for asyncio."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._rest = stream, aiter(stream)
        self._begun: list[bytes] = []
        self._error: Exception | None = None

    async def begin(self, most: float) -> bytes | None:
        """Read until more than so many bytes are there; return the body if that is all of it."""
        try:
            async for chunk in self._rest:
                self._begun.append(chunk)
                if sum(map(len, self._begun)) > most:
                    return None
        except Exception as error:
            self._error = error
            raise
        return b"".join(self._begun)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._begun:
            yield chunk
        if self._error is not None:
            raise self._error
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
        self._policies = ThreadedPolicies(
            partial(self._fetch, ANY_AGENT), agent=ANY_AGENT, politeness=self.politeness
        )

    def handle_request(self, request: Any) -> Any:
        """Wait for a slot of the request's host, send it, and report what came back."""
        if self._obeys and request.url.path != ROBOTS_PATH:
            self._obey(request)
        attempts: Attempts[Any] = Attempts(
            self._retries, request.method, is_repeatable=_is_repeatable(request, self._bytes)
        )
        return attempted(
            attempts,
            self.politeness,
            str(request.url),
            self._waiting,
            lambda slot: self._ask(slot, request),
            self._keep,
        )

    def _obey(self, request: Any) -> None:
        url, agent = str(request.url), request.headers.get("user-agent", ANY_AGENT)
        fetch = partial(self._fetch, agent)
        waiting: SlotOptions = {"wait_when_open": False, **self._waiting}
        policy = self._policies.policy(url, agent=agent, fetch=fetch, **waiting)
        why = refusal(policy, url, agent)
        if why is not None:
            raise self._disallowed(why)

    def _fetch(self, agent: str, url: str) -> FetchedRobots:
        response = self._transport.handle_request(self._request("GET", url, **_plain(agent)))
        try:
            body = first(response.stream, response.status_code)
            return response.status_code, body, response.headers
        finally:
            response.close()

    def _ask(self, slot: Slot, request: Any) -> Any:
        given = request.extensions.get("trace")

        def trace(event: str, info: Any) -> None:
            _note(slot, event)
            if given is not None:
                given(event, info)

        with sending(slot, self._kinds) as sent, _traced(request, trace):
            response = self._transport.handle_request(request)
            sent.answered(response.status_code, response.headers)
            if is_looked_at(response.status_code, response.headers):
                response.stream = stream = self._begun(response.stream)
                sent.digest = digest_of(stream.begin(LOOKED_BYTES))
        return response

    def _keep(self, response: Any) -> None:
        stream = response.stream
        if not isinstance(stream, self._begun):
            response.stream = stream = self._begun(stream)
        try:
            stream.begin(inf)
        finally:
            stream.close()

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
        self._policies = AsyncPolicies(
            partial(self._fetch, ANY_AGENT), agent=ANY_AGENT, politeness=self.politeness
        )

    async def handle_async_request(self, request: Any) -> Any:
        """Wait for a slot of the request's host, send it, and report what came back."""
        if self._obeys and request.url.path != ROBOTS_PATH:
            await self._obey(request)
        attempts: Attempts[Any] = Attempts(
            self._retries, request.method, is_repeatable=_is_repeatable(request, self._bytes)
        )
        return await attempted_async(
            attempts,
            self.politeness,
            str(request.url),
            self._waiting,
            lambda slot: self._ask(slot, request),
            self._keep,
        )

    async def _obey(self, request: Any) -> None:
        url, agent = str(request.url), request.headers.get("user-agent", ANY_AGENT)
        fetch = partial(self._fetch, agent)
        waiting: SlotOptions = {"wait_when_open": False, **self._waiting}
        policy = await self._policies.policy(url, agent=agent, fetch=fetch, **waiting)
        why = refusal(policy, url, agent)
        if why is not None:
            raise self._disallowed(why)

    async def _fetch(self, agent: str, url: str) -> FetchedRobots:
        response = await self._transport.handle_async_request(
            self._request("GET", url, **_plain(agent))
        )
        try:
            body = await first_async(response.stream, response.status_code)
            return response.status_code, body, response.headers
        finally:
            await response.aclose()

    async def _ask(self, slot: Slot, request: Any) -> Any:
        given = request.extensions.get("trace")

        async def trace(event: str, info: Any) -> None:
            _note(slot, event)
            if given is not None:
                await given(event, info)

        with sending(slot, self._kinds) as sent, _traced(request, trace):
            response = await self._transport.handle_async_request(request)
            sent.answered(response.status_code, response.headers)
            if is_looked_at(response.status_code, response.headers):
                response.stream = stream = self._begun(response.stream)
                sent.digest = digest_of(await stream.begin(LOOKED_BYTES))
        return response

    async def _keep(self, response: Any) -> None:
        stream = response.stream
        if not isinstance(stream, self._begun):
            response.stream = stream = self._begun(stream)
        try:
            await stream.begin(inf)
        finally:
            await stream.aclose()

    async def aclose(self) -> None:
        """Close the transport that sends, and the politeness unless it was given."""
        await self._transport.aclose()
        if self._is_own:
            await self.politeness.aclose()

    def _default(self) -> Any:
        raise NotImplementedError
