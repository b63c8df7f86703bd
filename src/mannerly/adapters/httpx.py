"""Politeness for httpx: `httpx.AsyncClient(transport=AsyncPoliteTransport())`.

The timeouts of a client begin when its request has a slot; `deadline_s` limits the wait for it.
`retries` repeats requests by the politeness core's decision: each repeat has a slot.
A transport of your own goes inside: `PoliteTransport(httpx.HTTPTransport(http2=True))`. Retries of
the transport (`retries=`) are made without a slot: leave them at 0.
"""

from __future__ import annotations

import httpx

from mannerly.politeness.errors import RobotsDisallowed

from .transports import (
    AsyncBegunStream,
    AsyncSlotTransport,
    BegunStream,
    SlotTransport,
    kinds_of,
)

_KINDS = kinds_of(httpx)


class _Disallowed(RobotsDisallowed, httpx.TransportError):
    pass


class _Begun(BegunStream, httpx.SyncByteStream):
    pass


class _AsyncBegun(AsyncBegunStream, httpx.AsyncByteStream):
    pass


class PoliteTransport(SlotTransport, httpx.BaseTransport):
    """A transport that keeps the pace of every host, for `httpx.Client`."""

    _kinds = _KINDS
    _bytes = httpx.ByteStream
    _request = httpx.Request
    _disallowed = _Disallowed
    _begun = _Begun

    def _default(self) -> httpx.BaseTransport:
        return httpx.HTTPTransport()


class AsyncPoliteTransport(AsyncSlotTransport, httpx.AsyncBaseTransport):
    """A transport that keeps the pace of every host, for `httpx.AsyncClient`."""

    _kinds = _KINDS
    _bytes = httpx.ByteStream
    _request = httpx.Request
    _disallowed = _Disallowed
    _begun = _AsyncBegun

    def _default(self) -> httpx.AsyncBaseTransport:
        return httpx.AsyncHTTPTransport()
