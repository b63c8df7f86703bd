"""Politeness for aiohttp (3.12 or newer): `aiohttp.ClientSession(middlewares=(polite(),))`.

aiohttp calls its middlewares for every hop of a redirect. `retries` repeats requests by the
politeness core's decision: each repeat has a slot. Its `total` timeout (300 s by default)
counts the wait for a slot, too: for long waits use `ClientTimeout(total=None, sock_connect=…,
sock_read=…)`, and `deadline_s` for the wait.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Literal, Unpack
from weakref import WeakKeyDictionary, ref

import aiohttp
from aiohttp.base_protocol import BaseProtocol

from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.aio_policies import AsyncPolicies
from mannerly.politeness.errors import RobotsDisallowed
from mannerly.politeness.model import ErrorKind

from .attempts import Attempts, attempted_async
from .sending import (
    ANY_AGENT,
    ROBOTS_PATH,
    ROBOTS_TIMEOUT_S,
    SlotOptions,
    checked,
    digest_of,
    first_async,
    is_looked_at,
    one_of,
    refusal,
    sending,
)

if TYPE_CHECKING:
    from os import PathLike

    from mannerly.politeness.drivers.policies import FetchedRobots
    from mannerly.politeness.drivers.slots import Slot

    from .sending import Kinds

_KINDS: Kinds = (
    (TimeoutError, ErrorKind.TIMEOUT),
    (aiohttp.ClientProxyConnectionError, None),
    (aiohttp.ClientConnectorDNSError, ErrorKind.DNS),
    (aiohttp.ClientSSLError, ErrorKind.TLS),
    (aiohttp.ClientConnectorError, ErrorKind.CONNECT),
    (aiohttp.ClientConnectionError, ErrorKind.RESET),
    (aiohttp.ClientResponseError, ErrorKind.PROTOCOL),
    (aiohttp.ClientPayloadError, ErrorKind.RESET),  # a body that breaks off
)


def polite(
    politeness: AsyncPoliteness | None = None,
    *,
    memory: str | PathLike[str] | None = None,
    retries: int = 0,
    robots: Literal["obey"] | None = None,
    **waiting: Unpack[SlotOptions],
) -> aiohttp.ClientMiddlewareType:
    """Return a middleware that keeps the pace of every host.

    Args:
        politeness: shared by every session that is given it; None: one for this middleware alone,
            with the default settings.
        memory: of that one: `"user"`, a path or the URL of a server shares hosts with other
            processes; None: it is alone. Hosts are given back when they are not used any more, and
            at the end of the program.
        retries: how often a request is repeated at most (`sending`).
        robots: `"obey"` raises `RobotsDisallowed` for a URL that robots.txt forbids.
        waiting: how a request waits for its slot.
    """
    shared = one_of(politeness, memory) or AsyncPoliteness(memory=memory)
    checked(retries, robots)
    policies: WeakKeyDictionary[aiohttp.ClientSession, AsyncPolicies] = WeakKeyDictionary()

    async def wait_and_report(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if robots is not None and request.url.path != ROBOTS_PATH:
            await _obey(request, policies, shared, {"wait_when_open": False, **waiting})
        attempts: Attempts[aiohttp.ClientResponse] = Attempts(
            retries, request.method, is_repeatable=_is_repeatable(request)
        )

        async def ask(slot: Slot) -> aiohttp.ClientResponse:
            return await _ask(slot, request, send, attempts)

        url, read = str(request.url), aiohttp.ClientResponse.read
        return await attempted_async(attempts, shared, url, waiting, ask, read)

    return wait_and_report


class _Disallowed(RobotsDisallowed, aiohttp.ClientError):
    pass


async def _obey(
    request: aiohttp.ClientRequest,
    policies: WeakKeyDictionary[aiohttp.ClientSession, AsyncPolicies],
    politeness: AsyncPoliteness,
    waiting: SlotOptions,
) -> None:
    session, url = request.session, str(request.url)
    agent = request.headers.get("User-Agent", ANY_AGENT)
    fetch = partial(_fetch, ref(session), agent)
    if session not in policies:
        policies[session] = AsyncPolicies(fetch, agent=agent, politeness=politeness)
    policy = await policies[session].policy(url, agent=agent, fetch=fetch, **waiting)
    why = refusal(policy, url, agent)
    if why is not None:
        raise _Disallowed(why)


async def _fetch(client: ref[aiohttp.ClientSession], agent: str, url: str) -> FetchedRobots:
    session, timeout = client(), aiohttp.ClientTimeout(total=ROBOTS_TIMEOUT_S)
    assert session is not None, "a request of it is under way"
    async with session.get(
        url,
        middlewares=(),
        timeout=timeout,
        headers={"User-Agent": agent},
        allow_redirects=False,
    ) as answer:
        body = await first_async(answer.content.iter_any(), answer.status)
        return answer.status, body, answer.headers


async def _ask(
    slot: Slot,
    request: aiohttp.ClientRequest,
    send: aiohttp.ClientHandlerType,
    attempts: Attempts[aiohttp.ClientResponse],
) -> aiohttp.ClientResponse:
    with sending(slot, _KINDS) as sent:
        try:
            response = await send(request)
            headers = response.headers
            sent.answered(response.status, headers)
            is_short = headers.get("Content-Length", "").isdigit()
            if is_looked_at(response.status, headers) and is_short:
                sent.digest = digest_of(await _looked_at(response))
        except TimeoutError as error:
            if not isinstance(error, aiohttp.ServerTimeoutError):  # `total` is over
                attempts.end()
            raise
    return response


async def _looked_at(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer, whose reader gets the same, or the same error."""
    try:
        body = await response.content.read()
    except BaseException as error:
        response.close()
        if isinstance(error, Exception):
            response.content.set_exception(error)
        raise
    response.content = _filled(body)
    return body


def _filled(body: bytes) -> aiohttp.StreamReader:
    """Return a stream of a body that was read already."""
    loop = asyncio.get_running_loop()
    stream = aiohttp.StreamReader(BaseProtocol(loop), max(1, len(body)), loop=loop)
    stream.feed_data(body)
    stream.feed_eof()
    return stream


def _is_repeatable(request: aiohttp.ClientRequest) -> bool:
    """Return whether a request can be sent again: its body is in memory, or there is none."""
    return not request.body or isinstance(request.body, bytes | aiohttp.BytesPayload)
