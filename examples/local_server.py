"""A web server on this machine for the examples: it allows so many requests a second, no more."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class LimitedServer(ThreadingHTTPServer):
    """Answers 429 with Retry-After whenever a request comes before its time."""

    def __init__(self, gap_s: float) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.gap_s = gap_s
        self.lock = threading.Lock()
        self.next_at = 0.0
        self.served = self.refused = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def admits(self) -> bool:
        """Count a request, and say whether it came in time."""
        with self.lock:
            now = time.monotonic()
            if now < self.next_at:
                self.refused += 1
                return False
            self.next_at = now + self.gap_s
            self.served += 1
            return True


class Page(BaseHTTPRequestHandler):
    """The only page there is."""

    server: LimitedServer

    def do_GET(self) -> None:
        """A page, or a refusal."""
        is_served = self.server.admits()
        body = b"<h1>hello</h1>" if is_served else b"slower, please"
        self.send_response(200 if is_served else 429)
        self.send_header("Content-Length", str(len(body)))
        if not is_served:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: the example prints what matters."""


@contextmanager
def limited_server(gap_s: float) -> Iterator[LimitedServer]:
    """A server that runs for the length of the block."""
    with LimitedServer(gap_s) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
