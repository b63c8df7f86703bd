"""Politeness for aiohttp (3.12 or newer): `aiohttp.ClientSession(middlewares=(polite(),))`.

aiohttp calls its middlewares for every hop of a redirect. Its `total` timeout (300 s by default)
counts the wait for a slot, too: for long waits use `ClientTimeout(total=None, sock_connect=…,
sock_read=…)`, and `deadline_s` for the wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import aiohttp

from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.model import ErrorKind

from .sending import SlotOptions, one_of, sending

if TYPE_CHECKING:
    from os import PathLike

    from .sending import Kinds

_KINDS: Kinds = (
    (TimeoutError, ErrorKind.TIMEOUT),
    (aiohttp.ClientProxyConnectionError, None),
    (aiohttp.ClientConnectorDNSError, ErrorKind.DNS),
    (aiohttp.ClientSSLError, ErrorKind.TLS),
    (aiohttp.ClientConnectorError, ErrorKind.CONNECT),
    (aiohttp.ClientConnectionError, ErrorKind.RESET),
    (aiohttp.ClientResponseError, ErrorKind.PROTOCOL),
)


def polite(
    politeness: AsyncPoliteness | None = None,
    *,
    memory: str | PathLike[str] | None = None,
    **waiting: Unpack[SlotOptions],
) -> aiohttp.ClientMiddlewareType:
    """Return a middleware that keeps the pace of every host.

    Args:
        politeness: shared by every session that is given it; None: one for this middleware alone,
            with the default settings.
        memory: of that one: `"user"`, a path or the URL of a server shares hosts with other
            processes; None: it is alone. Hosts are given back when they are not used any more, and
            at the end of the program.
        waiting: how a request waits for its slot.
    """
    shared = one_of(politeness, memory) or AsyncPoliteness(memory=memory)

    async def wait_and_report(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        async with shared.slot(str(request.url), **waiting) as slot:
            with sending(slot, _KINDS):
                response = await send(request)
            slot.report(status=response.status, headers=response.headers)
            return response

    return wait_and_report
