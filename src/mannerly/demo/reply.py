"""The answer of a host to one request, as a value.

Status 0 means no answer: the connection is closed after `delay_s`, or stays open without an answer
if that is infinite. This module knows no site, no clock and no socket.
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
