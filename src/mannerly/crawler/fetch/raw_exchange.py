"""A request and its answer as they were on the wire, for archives.

curl could tell what it sends, at a call into Python for every line of every connection. What it
sends is fixed by the options that are set, so it is written down here; a test compares both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import RawExchange
from mannerly.politeness.model import ErrorKind

from .answer_headers import last_head

if TYPE_CHECKING:
    from mannerly.crawler.model import Fetched, Request

    from .failures import FetchFailure


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
