"""Check our own spacing, independently of the politeness core that is checked.

It sees when each request really left and compares the gap with the operator's minimum delay. An
early request must never happen. The servers' logs have the last word (`mannerly.demo.log`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.events import RequestSent

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant, Permit

TOLERANCE = 0.98  # the promise allows 2 %


class SpacingAudit:
    """Remembers when each budget was last used. `floor_s` is the operator's minimum delay."""

    __slots__ = ("_earliest_s", "_last_sent")

    def __init__(self, floor_s: float) -> None:
        self._earliest_s = TOLERANCE * floor_s
        self._last_sent: dict[str, Instant] = {}

    def sent(self, host: str, permit: Permit, instant: Instant) -> RequestSent:
        """Note that a request to a host has left; return the event with its gap."""
        key = permit.host.key
        last = self._last_sent.get(key)
        self._last_sent[key] = instant
        delay_s = permit.host.delay_s
        if last is None:
            return RequestSent(host, None, delay_s, False)
        gap_s = instant - last
        return RequestSent(host, gap_s, delay_s, gap_s < self._earliest_s)

    def forget(self, key: str) -> None:
        """Forget an idle budget: its next request comes later than any gap."""
        self._last_sent.pop(key, None)
