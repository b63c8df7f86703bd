"""Cookies, kept for each origin's host and port while a crawl runs, and sent to it alone.

The rules are those of RFC 6265, with one difference: a cookie is never sent to another host,
whatever its Domain says. So no site can set a cookie for others, below a public suffix or
elsewhere, and no list of suffixes is needed. Those of `--cookies` are not stored: they are a
credential. Those of a session that a program has named are kept with its crawl (`packed`).

Bounded for hostile sites: 50 cookies of a host, 4 KB each, 10,000 hosts; what was not set for the
longest time goes first. Time is an argument (wall time, seconds).
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from .credentials import Origin

MAX_COOKIES = 50  # of one host
MAX_BYTES = 4096  # of one cookie, attributes included
MAX_HOSTS = 10_000
MAX_PACKED = 64 * 1024  # bytes of a jar that is stored

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_VALUE = re.compile(r"[!#-+\--:<-\[\]-~ \"]*")  # visible ASCII, without comma, semicolon, backslash
_MAX_AGE = re.compile(r"-?[0-9]{1,18}")


class _Cookie(NamedTuple):
    value: str
    path: str
    is_secure: bool
    expires: float | None  # wall time; None: with the run


_Packed = list[tuple[str, int, list[tuple[str, _Cookie]]]]
_unpack = msgspec.json.Decoder(_Packed).decode


class CookieJar:
    """The cookies of all hosts that were met.

    Attributes:
        is_changed: a cookie was set or removed; cleared by what stores the jar.
    """

    def __init__(self, packed: str = "") -> None:
        """Make a jar with what another one has `packed`; text that is none leaves it empty."""
        # By host and port, then by name and path; both in the order in which they were set.
        self._hosts: dict[tuple[str, int], dict[tuple[str, str], _Cookie]] = {}
        self.is_changed = False
        with suppress(msgspec.MsgspecError):
            for host, port, cookies in _unpack(packed or "[]"):
                own = self._hosts[host, port] = {}
                for name, cookie in cookies:
                    own[name, cookie.path] = cookie

    def __len__(self) -> int:
        return sum(map(len, self._hosts.values()))

    def packed(self) -> str:
        """Return the jar as text of at most `MAX_PACKED` bytes; what was set first is left out."""
        size, hosts = 2, []
        for (host, port), cookies in reversed(self._hosts.items()):
            kept = []
            size += len(host) + 20
            for (name, _), cookie in reversed(cookies.items()):
                size += len(name) + len(cookie.value) * 2 + len(cookie.path) * 6 + 60
                if size > MAX_PACKED:
                    break
                kept.append((name, cookie))
            if kept:
                hosts.append((host, port, kept[::-1]))
        return msgspec.json.encode(hosts[::-1]).decode()

    def take(self, origin: Origin, path: str, lines: list[str], wall: float) -> None:
        """Take the Set-Cookie lines of an answer from a path of an origin."""
        for line in lines:
            self._take(origin, path, line, wall)

    def header(self, origin: Origin, path: str, wall: float) -> str:
        """Return the value of the Cookie header for a request; empty if there is none."""
        scheme = origin[0]
        cookies = self._hosts.get(_place(origin))
        if cookies is None:
            return ""
        for key in [key for key, each in cookies.items() if each.expires and each.expires <= wall]:
            del cookies[key]
            self.is_changed = True
        matching = [
            (name, each)
            for (name, _), each in cookies.items()
            if (scheme == "https" or not each.is_secure) and _matches(path, each.path)
        ]
        matching.sort(key=lambda pair: -len(pair[1].path))  # RFC 6265 §5.4: the longest path first
        return "; ".join(f"{name}={each.value}" for name, each in matching)

    def _take(self, origin: Origin, path: str, line: str, wall: float) -> None:
        scheme, host, _ = origin
        if len(line) > MAX_BYTES:
            return
        pair, *rest = line.split(";")
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            return
        attributes = {
            key.strip().lower(): text.strip()
            for key, _, text in (part.partition("=") for part in rest)
        }
        is_secure = "secure" in attributes
        domain = attributes.get("domain", "").lstrip(".").lower()
        if domain and host != domain and not host.endswith(f".{domain}"):
            return  # for another site
        own_path = attributes.get("path", "")
        own_path = own_path if own_path.startswith("/") else _default_path(path)
        if is_secure and scheme != "https":
            return
        prefixed = name.lower()
        if prefixed.startswith(("__secure-", "__host-")) and not is_secure:
            return
        if prefixed.startswith("__host-") and (domain or own_path != "/"):
            return
        cookies = self._cookies_of(_place(origin))
        key = (name, own_path)
        before = cookies.get(key)
        if before is not None and before.is_secure and scheme != "https":
            return  # a server without TLS must not replace what was set with it
        self.is_changed |= cookies.pop(key, None) is not None
        expires = _expires(attributes, wall)
        if expires is not None and expires <= wall:
            return
        self.is_changed = True
        cookies[key] = _Cookie(value, own_path, is_secure, expires)
        if len(cookies) > MAX_COOKIES:
            del cookies[next(iter(cookies))]

    def _cookies_of(self, place: tuple[str, int]) -> dict[tuple[str, str], _Cookie]:
        cookies = self._hosts.pop(place, {})
        self._hosts[place] = cookies
        if len(self._hosts) > MAX_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return cookies


def _place(origin: Origin) -> tuple[str, int]:
    """Return the host and port that cookies belong to; http and https are usually one server."""
    _, host, port = origin
    return host, 443 if port == 80 else port


def set_cookie_lines(head: bytes) -> list[str]:
    """Return the values of all Set-Cookie lines in the headers of an answer."""
    lines = head.decode("latin-1").replace("\r\n", "\n").split("\n")
    pairs = (line.partition(":") for line in lines)
    return [value.strip() for name, _, value in pairs if name.strip().lower() == "set-cookie"]


def path_of(url: str) -> str:
    """Return the path of a serialised URL, without its query."""
    begin = url.find("/", url.index("//") + 2)
    return "/" if begin < 0 else re.split(r"[?#]", url[begin:], maxsplit=1)[0]


def _matches(path: str, own: str) -> bool:
    """RFC 6265 §5.1.4."""
    return path == own or (
        path.startswith(own) and (own.endswith("/") or path[len(own) : len(own) + 1] == "/")
    )


def _default_path(path: str) -> str:
    return path[: path.rfind("/")] or "/"


def _expires(attributes: dict[str, str], wall: float) -> float | None:
    """Return when a cookie ends: Max-Age is stronger than Expires, which may be unreadable."""
    max_age = attributes.get("max-age", "")
    if _MAX_AGE.fullmatch(max_age):
        return wall + int(max_age)
    text = attributes.get("expires")
    if not text:
        return None
    from email.utils import parsedate_to_datetime

    try:
        # Older servers write dashes: Wed, 09-Jun-2027 10:18:14 GMT.
        return parsedate_to_datetime(text.replace("-", " ")).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
