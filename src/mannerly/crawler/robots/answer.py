"""An answer to a request for robots.txt becomes a record to be kept (RFC 9309 §2.3.1).

    2xx                   the rules of the body, its first 500 KiB, whatever it is
    3xx                   followed by the caller; one that leads nowhere, or too far, comes here
                          and means the same as 4xx
    4xx but 429           no rules
    429, 5xx, no answer   the file cannot be had: what was known before stands, however old. Asked
                          again after 1, 2, 4 … 60 minutes: the wait is a minute plus the time it
                          has been failing for, so nothing but `failing_since` has to be remembered
                          to go on doubling.

An answer holds for 24 hours, or for its max-age where that is shorter, but five minutes at least.
Pure functions: what follows for pages is decided in `gate`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import RobotsRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BODY_BYTES = 500 * 1024  # RFC 9309 §2.5
MAX_AGE_S = 24 * 3600.0  # RFC 9309 §2.4
MIN_AGE_S = 300.0
FIRST_RETRY_S = 60.0
LAST_RETRY_S = 3600.0

# Nine digits are thirty years; more would only serve to cost time.
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?([0-9]{1,9})(?![0-9])", re.IGNORECASE)
_NO_CACHE = re.compile(r"(?:^|[\s,])no-(?:cache|store)(?:$|[\s,=])", re.IGNORECASE)
_TOO_MANY_REQUESTS = 429


class RobotsAnswer(NamedTuple):
    """The part of an answer that matters."""

    status: int | None
    body: bytes
    lifetime_s: float

    @classmethod
    def of(cls, status: int | None, body: bytes, headers: Mapping[str, str]) -> RobotsAnswer:
        """Header names are lower case; no status means no answer."""
        return cls(status, body[:MAX_BODY_BYTES], _lifetime_s(headers))

    def record(self, origin: str, wall: float, previous: RobotsRecord | None) -> RobotsRecord:
        """Return what to keep for an origin; `previous` is what was kept before."""
        status = self.status
        if status is None or not 200 <= status < 500 or status == _TOO_MANY_REQUESTS:
            return _failing(origin, status, previous, wall)
        body = self.body if status < 300 else None
        return RobotsRecord(origin, status, body, wall, wall + self.lifetime_s)


def _failing(
    origin: str, status: int | None, previous: RobotsRecord | None, wall: float
) -> RobotsRecord:
    failing_since = previous.failing_since if previous is not None else 0.0
    failing_since = failing_since or wall
    wait_s = min(LAST_RETRY_S, max(0.0, wall - failing_since) + FIRST_RETRY_S)
    return RobotsRecord(
        origin=origin,
        status=status,
        body=previous.body if previous is not None else None,
        fetched_at=previous.fetched_at if previous is not None else wall,
        expires_at=wall + wait_s,
        failing_since=failing_since,
    )


def _lifetime_s(headers: Mapping[str, str]) -> float:
    said = headers.get("cache-control")
    if said is None:
        return MAX_AGE_S
    if _NO_CACHE.search(said):
        return MIN_AGE_S
    found = _MAX_AGE.search(said)
    return min(MAX_AGE_S, max(MIN_AGE_S, float(found[1]))) if found else MAX_AGE_S
