"""A request and its answer as they were on the wire, for archives; the headers of an answer.

curl could tell what it sends, at a call into Python for every line of every connection. What it
sends is fixed by the options that are set, so it is written down here; a test compares both.

curl writes the header lines of one transfer: of interim answers, of the answer, and trailers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import RawExchange
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from mannerly.crawler.model import Fetched, Request

    from .failures import FetchFailure


def last_head(head: bytes) -> bytes:
    """Return the status line and the headers of the final answer, as they were received."""
    if head.find(b"\n\r\n") == len(head) - 3 and b"\n\n" not in head:
        return head  # there is no other block, as in nearly all answers
    blocks = head.replace(b"\r\n", b"\n").split(b"\n\n")
    last = len(blocks) - 2
    while last > 0 and not blocks[last].startswith(b"HTTP/"):
        last -= 1
    return blocks[max(last, 0)]


def parse_headers(head: bytes) -> dict[str, str] | None:
    """Return the headers of the final answer, without interim ones (1xx) and without trailers.

    None if the answer ended within its headers.
    """
    # Latin-1 maps every byte, and the blocks are cut at line feeds only: `splitlines` would also
    # cut at control characters, which a hostile value may hold.
    blocks = head.decode("latin-1").replace("\r\n", "\n").split("\n\n")
    last = len(blocks) - 2
    while last >= 0 and not blocks[last].startswith("HTTP/"):
        last -= 1
    if last < 0:
        return None
    headers: dict[str, str] = {}
    for line in blocks[last].split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            name, value = name.strip().lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    headers.pop("set-cookie", None)
    return headers


def request_head(request: Request, user_agent: str, accepted: str) -> bytes:
    """Return the request line and the headers of a request, as they may be kept.

    Of one with a payload they are those that are stored: a secret is only named.
    """
    headers, method = request.headers, "HEAD" if request.is_head else request.method
    if request.payload is not None:
        headers = request.payload.headers
    scheme, _, rest = request.url.partition("://")
    authority, slash, path = rest.partition("/")
    port = ":443" if scheme == "https" else ":80"
    lines = [
        f"{method} {slash}{path} HTTP/1.1",
        f"Host: {authority.removesuffix(port)}",
        f"User-Agent: {user_agent}",
        "Accept: */*",
        f"Accept-Encoding: {accepted}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def raw_exchange(
    asked: bytes, head: bytes, fetched: Fetched, failure: FetchFailure | None, address: str
) -> RawExchange:
    """Return what was sent and received; `failure` is why the body broke off, if it did."""
    cut = "length" if fetched.is_truncated else None
    if failure is not None:
        cut = "time" if failure[0] is ErrorKind.TIMEOUT else "disconnect"
    return RawExchange(asked, last_head(head), fetched.body, address, cut)
