"""Politeness for httpx: `httpx.AsyncClient(transport=AsyncPoliteTransport())`.

The timeouts of a client begin when its request has a slot; `deadline_s` limits the wait for it.
A transport of your own goes inside: `PoliteTransport(httpx.HTTPTransport(http2=True))`. Retries of
the transport (`retries=`) are made without a slot: leave them at 0.
"""

from __future__ import annotations

import httpx

from .transports import AsyncSlotTransport, SlotTransport, kinds_of

_KINDS = kinds_of(httpx)


class PoliteTransport(SlotTransport, httpx.BaseTransport):
    """A transport that keeps the pace of every host, for `httpx.Client`."""

    _kinds = _KINDS

    def _default(self) -> httpx.BaseTransport:
        return httpx.HTTPTransport()


class AsyncPoliteTransport(AsyncSlotTransport, httpx.AsyncBaseTransport):
    """A transport that keeps the pace of every host, for `httpx.AsyncClient`."""

    _kinds = _KINDS

    def _default(self) -> httpx.AsyncBaseTransport:
        return httpx.AsyncHTTPTransport()
