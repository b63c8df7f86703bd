"""The part of HTTP/1.1 that these servers need: parse a request's head, build an answer.

An answer's head is built once per page; only the date is added when it is sent. All functions are
pure: bytes in, values out, or the other way round. Status 0 means no answer: the connection is
closed after `delay_s`, or stays open without an answer if that is infinite.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
XML = "application/xml"


@dataclass(frozen=True, slots=True)
class Stream:
    """A body that is generated while it is sent, in chunks; it may have no end.

    chunks: returns a new iterator for each request.
    pause_s: seconds after each chunk.
    """

    chunks: Callable[[], Iterator[bytes]]
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SiteReply:
    """One answer; `delay_s` is added to the latency that the host's limit decides."""

    status: int
    body: bytes = b""
    content_type: str = HTML
    headers: tuple[tuple[str, str], ...] = ()
    stream: Stream | None = None
    delay_s: float = 0.0


def redirect(location: str, status: int = 301) -> SiteReply:
    """Return a redirect; the location is sent as given, even if it is not a valid URL."""
    return SiteReply(status, b"moved", TEXT, (("Location", location),))


HEAD_END = b"\r\n\r\n"
MAX_HEAD_BYTES = 65_536
LAST_CHUNK = b"0\r\n\r\n"


class RequestHead(NamedTuple):
    """The parts of a request's head that the servers use."""

    method: str
    target: str
    user_agent: str
    accepts_gzip: bool
    keeps_alive: bool


class Message(NamedTuple):
    """An answer as bytes: a head without Date and without its last empty line, and a body."""

    status: int
    head: bytes
    body: bytes
    stream: Stream | None
    delay_s: float


def parse_head(head: bytes) -> RequestHead | None:
    """Parse a request's head, given without its last empty line; None if it is not HTTP/1.x.

    Bodies are never read, so the connection of a request with a body is closed after the answer.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        return None
    method, target, version = parts
    keeps_alive = version != "HTTP/1.0"
    user_agent, accepts_gzip = "", False
    for line in lines:
        name, _, value = line.partition(":")
        match name.lower():
            case "user-agent":
                user_agent = value.strip()
            case "accept-encoding":
                accepts_gzip = "gzip" in value
            case "connection":
                keeps_alive = "close" not in value.lower()
            case "content-length" | "transfer-encoding":
                keeps_alive = keeps_alive and value.strip() == "0"
    return RequestHead(method, target, user_agent, accepts_gzip, keeps_alive)


def build(reply: SiteReply, *, zipped: bool = False) -> Message:
    """Convert a reply to bytes; `zipped` compresses the body unless it has an encoding already."""
    body, headers = reply.body, list(reply.headers)
    headers.insert(0, ("Content-Type", reply.content_type))
    if zipped and body and all(name != "Content-Encoding" for name, _ in headers):
        body = gzip.compress(body, 1, mtime=0)
        headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    if reply.stream:
        headers.append(("Transfer-Encoding", "chunked"))
    else:
        headers.append(("Content-Length", str(len(body))))
    head = f"HTTP/1.1 {reply.status} {_phrase(reply.status)}\r\n" + _lines(headers)
    return Message(reply.status, head.encode("latin-1"), body, reply.stream, reply.delay_s)


def header_lines(headers: Mapping[str, str]) -> bytes:
    """Return further headers as bytes, to be sent after a built head."""
    return _lines(list(headers.items())).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """Return one chunk of a body with chunked transfer encoding."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _lines(headers: list[tuple[str, str]]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status else ""
