"""What others have asked for: the server by headers, the site by robots.txt, we by backing off.

Every wish is a lower bound: on the next start (`blocked_until`), on the gap between two starts
(crawl delay, RateLimit quota) or on how few may be under way. Bounds are combined by maximum and
minimum, so no wish can override another. `blocked_until` never decreases. Most hosts never ask for
anything and share one empty object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import NEVER, Reason

if TYPE_CHECKING:
    from .headers import RateLimits
    from .model import Instant


class RequestedLimits:
    """The standing wishes of one host."""

    __slots__ = ("blocked_by", "blocked_until", "crawl_delay_s", "quota", "quota_until")

    def __init__(self) -> None:
        self.blocked_until: Instant = NEVER
        self.blocked_by = Reason.BACKOFF
        self.crawl_delay_s = 0.0
        self.quota: RateLimits | None = None  # what the headers said last ...
        self.quota_until: Instant = NEVER  # ... and until when it is believed

    def block(self, until: Instant, why: Reason) -> None:
        """No start before `until`."""
        if until > self.blocked_until:
            self.blocked_until = until
            self.blocked_by = why

    def announce(self, quota: RateLimits, now: Instant) -> None:
        """The server has told its limits."""
        self.quota = quota
        self.quota_until = now + quota.valid_s
        if quota.blocked_s is not None:
            self.block(now + quota.blocked_s, Reason.RATE_LIMIT_HEADER)

    def bound(self, gap_s: float, limit: int, heard_at: Instant) -> tuple[float, int]:
        """The strategy's gap and limit, as far as the wishes allow them.

        A fresh quota replaces the strategy's estimate, in both directions: exact beats inferred.
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
"""What hosts that ask for nothing share. Never changed: see `Host.wish`."""
