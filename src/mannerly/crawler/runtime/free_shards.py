"""The shards of a shared crawl that a member may claim, by what it can see of the others.

A shard is free if its owner has released it. If only its lease has ended, the owner may still renew
it: after an outage of the store all leases have ended, and all owners are about to renew them. So
such a shard is left to its owner for LEFT_S, while a new heartbeat shows it. Else
the members that see the store first would take the shards of all others.

This module knows no clock.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.store.fleet_times import LEFT_S, OVERDUE_S, RENEW_S, WAITING_S

if TYPE_CHECKING:
    from collections.abc import Collection

    from mannerly.crawler.store.fleet import Fleet
    from mannerly.politeness.model import Instant


class FreeShards:
    """The shards that one member may claim, and since when each of them is free."""

    def __init__(self, fleet: Fleet, shards: int) -> None:
        self._fleet = fleet
        self._all = frozenset(range(shards))
        self._since: dict[int, Instant] = {}
        self._lapsed_since: dict[int, Instant] = {}  # leases that have ended
        self._all_at = -inf  # when to ask for all shards again

    def poll(
        self, now: Instant, *, owned: Collection[int], shown: set[int], is_settled: bool
    ) -> list[int]:
        """Return the shards that may be claimed, of those that this member does not own.

        `shown` are the shards in heartbeats of other members. While this one `is_settled`, has its
        part and none change hands, it asks for these every RENEW_S only.
        """
        among: list[int] | None = None
        if is_settled and now < self._all_at:
            among = sorted(self._all.difference(owned, shown))
        else:
            self._all_at = now + RENEW_S
        released, lapsed, _ = self._fleet.unclaimed(among)
        before = self._lapsed_since
        unasked = () if among is None else before.keys() - set(among)
        self._lapsed_since = {number: before.get(number, now) for number in (*lapsed, *unasked)}
        abandoned = [
            number
            for number, since in self._lapsed_since.items()
            if number not in owned and (number not in shown or now - since >= LEFT_S)
        ]
        self._since = {number: self._since.get(number, now) for number in (*released, *abandoned)}
        return sorted(self._since)

    def waiting(self, now: Instant) -> set[int]:
        """Return the shards that have been free for a while, as of the last poll."""
        return {number for number, since in self._since.items() if now - since >= WAITING_S}

    def overdue(self, now: Instant) -> set[int]:
        """Return the shards that have been free for long, as of the last poll."""
        return {number for number, since in self._since.items() if now - since >= OVERDUE_S}
