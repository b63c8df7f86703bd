"""Our own verdict on our manners, independent of the politeness core that is judged.

It sees when each request really left, and compares: was any sent before the operator's floor was
over? `Stats.too_early` must stay 0. The servers' logs are the higher court (`mannerly.demo.log`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.stats import REMARKABLE, HostTally

if TYPE_CHECKING:
    from mannerly.crawler.stats import Stats
    from mannerly.politeness.model import Instant, Permit

TOLERANCE = 0.98  # promise P4 allows 2 %


class Witness:
    """Watches the gaps of one shard's hosts."""

    def __init__(self, stats: Stats, floor_s: float) -> None:
        self._stats = stats
        self._floor_s = floor_s
        self._last_sent: dict[str, Instant] = {}

    def sent(self, host: str, permit: Permit, instant: Instant) -> None:
        """A request to a host has left. Its gap is that of the host's group."""
        key = permit.host.key
        last = self._last_sent.get(key)
        self._last_sent[key] = instant
        if last is None:
            return
        gap_s = instant - last
        tally = self.tally(host)
        if tally is not None and gap_s < tally.smallest_gap_s:
            tally.smallest_gap_s, tally.asked_gap_s = gap_s, permit.host.delay_s
        if gap_s < TOLERANCE * self._floor_s:
            self._stats.too_early += 1

    def tally(self, host: str) -> HostTally | None:
        """The host's line in the summary; None when there are enough of them."""
        tallies = self._stats.tallies
        tally = tallies.get(host)
        if tally is None and len(tallies) < REMARKABLE:
            tally = tallies[host] = HostTally()
        return tally

    def forget(self, key: str) -> None:
        """A group is idle: its next request comes after any gap."""
        self._last_sent.pop(key, None)
