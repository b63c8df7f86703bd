"""Local servers of test pages: a function answers each request, behind a real socket.

`mannerly.demo.DemoWeb` serves whole webs with limits and a log; `tests.crawler.fetch.raw_server`
serves bytes that no HTTP server would send. This is for everything between.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from tests.harness.arrivals import next_arrival, note_arrivals
from tests.harness.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Respond = Callable[["Request"], None]

HTML = {"Content-Type": "text/html"}


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Request(BaseHTTPRequestHandler):
    """One request to a test's server, and the ways to answer it. It prints nothing."""

    protocol_version = "HTTP/1.1"
    arrived_at: float  # by `time.monotonic`

    def handle_one_request(self) -> None:
        self.arrived_at = next_arrival(self.connection)
        super().handle_one_request()

    def handle(self) -> None:
        with suppress(OSError):  # the client has gone
            super().handle()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()

    def answer(
        self, status: int, body: bytes | str = b"", headers: Mapping[str, str] = HTML
    ) -> None:
        """Send an answer with its length; a HEAD gets no body."""
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def answer_in_chunks(
        self, status: int, chunks: Iterable[bytes], headers: Mapping[str, str] = HTML
    ) -> None:
        """Send an answer whose length is not known before its end."""
        self.send_response(status)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        for chunk in [*chunks, b""]:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))

    def hang_up(self) -> None:
        """Close the connection without an answer."""
        self.close_connection = True

    def read(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving(
    respond: Respond | type[BaseHTTPRequestHandler], address: tuple[str, int] = ("127.0.0.1", 0)
) -> Iterator[str]:
    """Serve an address while a block runs; yield the site's origin, such as http://127.0.0.1:4321.

    A function answers GET, HEAD and POST; a handler of one's own may do more. A port that another
    run of the tests has is waited for.
    """
    handler = respond if isinstance(respond, type) else _handler(respond)
    server = _bound(address, handler)
    note_arrivals(server.socket)
    server.daemon_threads = True  # connections that a client keeps open end with the process
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://{address[0]}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(respond: Respond) -> type[Request]:
    def answer(request: Request) -> None:  # `respond` may be a method of another object
        respond(request)

    return type("Handler", (Request,), dict.fromkeys(("do_GET", "do_HEAD", "do_POST"), answer))


def _bound(address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ThreadingHTTPServer(address, handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def port_of(origin: str) -> int:
    """Return the port of a site's origin."""
    return int(origin.rpartition(":")[2])
