"""Headers and logins that belong to one origin: scheme, host and port.

They are added to a request here, at the last moment, by the origin that is about to be connected.
So neither a redirect nor a link can carry them elsewhere, and nothing that handles requests,
records or logs ever has them. A host that is named without a scheme means https: a page could link
to the same host over http, and a password would be readable on the way. A header without a host is
for the origins of the crawl's seeds.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, TypeAlias

from mannerly.crawler.options.secrets import revealed
from mannerly.crawler.web.urls import canonical

from .cookies import path_of, set_cookie_lines
from .guard import split_origin
from .settings import check_header

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.model import Request

    from .cookies import CookieJar

Origin: TypeAlias = tuple[str, str, int]
Headers: TypeAlias = tuple[tuple[str, str], ...]

_HEADER = re.compile(r"(?:([^\s=]+)=)?([^\s:=]+):[ \t]*(.*)", re.DOTALL)
_LOGIN = re.compile(r"([^\s=]+)=(.*)", re.DOTALL)

# Set by curl or by other options: a second value would be sent beside, or break the request.
_OURS = frozenset(
    {"host", "user-agent", "from", "accept-encoding", "content-length", "transfer-encoding"}
    | {"connection", "upgrade", "te", "expect", "range", "if-none-match", "if-modified-since"}
)

HEADER_FORM = "NAME: VALUE, or HOST=NAME: VALUE for one host"
LOGIN_FORM = "HOST=user:password, HOST=bearer:TOKEN, HOST=env:NAME or HOST=file:PATH"


def read_origin(text: str) -> Origin:
    """Return the origin that a text names; without a scheme, of https.

    Raises:
        ValueError: it names none.
    """
    url = canonical(text if "://" in text else f"https://{text}")
    origin = None if url is None else split_origin(url)
    is_bare = url is not None and url.endswith("/") and url.count("/") == 3 and "@" not in text
    if origin is None or not is_bare:
        raise ValueError("a host such as example.org, or http://example.org:8080")
    return origin


def read_header(text: str) -> tuple[Origin | None, str, str]:
    """Return the origin, the name and the value of a header, or a reference to its value.

    Raises:
        ValueError: it is malformed, or not to be set in this way; the message has no value.
    """
    match = _HEADER.fullmatch(text)
    if match is None:
        raise ValueError(HEADER_FORM)
    host, name, value = match.groups()
    if name.lower() in _OURS or name.lower().startswith("proxy-"):
        raise ValueError(f"any header but {name}, which mannerly sets itself")
    try:
        check_header(name, value)
    except ValueError:
        raise ValueError(f"{HEADER_FORM}, in visible ASCII characters") from None
    return None if host is None else read_origin(host), name, value


def read_login(text: str) -> tuple[Origin, str]:
    """Return the origin of a login, and its user:password, bearer:TOKEN or reference.

    Raises:
        ValueError: it is malformed; the message has no secret.
    """
    match = _LOGIN.fullmatch(text)
    if match is None or ":" not in match[2] or match[2].endswith(":") or match[2][0] == ":":
        raise ValueError(LOGIN_FORM)
    return read_origin(match[1]), match[2]


class Credentials:
    """The headers of each origin."""

    def __init__(
        self, headers: Iterable[str] = (), logins: Iterable[str] = (), seeds: Iterable[str] = ()
    ) -> None:
        """Read everything that is referred to.

        Raises:
            ValueError: something is malformed, or cannot be read; the message has no secret.
        """
        self._headers: dict[Origin, Headers] = {}
        of_seeds = dict.fromkeys(split_origin(seed) for seed in seeds)
        for text in headers:
            origin, name, value = read_header(revealed("header", text))
            for each in of_seeds if origin is None else (origin,):
                self._add(each, name, value)
        for text in logins:
            origin, login = read_login(revealed("auth", text))
            self._add(origin, "Authorization", _authorization(login))

    def __bool__(self) -> bool:
        return bool(self._headers)

    def __repr__(self) -> str:
        return f"<Credentials of {len(self._headers)} origins>"

    def of(self, origin: Origin) -> Headers:
        """Return the headers that belong to an origin."""
        return self._headers.get(origin, ())

    def _add(self, origin: Origin | None, name: str, value: str) -> None:
        if origin is not None:
            self._headers[origin] = (*self._headers.get(origin, ()), (name, value))


class OwnHeaders:
    """The headers that are added to requests for one origin alone: credentials and cookies.

    Attributes:
        exist: there are credentials, or cookies are kept for every request.
    """

    def __init__(self, credentials: Credentials | None, cookies: CookieJar | None) -> None:
        self._credentials = credentials or Credentials()
        self._cookies = cookies
        self.exist = bool(self._credentials) or cookies is not None

    def added_to(self, request: Request, origin: Origin, wall: float) -> Headers:
        """Return the headers of a request with those of its origin."""
        own = dict(self._credentials.of(origin))
        jar = self._cookies if request.cookies is None else request.cookies
        if jar is None:
            return (*request.headers, *own.items())
        headers = [pair for pair in request.headers if pair[0].lower() != "cookie"]
        cookies = [value for name, value in request.headers if name.lower() == "cookie"]
        cookies.append(own.pop("Cookie", ""))
        cookies.append(jar.header(origin, path_of(request.url), wall))
        if any(cookies):
            own["Cookie"] = "; ".join(filter(None, cookies))
        return (*headers, *own.items())

    def keep(self, request: Request, head: bytes, wall: float) -> None:
        """Keep the cookies that the head of an answer sets."""
        jar = self._cookies if request.cookies is None else request.cookies
        if jar is None:
            return
        origin, lines = split_origin(request.url), set_cookie_lines(head)
        if lines and origin is not None:
            jar.take(origin, path_of(request.url), lines, wall)


def _authorization(login: str) -> str:
    kind, _, secret = login.partition(":")
    if kind == "bearer":
        check_token(secret)
        return f"Bearer {secret}"
    return "Basic " + b64encode(login.encode()).decode()


def check_token(token: str) -> None:
    """Raise ValueError for a bearer token that cannot be sent; the message does not repeat it."""
    if not re.fullmatch(r"[!-~]+", token):
        raise ValueError("a bearer token of visible ASCII characters without spaces")
