"""Decide who may call the service, for every request and before anything else is done with it.

    host      The Host header must name this service. A page of another site whose name was made to
              lead to 127.0.0.1 (DNS rebinding) has its own name in it.
    origin    A request that changes something must not come from a page of another site (CSRF):
              `Origin` must be ours, and `Sec-Fetch-Site` same-origin or none. There is no CORS.
    token     With a token, every request but those for the page's own files and for /healthz and
              /readyz needs `Authorization: Bearer TOKEN`. Tokens are compared in constant time.
              The service has one beyond loopback, the page of a crawl always.
    audit     Every change that is asked for is logged: who, what, and the answer.
    size      A body has at most `MAX_BODY` bytes, must be `application/json`, and has to arrive
              within `BODY_S`.
    rate      One client address may change something `CHANGES` times a second.

Every answer carries a Content-Security-Policy that allows nothing but the files of this service.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from mannerly.politeness.clock import MonotonicClock

from .operations import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("mannerly.service")

BODY_S = 30.0
MAX_BODY = 4 * 1024 * 1024  # 10,000 seeds of 400 bytes
CHANGES = 20.0  # a second, with as many at once
CLIENTS = 1000  # whose rate is remembered

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN_PATHS = ("/healthz", "/readyz")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+)(?::([0-9]{1,5}))?")


class Access:
    """An ASGI application around another one, which lets only permitted requests through."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[str] = (),
        token: str | None = None,
        has_open_metrics: bool = False,
    ) -> None:
        self._app = app
        self._hosts = {*LOOPBACK, *(host.lower() for host in hosts)}
        self._token = token
        self._open_paths = {*OPEN_PATHS, "/metrics"} if has_open_metrics else set(OPEN_PATHS)
        self._changes = _ClientRates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                if scope["method"] not in SAFE_METHODS:
                    client = (scope.get("client") or ("unknown", 0))[0]
                    words = (client, scope["method"], scope["path"], message["status"])
                    log.info("change by %s: %s %r, answered %d", *words)
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                if scope["path"].startswith("/api/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        try:
            self._check(scope)
        except Problem as problem:
            await problem.response()(scope, receive, send_safely)
            return
        await self._app(scope, _Limited(receive), send_safely)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = _one(headers, "host")
        match = _HOST.fullmatch(host or "")
        if match is None or match[1].lower() not in self._hosts:
            raise Problem(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"this service is not called {host!r}: use its address, or name it with "
                "--allow-host",
            )
        if scope["method"] not in SAFE_METHODS:
            self._check_origin(headers, str(host))
            self._check_body(headers)
            self._check_rate(scope)
        if self._token is not None and self._needs_token(scope["path"]):
            self._check_token(headers)

    def _needs_token(self, path: str) -> bool:
        """Return whether a path shows or changes anything of a crawl; the page's files do not."""
        return path not in self._open_paths and (path.startswith("/api/") or path == "/metrics")

    def _check_origin(self, headers: Headers, host: str) -> None:
        origin = _one(headers, "origin")
        site = _one(headers, "sec-fetch-site")
        is_ours = origin is None or origin.partition("://")[2].lower() == host.lower()
        if not is_ours or site not in (None, "same-origin", "none"):
            raise Problem(
                HTTPStatus.FORBIDDEN, "a page of another site must not change anything here"
            )

    def _check_body(self, headers: Headers) -> None:
        length = headers.get("content-length")
        if length is not None and not (length.isascii() and length.isdigit()):
            raise Problem(HTTPStatus.BAD_REQUEST, "the Content-Length is not a number")
        if length is not None and int(length) > MAX_BODY:
            raise too_large()
        has_body = headers.get("transfer-encoding") is not None or length not in (None, "0")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and kind != "application/json":
            raise Problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON, with Content-Type: application/json"
            )

    def _check_rate(self, scope: Scope) -> None:
        client = (scope.get("client") or ("", 0))[0]
        wait_s = self._changes.wait_s(client, MonotonicClock().now())
        if wait_s > 0:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"more than {CHANGES:g} changes a second: try again in {wait_s:.1f} s",
                {"Retry-After": str(int(wait_s) + 1)},
            )

    def _check_token(self, headers: Headers) -> None:
        assert self._token is not None, "it was asked for"
        kind, _, given = headers.get("authorization", "").partition(" ")
        is_right = hmac.compare_digest(given.strip().encode(), self._token.encode())
        if kind.lower() != "bearer" or not is_right:
            raise Problem(
                HTTPStatus.UNAUTHORIZED,
                "this service needs a token: send Authorization: Bearer TOKEN",
                {"WWW-Authenticate": 'Bearer realm="mannerly"'},
            )


class _ClientRates:
    """Token buckets of the clients that were seen lately."""

    def __init__(self) -> None:
        self._full_at: dict[str, float] = {}  # by client: when its bucket will be full again

    def wait_s(self, client: str, now: float) -> float:
        """Take one token of a client; return how long it has to wait if there is none."""
        full_at = max(self._full_at.get(client, now), now)
        if full_at - now > 1.0 - 1 / CHANGES:
            return full_at - now - 1.0 + 1 / CHANGES
        if len(self._full_at) >= CLIENTS:
            self._full_at.clear()
        self._full_at[client] = full_at + 1 / CHANGES
        return 0.0


class _Limited:
    """A request's body that ends with an error when it becomes too long, or takes too long."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left = MAX_BODY
        self._until: float | None = asyncio.get_running_loop().time() + BODY_S

    async def __call__(self) -> Message:
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            words = f"the body of this request did not arrive within {BODY_S:g} s"
            raise Problem(HTTPStatus.REQUEST_TIMEOUT, words) from None
        if not message.get("more_body", False):
            self._until = None  # what follows is that the client leaves, some time
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise too_large()
        return message


def too_large() -> Problem:
    """Return the problem of a body that is too long."""
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {MAX_BODY:,} bytes here"
    )


def _one(headers: Headers, name: str) -> str | None:
    """Return a header that may be sent once only; both if it is sent twice, which fits nothing."""
    values = headers.getlist(name)
    return values[0] if len(values) == 1 else (None if not values else ", ".join(values))
