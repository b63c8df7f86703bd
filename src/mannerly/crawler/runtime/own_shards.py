"""The shards that one engine works on: a set that can grow and shrink while it runs.

A shard that leaves may have pages that a helper still parses or that a program still reads. Their
results are dropped when they come back (`is_stale`), and the shard is not taken again before that
(`may_add`): they would be taken for results of the new owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .held import Unwritten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mannerly.crawler.model import InFlight
    from mannerly.crawler.shard.shard import Shard
    from mannerly.politeness.model import Instant

FAIR = 128  # requests and uncommitted pages of one of many shards, if there is room


class OwnShards:
    """Some shards of a crawl, by number."""

    def __init__(self, shards: Iterable[Shard]) -> None:
        self.all: list[Shard] = []
        self.by_number: dict[int, Shard] = {}
        self.has_room: dict[int, bool] = {}  # for more requests
        self.stale: dict[int, int] = {}  # by shard that left: results that are still to come
        self.leaving: set[int] = set()  # no request is started in these
        self.unwritten = Unwritten()
        self._first = 0
        for shard in shards:
            self.add(shard)

    def __contains__(self, number: int) -> bool:
        return number in self.by_number

    def __len__(self) -> int:
        return len(self.all)

    def may_add(self, number: int) -> bool:
        """Return whether a shard may be taken: nothing of an earlier claim is still to come."""
        return number not in self.stale and number not in self.by_number

    def add(self, shard: Shard) -> None:
        """Take a shard."""
        assert self.may_add(shard.number), "results of an earlier claim are still to come"
        self.all.append(shard)
        self.by_number[shard.number] = shard
        self.has_room[shard.number] = True
        self.unwritten.add(shard)

    def release(self, number: int) -> None:
        """Start no request in a shard any more: it leaves."""
        self.leaving.add(number)
        self.has_room[number] = False  # else the loop would not wait while something is due there

    def remove(self, shard: Shard) -> None:
        """Forget a shard of which no request is on the wire."""
        number, flights = shard.number, shard.flights
        self.all.remove(shard)
        del self.by_number[number], self.has_room[number]
        self.leaving.discard(number)
        self.unwritten.remove(shard)
        if to_come := flights.reading + flights.delivered:
            self.stale[number] = to_come

    def is_stale(self, flight: InFlight) -> bool:
        """Return whether a result belongs to a shard that has left; it is counted off then."""
        number = flight.shard
        if number not in self.stale:
            return False
        self.stale[number] -= 1
        if not self.stale[number]:
            del self.stale[number]
        return True

    def rooms(self, total: int, now: Instant) -> Iterator[tuple[Shard, int]]:
        """Yield the shards that may start requests, each with how many.

        `total` is the most requests that all of them may have pending. Of many shards each may have
        more than its part while others have less; who comes first changes from turn to turn.
        """
        shards = self.all
        if len(shards) == 1:
            shard = shards[0]
            if now < shard.store.sure_until and not self.leaving:
                yield shard, total - shard.flights.pending
            return
        if not shards:
            return
        left = total - sum([shard.flights.pending for shard in shards])
        most = max(total // len(shards), min(FAIR, total))
        self._first = first = (self._first + 1) % len(shards)
        for shard in shards[first:] + shards[:first]:
            if now >= shard.store.sure_until or shard.number in self.leaving:
                continue
            pending = shard.flights.pending
            yield shard, min(most - pending, left)
            left -= shard.flights.pending - pending
