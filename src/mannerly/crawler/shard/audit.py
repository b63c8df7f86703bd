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

    __slots__ = ("_floor_s", "_last_sent", "_own_floors_s")

    def __init__(self, floor_s: float) -> None:
        self._floor_s = floor_s
        self._own_floors_s: dict[str, float] = {}  # of budgets with a pace of their own
        self._last_sent: dict[str, Instant] = {}

    def configure(self, floor_s: float, *, key: str | None = None) -> None:
        """Change the minimum delay, of one budget or of all; gaps count from the next request.

        The gap from a request before the change to one after it belongs to neither delay.
        """
        if key is None:
            self._floor_s = floor_s
            self._last_sent.clear()
        else:
            self._own_floors_s[key] = floor_s
            self._last_sent.pop(key, None)

    def sent(self, host: str, permit: Permit, instant: Instant) -> RequestSent:
        """Note that a request to a host has left; return the event with its gap."""
        key = permit.host.key
        last = self._last_sent.get(key)
        self._last_sent[key] = instant
        delay_s = permit.host.delay_s
        if last is None:
            return RequestSent(host, None, delay_s, False)
        gap_s = instant - last
        floor_s = self._own_floors_s.get(key, self._floor_s)
        return RequestSent(host, gap_s, delay_s, gap_s < TOLERANCE * floor_s)

    def forget(self, key: str) -> None:
        """Forget an idle budget: its next request comes later than any gap."""
        self._last_sent.pop(key, None)
