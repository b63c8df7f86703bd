"""Limits that were requested for a host: by response headers, by robots.txt, by a backoff.

Each one bounds the next start (`blocked_until`), the gap between two starts (Crawl-delay,
RateLimit quota) or the number of requests in flight. Bounds are combined by maximum or minimum, so
none can override another. `blocked_until` never decreases. Most hosts request nothing and share
one empty object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import NEVER, Reason

if TYPE_CHECKING:
    from .headers import RateLimits
    from .model import Instant


class RequestedLimits:
    """The limits in force that one host requested."""

    __slots__ = (
        "blocked_by",
        "blocked_until",
        "crawl_delay_s",
        "is_suspended",
        "quota",
        "quota_until",
    )

    def __init__(self) -> None:
        self.blocked_until: Instant = NEVER
        self.blocked_by = Reason.BACKOFF
        self.crawl_delay_s = 0.0
        self.is_suspended = False  # another crawl is sending to the host
        self.quota: RateLimits | None = None  # the latest RateLimit headers
        self.quota_until: Instant = NEVER  # when they expire

    def block(self, until: Instant, why: Reason) -> None:
        """Allow no start before `until`; an earlier block that lasts longer stays."""
        if until > self.blocked_until:
            self.blocked_until = until
            self.blocked_by = why

    def set_quota(self, quota: RateLimits, now: Instant) -> None:
        """Use the limits of the latest RateLimit headers."""
        self.quota = quota
        self.quota_until = now + quota.valid_s
        if quota.blocked_s is not None:
            self.block(now + quota.blocked_s, Reason.RATE_LIMIT_HEADER)

    def bound(self, gap_s: float, limit: int, heard_at: Instant) -> tuple[float, int]:
        """Return the strategy's gap and concurrency limit, bounded by the requested limits.

        A quota that has not expired replaces the strategy's gap, whether it is shorter or longer:
        the server's number is exact, the strategy's is an estimate.
        """
        quota = self.quota
        if quota is not None:
            if heard_at > self.quota_until:
                self.quota = None
            else:
                if quota.rate is not None:
                    gap_s = 1.0 / quota.rate
                elif quota.low_remaining:
                    gap_s *= 2.0
                if quota.concurrency is not None:
                    limit = min(limit, max(1, quota.concurrency))
        if self.crawl_delay_s >= 1.0:
            limit = 1
        return max(gap_s, self.crawl_delay_s), limit


NO_REQUESTED_LIMITS = RequestedLimits()
"""Shared by all hosts that request nothing. Must not be changed: see `HostState.own_requested`."""
