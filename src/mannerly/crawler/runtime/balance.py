"""Divide the shards of a crawl evenly among its members, by what each of them can see.

Every member computes the same quotas from the same heartbeats, and decides for itself alone: a
member with more than its quota releases some, one with less claims what has no owner. While members
see different heartbeats the quotas differ for a moment, and a shard may be moved once too often.

**In portions.** The hosts of a shard without an owner wait. So a member releases a few shards, and
the next ones when these have been claimed: each is without an owner for a moment only. Of the
shards that are free a member claims its share first, so that several of them seldom try the same.

A member that died is counted until its silence shows, and what it should have claimed would wait.
So a shard that has had no owner for long (`overdue`) is claimed beyond the quota (`Moves.beyond`),
and then kept for a while (`kept`) before it may be released. Meanwhile nothing is released.

**Free.** A shard may be claimed if its owner has released it. If only its lease has ended, the
owner may still renew it: after an outage of the store all leases have ended, and all owners are
about to renew them. So such a shard is left to its owner for LEFT_S, while a heartbeat that came
lately shows it. Else the members that see the store first would take the shards of all others.

This module knows no clock.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from mannerly.crawler.store.fleet_times import LEFT_S, OVERDUE_S, RENEW_S, WAITING_S

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mannerly.crawler.store.fleet import Fleet
    from mannerly.politeness.model import Instant


PORTION = 8  # shards that a member has released and that have no owner yet, at most
STEPS = 6  # or this part of all that it has to release, if that is more


class Moves(NamedTuple):
    """The shards that a member should try to claim, and those that it should release."""

    claim: list[int]
    release: list[int]
    beyond: tuple[int, ...] = ()  # to be claimed as well, although the quota is reached


def quota(member: str, members: Iterable[str], shards: int) -> int:
    """Return how many shards a member should have; it counts itself, seen or not."""
    names = sorted({member, *members})
    part, rest = divmod(shards, len(names))
    return part + (names.index(member) < rest)


def moves(
    member: str,
    members: Iterable[str],
    *,
    owned: Collection[int],
    unclaimed: Collection[int],
    shards: int,
    leaving: Collection[int] = (),
    waiting: Collection[int] = (),
    overdue: Collection[int] = (),
    kept: Collection[int] = (),
    refused: Collection[int] = (),
) -> Moves:
    """Return what a member should do about the shards. Those that are `leaving` are not `owned`.

    Those that are `refused` have no owner, and a claim of them would fail now. Those that have been
    `waiting` for an owner come first: others that are released meanwhile would keep them waiting
    until they are `overdue`.

    Which of them is chosen by a hash: two members that claim at once seldom try the same shard, and
    the shards that are released are neither the busiest nor the idlest.
    """
    names = {member, *members}
    part = quota(member, names, shards)
    free_to_go = [shard for shard in owned if shard not in kept]
    excess = len(free_to_go) - part
    if excess > 0 and not overdue:
        order = sorted(free_to_go, key=lambda shard: _mixed(member, shard))
        portion = max(PORTION, -(-excess // STEPS)) - len(leaving) - len(unclaimed)
        return Moves([], order[: max(0, min(excess, portion))])
    order = sorted(
        [shard for shard in unclaimed if shard not in refused],
        key=lambda shard: (shard not in overdue, shard not in waiting, _mixed(member, shard)),
    )
    share = -(-len(unclaimed) // max(1, len(names) - 1))
    within = max(0, min(part - len(owned), share))
    most = -(-len(overdue) // len(names))  # each of the members takes a part of them
    return Moves(order[:within], [], tuple(order[within:most]))


def _mixed(member: str, shard: int) -> int:
    return crc32(f"{member}:{shard}".encode())


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

        `shown` are the shards in the heartbeats of other members. While this one `is_settled`, has
        its part and none change hands, it asks for these every RENEW_S only.
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
