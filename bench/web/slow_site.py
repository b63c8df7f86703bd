"""A site on loopback that is slow, and slower under load, with a cache in front or without one.

Its pages are made by a few workers, each of which takes its time, so requests beyond their number
wait in line. The cache keeps pages by their URL and by the headers that they vary by, and says so
(`Cache-Status`, `Age`). With `cached=False` it is the site alone, to be put behind a real cache.

    with SlowSite(pages=200, workers=2, page_s=0.05) as site:
        ...   # mannerly warm site.url

The sitemap lists the pages with their priorities; pages below /account/ must not be cached.
"""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from types import TracebackType

SECTIONS = ("", "blog/", "products/", "account/")
UNCACHED = "/account/"
MAX_AGE_S = 3600
VARY = ("Accept-Language", "Accept-Encoding")


class SiteRequest(NamedTuple):
    """One request that the site has got."""

    at: float  # monotonic
    path: str
    agent: str
    language: str
    is_hit: bool
    took_s: float


class _Kept(NamedTuple):
    body: bytes
    stored_at: float


class SlowSite:
    """The site, its cache and the log of both: `with SlowSite() as site: … site.url`."""

    def __init__(
        self,
        *,
        pages: int = 40,
        workers: int = 4,
        page_s: float = 0.02,
        cached: bool = True,
        fails_from: int | None = None,  # answer 500 from so many pages on
    ) -> None:
        self.paths = [f"/{SECTIONS[number % len(SECTIONS)]}{number}" for number in range(pages)]
        self.log: list[SiteRequest] = []
        self.cached = cached
        self.page_s = page_s
        self._fails_from = fails_from
        self._made = 0
        self._workers = threading.Semaphore(workers)
        self._kept: dict[tuple[str, ...], _Kept] = {}
        self._lock = threading.Lock()
        self._server = _Server(self)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Return its port on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Return its home page."""
        return f"http://127.0.0.1:{self.port}/"

    def purge(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._kept.clear()

    def sitemap(self, base: str) -> str:
        """Return the sitemap: the last pages have the highest priority."""
        step = 1.0 / max(1, len(self.paths) - 1)
        lines = [
            f"<url><loc>{base}{path}</loc><priority>{number * step:.3f}</priority></url>"
            for number, path in enumerate(self.paths)
        ]
        return f'<?xml version="1.0"?><urlset>{"".join(lines)}</urlset>'

    def answer(self, path: str, headers: Any) -> tuple[int, dict[str, str], bytes]:
        """Answer a request for a page, from the cache if it has it."""
        began = time.monotonic()
        key = (
            path,
            *(headers.get(name, "") for name in VARY),
            str("Mobile" in headers["User-Agent"]),
        )
        kept = self._kept.get(key) if self.cached else None
        if kept is None:
            status, sent, body = self._make(path, headers)
            if status == 200 and self.cached and not path.startswith(UNCACHED):
                with self._lock:
                    self._kept[key] = _Kept(body, time.monotonic())
        else:
            status, body = 200, kept.body
            age = int(time.monotonic() - kept.stored_at)
            sent = {"Age": str(age), "Cache-Status": "demo; hit"}
        took_s = time.monotonic() - began
        agent, language = headers.get("User-Agent", ""), headers.get("Accept-Language", "")
        with self._lock:
            self.log.append(SiteRequest(began, path, agent, language, kept is not None, took_s))
        return status, sent, body

    def _make(self, path: str, headers: Any) -> tuple[int, dict[str, str], bytes]:
        with self._workers:
            time.sleep(self.page_s)
        with self._lock:
            self._made += 1
            is_failing = self._fails_from is not None and self._made > self._fails_from
        sent = {"Vary": ", ".join((*VARY, "User-Agent"))}
        if self.cached:
            forwarded = "bypass" if path.startswith(UNCACHED) else "uri-miss; stored"
            sent["Cache-Status"] = f"demo; fwd={forwarded}"
        if is_failing:
            return 500, sent, b"out of order"
        may_store = f"max-age={MAX_AGE_S}" if not path.startswith(UNCACHED) else "private, no-store"
        language = headers.get("Accept-Language", "en")
        body = f"<html lang={language}><title>{path}</title><a href=/linked>a link</a></html>"
        return 200, {**sent, "Cache-Control": may_store}, body.encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, site: SlowSite) -> None:
        self.site = site
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        site = self.server.site
        known = {*site.paths, "/", "/linked"}
        status, body = 404, b"not found"
        headers: dict[str, str] = {}
        if self.path == "/sitemap.xml":
            base = f"http://{self.headers['Host']}"
            status, body = 200, site.sitemap(base).encode()
        elif self.path == "/robots.txt":
            status, body = 200, b"User-agent: *\nAllow: /\n"
        elif self.path in known:
            status, headers, body = site.answer(self.path, self.headers)
        kind = "application/xml" if self.path.endswith(".xml") else "text/html; charset=utf-8"
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Be quiet: the site has its own log."""
