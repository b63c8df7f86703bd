"""Settings of the fetcher, each number with its reason. Checked once, when made.

The limits are there for the hostile web: an honest site should reach none of them.

With --proxy-env the proxies are those of the environment: `http_proxy`, `https_proxy` and
`all_proxy` name a proxy for a scheme, `no_proxy` hosts that are contacted without one; the standard
library reads them as other programs do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mannerly.crawler.web.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .credentials import Credentials


class EnvironmentProxies:
    """Chooses the proxy of a request."""

    def __init__(self) -> None:
        """Read the variables.

        Raises:
            ValueError: one of them is not the URL of a proxy; the message does not repeat it.
        """
        from urllib import request  # with http, email and ssl: 10 ms that most starts do without

        self._reads = request
        self._all = request.getproxies_environment()
        self._by_scheme: dict[str, str | None] = {}
        for scheme in ("http", "https"):
            url = self._all.get(scheme) or self._all.get("all")
            url = url if not url or "://" in url else f"http://{url}"
            try:
                check_proxy(url)
            except ValueError as error:
                raise ValueError(f"in {scheme}_proxy or all_proxy, {error}") from None
            self._by_scheme[scheme] = url or None

    def __call__(self, scheme: str, host: str) -> str | None:
        """Return the proxy for a host; None: it is contacted directly."""
        proxy = self._by_scheme[scheme]
        if proxy is None:
            return None
        is_direct = self._reads.proxy_bypass_environment(host, self._all)  # type: ignore[attr-defined]
        return None if is_direct else proxy


_HEADER_VALUE = re.compile(r"[\t -~]*")
_PROXY = re.compile(
    r"(?:https?|socks5h?)://"
    r"(?:[^\s:/?#@]*(?::[^\s/?#@]*)?@)?"
    r"(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?/?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """Settings of a fetcher. Durations in seconds, sizes in bytes."""

    user_agent: str = "mannerly"
    connect_timeout_s: float = 10.0  # name lookup, connect and TLS together
    min_bytes_per_s: int = 1024  # slower than this for `min_speed_window_s` is given up
    min_speed_window_s: int = 30
    # As browsers allow; interim answers and trailers count too. curl itself ends at 300 KB.
    max_header_bytes: int = 256 * 1024
    max_headers: int = 1000
    # Open at once, busy or kept alive. Above the 512 requests in flight that are the default,
    # below the 1,024 descriptors that most systems give a process.
    max_connections: int = 768
    dns_cache_s: int = 300  # a tenth longer at most: see `curl.py`
    # It may hold a password.
    proxy: str | None = field(default=None, repr=False)
    # Returns the proxy for a scheme and a host. Without it the variables of the environment that
    # name proxies are ignored.
    proxy_for: Callable[[str, str], str | None] | None = field(default=None, repr=False)
    credentials: Credentials | None = None
    keeps_cookies: bool = False
    ca_file: str | None = None  # None: see `trust.py`
    insecure_hosts: Collection[str] = frozenset()  # hosts whose certificate is not verified
    keep_raw: bool = False  # return exchanges for archives, in encodings that their tools read

    def __post_init__(self) -> None:
        check_header("User-Agent", self.user_agent)
        check_proxy(self.proxy)
        normal = frozenset(host_name(host) for host in self.insecure_hosts)
        object.__setattr__(self, "insecure_hosts", normal)
        for name in (
            "connect_timeout_s",
            "min_bytes_per_s",
            "min_speed_window_s",
            "max_header_bytes",
            "max_headers",
            "max_connections",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")


def check_header(name: str, value: str) -> None:
    """Raise ValueError for a header that could smuggle a second one (line breaks, NUL)."""
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not _HEADER_VALUE.fullmatch(value):
        raise ValueError(f"not a valid header: {name!r}: {value!r}")


def check_proxy(proxy: str | None) -> None:
    """Raise ValueError for the URL of a proxy that cannot be used. It does not repeat the URL."""
    if proxy is None:
        return
    match = _PROXY.fullmatch(proxy)
    if match is None or not 0 < int(match["port"] or 1) < 65536:
        raise ValueError(
            "a URL like http://host:port or socks5://user:password@host:port, "
            "with http, https, socks5 or socks5h"
        )


def host_name(text: str) -> str:
    """Return a host as the fetcher spells it: ASCII, lower case, IPv6 without brackets.

    Raises:
        ValueError: the text is not a host, or has more than a host in it.
    """
    # With a colon only an IPv6 address is left, in brackets or without.
    spelled = f"[{text.removeprefix('[').removesuffix(']')}]" if ":" in text else text
    url = None if set(text) & set("/?#@\\") else canonical(f"https://{spelled}/")
    if url is None:
        raise ValueError(f"not a host name or address: {text!r}")
    return url.removeprefix("https://").rstrip("/").strip("[]")
