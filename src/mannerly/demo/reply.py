"""What a host says to one request, as a value: the server sends it, the log remembers it.

Status 0 says nothing: the connection is closed after `delay_s`, or kept open in silence for ever
when that is infinite. This file knows no site, no clock and no socket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
XML = "application/xml"


@dataclass(frozen=True, slots=True)
class Stream:
    """A body that is made while it is sent: a new iterator per request, a pause after each chunk.

    Its length is unknown, so it goes out chunked; it may have no end.
    """

    chunks: Callable[[], Iterator[bytes]]
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SiteReply:
    """One answer. `delay_s` is waited on top of what the host's limit takes."""

    status: int
    body: bytes = b""
    content_type: str = HTML
    headers: tuple[tuple[str, str], ...] = ()
    stream: Stream | None = None
    delay_s: float = 0.0


def redirect(location: str, status: int = 301) -> SiteReply:
    """Point elsewhere; the location is sent as it is, however wrong."""
    return SiteReply(status, b"moved", TEXT, (("Location", location),))
