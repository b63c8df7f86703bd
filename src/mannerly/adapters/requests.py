"""Politeness for requests: `session.mount("https://", PoliteAdapter())`.

Mount one adapter for both schemes, so that they share one pace for a host:

    adapter = PoliteAdapter()
    session.mount("https://", adapter)
    session.mount("http://", adapter)

A session sends each hop of a redirect through its adapter. `retries` repeats requests by the
politeness core's decision: each repeat has a slot. Retries of the adapter inside
(`HTTPAdapter(max_retries=…)`) are made without one: leave them at 0.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Unpack

import requests
from requests.adapters import BaseAdapter, HTTPAdapter

from mannerly.politeness.drivers.thread_policies import ThreadedPolicies
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.errors import RobotsDisallowed
from mannerly.politeness.model import ErrorKind

from .attempts import Attempts, attempted
from .sending import (
    ANY_AGENT,
    LOOKED_BYTES,
    ROBOTS_PATH,
    ROBOTS_TIMEOUT_S,
    SlotOptions,
    checked,
    digest_of,
    first,
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
    (requests.exceptions.ProxyError, None),
    (requests.exceptions.SSLError, ErrorKind.TLS),
    (requests.Timeout, ErrorKind.TIMEOUT),
    (requests.ConnectionError, ErrorKind.CONNECT),
    (requests.exceptions.ChunkedEncodingError, ErrorKind.RESET),  # a body that breaks off
)


class _Disallowed(RobotsDisallowed, requests.RequestException):
    pass


class PoliteAdapter(BaseAdapter):
    """An adapter that keeps the pace of every host, for all threads that use it.

    Args:
        adapter: sends the requests; None: a new `HTTPAdapter`.
        politeness: shared by every session that is given it; None: one for this adapter alone,
            with the default settings.
        memory: of that one: `"user"`, a path or the URL of a server shares hosts with other
            processes; None: it is alone.
        retries: how often a request is repeated at most (`sending`).
        robots: `"obey"` raises `RobotsDisallowed` for a URL that robots.txt forbids.
        waiting: how a request waits for its slot.
    """

    def __init__(
        self,
        adapter: BaseAdapter | None = None,
        *,
        politeness: ThreadedPoliteness | None = None,
        memory: str | PathLike[str] | None = None,
        retries: int = 0,
        robots: Literal["obey"] | None = None,
        **waiting: Unpack[SlotOptions],
    ) -> None:
        super().__init__()
        self._adapter = adapter or HTTPAdapter()
        self._is_own = politeness is None
        self.politeness = one_of(politeness, memory) or ThreadedPoliteness(memory=memory)
        self._retries = checked(retries, robots)
        self._waiting = waiting
        self._obeys = robots is not None
        self._policies = ThreadedPolicies(
            partial(self._fetch, ANY_AGENT, {}), agent=ANY_AGENT, politeness=self.politeness
        )

    def send(self, request: requests.PreparedRequest, *args: Any, **how: Any) -> requests.Response:
        """Wait for a slot of the request's host, send it, and report what came back."""
        if self._obeys and request.path_url.partition("?")[0] != ROBOTS_PATH:
            self._obey(request, how)
        attempts: Attempts[requests.Response] = Attempts(
            self._retries, request.method or "", is_repeatable=_is_repeatable(request)
        )
        return attempted(
            attempts,
            self.politeness,
            request.url or "",
            self._waiting,
            lambda slot: self._ask(slot, request, *args, **how),
            _content,
        )

    def _obey(self, request: requests.PreparedRequest, how: dict[str, Any]) -> None:
        url, agent = request.url or "", str(request.headers.get("User-Agent", ANY_AGENT))
        fetch = partial(self._fetch, agent, how)
        waiting: SlotOptions = {"wait_when_open": False, **self._waiting}
        policy = self._policies.policy(url, agent=agent, fetch=fetch, **waiting)
        why = refusal(policy, url, agent)
        if why is not None:
            raise _Disallowed(why, request=request)

    def _fetch(self, agent: str, how: dict[str, Any], url: str) -> FetchedRobots:
        asked = requests.Request("GET", url, headers={"User-Agent": agent}).prepare()
        options = {**how, "stream": True, "timeout": ROBOTS_TIMEOUT_S}
        with closing(self._adapter.send(asked, **options)) as response:
            body = first(response.iter_content(LOOKED_BYTES), response.status_code)
            return response.status_code, body, response.headers

    def _ask(
        self, slot: Slot, request: requests.PreparedRequest, *args: Any, **how: Any
    ) -> requests.Response:
        with sending(slot, _KINDS) as sent:
            response = self._adapter.send(request, *args, **how)
            headers = response.headers
            sent.answered(response.status_code, headers)
            is_short = headers.get("content-length", "").isdigit()
            if is_looked_at(response.status_code, headers) and (is_short or not how.get("stream")):
                body = _content(response)  # the session reads it next, unless it streams
                sent.digest = digest_of(body) if len(body) <= LOOKED_BYTES else None
        return response

    def close(self) -> None:
        """Close the adapter that sends, and the politeness unless it was given."""
        self._adapter.close()
        if self._is_own:
            self.politeness.close()


def _content(response: requests.Response) -> bytes:
    """Return the body of an answer; if it breaks off, its reader gets the same error."""
    try:
        return response.content
    except Exception as error:
        failure = error

        def fail(*_: object, **__: object) -> NoReturn:
            raise failure

        response.raw.stream = fail  # type: ignore[method-assign]
        raise


def _is_repeatable(request: requests.PreparedRequest) -> bool:
    """Return whether a request can be sent again: its body is in memory, or there is none."""
    return request.body is None or isinstance(request.body, str | bytes)
