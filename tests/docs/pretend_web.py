"""A web for the commands in the documents: every host name leads to one server on this machine.

The commands stay as they are printed: `MANNERLY_PROXY` sends their requests here, and
`MANNERLY_CA_FILE` makes our certificate a good one. The server plays the proxy, and every host
behind it. Each host has the same small site; some have a character of their own:

    example.org           robots.txt asks for a second between requests
    busy.example.com      refuses every fourth request with Retry-After: 1
    closed.example.com    robots.txt forbids everything
    members.example.com   every page answers 401
    cached.example.com    a cache is in front of it, empty at first
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from cryptography import x509
from tests.crawler.fetch.certificates import Authority
from tests.harness.sites import Request, serving

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

DOMAINS = ("example.com", "example.org", "example.net")
PAGES = {
    "/": ("Home", "/about /products/ /news/ /old /missing /private/accounts"),
    "/about": ("About us", "/ /contact"),
    "/contact": ("Contact", "/"),
    "/products/": ("Products", "/products/1 /products/2 /products/3 /products/4"),
    "/products/1": ("Lantern", "/products/"),
    "/products/2": ("Compass", "/products/"),
    "/products/3": ("Rope", "/products/ /products/4"),
    "/products/4": ("Kettle", "/products/"),
    "/news/": ("News", "/news/spring /news/autumn"),
    "/news/spring": ("Spring prices", "/products/1"),
    "/news/autumn": ("Autumn prices", "/products/2"),
    "/new": ("New", "/"),
}


class PretendWeb:
    """Runs while its `with` block runs."""

    def __init__(self, directory: Path) -> None:
        names = [x509.DNSName(f"{prefix}{name}") for name in DOMAINS for prefix in ("", "*.")]
        self._certificate = Authority(directory).certificate(*names)

    def __enter__(self) -> Self:
        context = self._certificate.context()
        counts: dict[str, itertools.count[int]] = {}
        handler = type("Handler", (_Host,), {"context": context, "counts": counts})
        self._open = ExitStack()
        self._origin = self._open.enter_context(serving(handler))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def netloc(self) -> str:
        """Where a request without a proxy finds example.org's site."""
        return self._origin.removeprefix("http://")

    @property
    def environment(self) -> dict[str, str]:
        """What a command needs to take this for the web."""
        return {
            "MANNERLY_PROXY": f"http://{self.netloc}",
            "MANNERLY_CA_FILE": str(self._certificate.file),
        }


class _Host(Request):
    """One connection: as a proxy first, if asked to be, then as the host behind it."""

    context: ssl.SSLContext
    counts: dict[str, itertools.count[int]]
    scheme = "http"

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def do_CONNECT(self) -> None:  # noqa: N802 - the name that http.server looks for
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self.scheme = "https"
        self.connection = self.context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb")  # type: ignore[assignment]
        self.close_connection = False

    def do_GET(self) -> None:  # noqa: N802 - as above
        parts = urlsplit(self.path)
        host = (parts.netloc or self.headers["Host"]).partition(":")[0]
        status, headers, body = self._answer(host, parts.path)
        self.answer(status, body, headers)
        self.wfile.flush()

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def _answer(self, host: str, path: str) -> tuple[int, dict[str, str], bytes]:
        if path == "/robots.txt":
            return 200, {"Content-Type": "text/plain"}, self._robots(host).encode()
        if host == "members.example.com":
            return 401, {"WWW-Authenticate": "Basic"}, b"Log in first."
        if host == "busy.example.com":
            count = self.counts.setdefault(host, itertools.count(1))
            if next(count) % 4 == 0:
                return 429, {"Retry-After": "1"}, b""
        if path == "/sitemap.xml":
            urls = "".join(f"<url><loc>{self.scheme}://{host}{page}</loc></url>" for page in PAGES)
            text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
            return 200, {"Content-Type": "application/xml"}, text.encode()
        if path == "/old":
            return 301, {"Location": "/about"}, b""
        if path not in PAGES:
            return 404, {"Content-Type": "text/html"}, b"<title>Not found</title>"
        title, links = PAGES[path]
        anchors = "".join(f'<p><a href="{link}">{link}</a></p>' for link in links.split())
        text = f"<!doctype html><html lang=en><title>{title}</title><h1>{title}</h1>{anchors}"
        headers = {"Content-Type": "text/html; charset=utf-8"}
        if host == "cached.example.com":
            headers |= self._cached(path)
        return 200, headers, text.encode()

    def _cached(self, path: str) -> dict[str, str]:
        variant = "".join(self.headers.get(name, "") for name in ("User-Agent", "Accept-Language"))
        count = self.counts.setdefault(path + variant, itertools.count())
        return {"X-Cache": "HIT", "Age": "1"} if next(count) else {"X-Cache": "MISS"}

    def _robots(self, host: str) -> str:
        if host == "closed.example.com":
            return "User-agent: *\nDisallow: /\n"
        delay = "Crawl-delay: 1\n" if host == "example.org" else ""
        rules = f"User-agent: *\nDisallow: /private/\n{delay}"
        return f"{rules}Sitemap: {self.scheme}://{host}/sitemap.xml\n"
