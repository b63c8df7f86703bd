"""Politeness for requests: `session.mount("https://", PoliteAdapter())`.

Mount one adapter for both schemes, so that they share one pace for a host:

    adapter = PoliteAdapter()
    session.mount("https://", adapter)
    session.mount("http://", adapter)

A session sends each hop of a redirect through its adapter. Retries of the adapter inside
(`HTTPAdapter(max_retries=…)`) are made without a slot: leave them at 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import requests
from requests.adapters import BaseAdapter, HTTPAdapter

from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.model import ErrorKind

from .sending import SlotOptions, one_of, sending

if TYPE_CHECKING:
    from os import PathLike

    from .sending import Kinds

_KINDS: Kinds = (
    (requests.exceptions.ProxyError, None),
    (requests.exceptions.SSLError, ErrorKind.TLS),
    (requests.Timeout, ErrorKind.TIMEOUT),
    (requests.ConnectionError, ErrorKind.CONNECT),
)


class PoliteAdapter(BaseAdapter):
    """An adapter that keeps the pace of every host, for all threads that use it.

    Args:
        adapter: sends the requests; None: a new `HTTPAdapter`.
        politeness: shared by every session that is given it; None: one for this adapter alone,
            with the default settings.
        memory: of that one: `"user"`, a path or the URL of a server shares hosts with other
            processes; None: it is alone.
        waiting: how a request waits for its slot.
    """

    def __init__(
        self,
        adapter: BaseAdapter | None = None,
        *,
        politeness: ThreadedPoliteness | None = None,
        memory: str | PathLike[str] | None = None,
        **waiting: Unpack[SlotOptions],
    ) -> None:
        super().__init__()
        self._adapter = adapter or HTTPAdapter()
        self._is_own = politeness is None
        self.politeness = one_of(politeness, memory) or ThreadedPoliteness(memory=memory)
        self._waiting = waiting

    def send(self, request: requests.PreparedRequest, *args: Any, **how: Any) -> requests.Response:
        """Wait for a slot of the request's host, send it, and report what came back."""
        with self.politeness.slot(request.url or "", **self._waiting) as slot:
            with sending(slot, _KINDS):
                response = self._adapter.send(request, *args, **how)
            slot.report(status=response.status_code, headers=response.headers)
            return response

    def close(self) -> None:
        """Close the adapter that sends, and the politeness unless it was given."""
        self._adapter.close()
        if self._is_own:
            self.politeness.close()
