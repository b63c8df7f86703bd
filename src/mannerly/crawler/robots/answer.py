"""An answer to a request for robots.txt becomes a record to be kept (RFC 9309 §2.3.1).

    2xx                   the rules of the body, its first 500 KiB, whatever it is
    3xx                   followed by the caller; one that leads nowhere, or too far, comes here
                          and means the same as 4xx
    4xx but 429           no rules
    429, 5xx, no answer   the file is unreachable: what was known before stands, however old

How long each holds is in `politeness.robots.keeping`. Pure functions: what follows for pages is
decided in `gate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import RobotsRecord
from mannerly.politeness.robots.keeping import (
    MAX_BODY_BYTES,
    is_reachable,
    lifetime_s,
    retry_wait_s,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class RobotsAnswer(NamedTuple):
    """The part of an answer that matters."""

    status: int | None
    body: bytes
    lifetime_s: float

    @classmethod
    def of(cls, status: int | None, body: bytes, headers: Mapping[str, str]) -> RobotsAnswer:
        """Header names are lower case; no status means no answer."""
        return cls(status, body[:MAX_BODY_BYTES], lifetime_s(headers.get("cache-control")))

    def record(self, origin: str, wall: float, previous: RobotsRecord | None) -> RobotsRecord:
        """Return what to keep for an origin; `previous` is what was kept before."""
        status = self.status
        if status is None or not is_reachable(status):
            return _failing(origin, status, previous, wall)
        body = self.body if status < 300 else None
        return RobotsRecord(origin, status, body, wall, wall + self.lifetime_s)


def _failing(
    origin: str, status: int | None, previous: RobotsRecord | None, wall: float
) -> RobotsRecord:
    failing_since = previous.failing_since if previous is not None else 0.0
    failing_since = failing_since or wall
    wait_s = retry_wait_s(wall - failing_since)
    return RobotsRecord(
        origin=origin,
        status=status,
        body=previous.body if previous is not None else None,
        fetched_at=previous.fetched_at if previous is not None else wall,
        expires_at=wall + wait_s,
        failing_since=failing_since,
    )
