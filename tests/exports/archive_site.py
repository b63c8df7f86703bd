"""A small site with a page of every kind that an archive has to bring back byte for byte."""

from __future__ import annotations

import gzip
import threading
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Answer(NamedTuple):
    """An answer of the site; `body` is as it is sent."""

    body: bytes
    media: str = "text/html; charset=utf-8"
    encoding: str | None = None
    status: int = 200
    is_chunked: bool = False
    location: str | None = None


TEXT = b"<p>Some words of a page that are worth keeping.</p>" * 60
SAME = b"<html><title>twice</title>" + TEXT + b"</html>"
ANSWERS = {
    "/gzip": Answer(gzip.compress(b"<html><title>gzip</title>" + TEXT), encoding="gzip"),
    "/deflate": Answer(zlib.compress(b"<html><title>deflate</title>" + TEXT), encoding="deflate"),
    "/plain": Answer(b"<html><title>plain</title>" + TEXT),
    "/chunked": Answer(b"<html><title>chunked</title>" + TEXT, is_chunked=True),
    "/image.png": Answer(bytes(range(256)) * 40, "image/png"),
    "/text.txt": Answer("Grüße\n".encode() * 300, "text/plain; charset=utf-8"),
    "/data.json": Answer(b'{"price": 9}', "application/json"),
    "/latin": Answer(b"<html><title>caf\xe9</title>" + TEXT, "text/html; charset=iso-8859-1"),
    "/style.css": Answer(b"body { color: black }\n", "text/css"),
    "/empty": Answer(b""),
    "/moved": Answer(b"", status=302, location="/plain"),
    "/missing": Answer(b"<html><title>missing</title>", status=404),
    "/same-1": Answer(SAME),
    "/same-2": Answer(SAME),
}
_LINKS = "".join(f'<a href="{path}">{path}</a>' for path in ANSWERS)
ANSWERS["/"] = Answer(f"<html><title>home</title><main>{_LINKS}</main></html>".encode())
ROBOTS = Answer(b"User-agent: *\nDisallow: /private\n", "text/plain")


class Site(NamedTuple):
    """A site that is being served."""

    url: str  # of its first page
    requests: list[bytes]  # the heads of all requests, as they were received


@contextmanager
def archive_site(answers: dict[str, Answer] | None = None) -> Iterator[Site]:
    """Serve the site on loopback while a block runs."""
    pages = {"/robots.txt": ROBOTS, **(ANSWERS if answers is None else answers)}
    requests: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            head = f"{self.requestline}\r\n" + "".join(
                f"{name}: {value}\r\n" for name, value in self.headers.items()
            )
            requests.append(head.encode() + b"\r\n")
            answer = pages.get(self.path, Answer(b"", status=404))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.media)
            if answer.encoding:
                self.send_header("Content-Encoding", answer.encoding)
            if answer.location:
                self.send_header("Location", answer.location)
            if answer.is_chunked:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(answer.body), answer.body))
                return
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Site(f"http://127.0.0.1:{server.server_port}/", requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
