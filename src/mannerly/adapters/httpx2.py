"""Politeness for httpx2: `httpx2.AsyncClient(transport=AsyncPoliteTransport())`.

The timeouts of a client begin when its request has a slot; `deadline_s` limits the wait for it.
`retries` repeats requests by the politeness core's decision: each repeat has a slot.
A transport of your own goes inside: `PoliteTransport(httpx2.HTTPTransport(http2=True))`. Retries of
the transport (`retries=`) are made without a slot: leave them at 0.
"""

from __future__ import annotations

import httpx2

from mannerly.politeness.errors import RobotsDisallowed

from .transports import (
    AsyncBegunStream,
    AsyncSlotTransport,
    BegunStream,
    SlotTransport,
    kinds_of,
)

_KINDS = kinds_of(httpx2)


class _Disallowed(RobotsDisallowed, httpx2.TransportError):
    pass


class _Begun(BegunStream, httpx2.SyncByteStream):
    pass


class _AsyncBegun(AsyncBegunStream, httpx2.AsyncByteStream):
    pass


class PoliteTransport(SlotTransport, httpx2.BaseTransport):
    """A transport that keeps the pace of every host, for `httpx2.Client`."""

    _kinds = _KINDS
    _bytes = httpx2.ByteStream
    _request = httpx2.Request
    _disallowed = _Disallowed
    _begun = _Begun

    def _default(self) -> httpx2.BaseTransport:
        return httpx2.HTTPTransport()


class AsyncPoliteTransport(AsyncSlotTransport, httpx2.AsyncBaseTransport):
    """A transport that keeps the pace of every host, for `httpx2.AsyncClient`."""

    _kinds = _KINDS
    _bytes = httpx2.ByteStream
    _request = httpx2.Request
    _disallowed = _Disallowed
    _begun = _AsyncBegun

    def _default(self) -> httpx2.AsyncBaseTransport:
        return httpx2.AsyncHTTPTransport()
