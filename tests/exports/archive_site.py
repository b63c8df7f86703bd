"""A small site with a page of every kind that an archive has to bring back byte for byte."""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tests.harness.sites import Request, serving

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

    def respond(request: Request) -> None:
        head = f"{request.requestline}\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in request.headers.items()
        )
        requests.append(head.encode() + b"\r\n")
        answer = pages.get(request.path, Answer(b"", status=404))
        headers = {"Content-Type": answer.media}
        if answer.encoding:
            headers["Content-Encoding"] = answer.encoding
        if answer.location:
            headers["Location"] = answer.location
        if answer.is_chunked:
            request.answer_in_chunks(answer.status, [answer.body], headers)
        else:
            request.answer(answer.status, answer.body, headers)

    with serving(respond) as origin:
        yield Site(f"{origin}/", requests)
