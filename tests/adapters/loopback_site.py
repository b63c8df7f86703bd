"""A real server on loopback that notes when each request came; it knows four kinds of paths.

/moved/N     redirected to /page/N
/busy/N      429 with `Retry-After: 1` the first time, then a page
/broken/N    the connection is closed instead of an answer
any other    a page
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Site(ThreadingHTTPServer):
    """The server; `log` has the instant and the path of every request, in order of arrival."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.log: list[tuple[float, str]] = []

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for."""
        return [path for _, path in self.log]

    @property
    def gaps_s(self) -> list[float]:
        """The times between the starts of requests."""
        return [later - sooner for (sooner, _), (later, _) in pairwise(self.log)]


class _Page(BaseHTTPRequestHandler):
    server: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        is_first = self.path not in self.server.paths
        self.server.log.append((time.monotonic(), self.path))
        kind, _, number = self.path[1:].partition("/")
        if kind == "broken":
            self.close_connection = True
        elif kind == "moved":
            self._answer(302, ("Location", f"/page/{number}"))
        elif kind == "busy" and is_first:
            self._answer(429, ("Retry-After", "1"))
        else:
            self._answer(200, ("Content-Type", "text/html"), b"<title>A page</title>")

    def _answer(self, status: int, header: tuple[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header(*header)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def running_site() -> Iterator[Site]:
    """Run the server in a thread."""
    with Site() as site:
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join()
