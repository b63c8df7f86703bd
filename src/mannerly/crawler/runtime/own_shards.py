"""The shards that one engine works on: a set that can grow and shrink while it runs.

A shard that leaves may have pages that a helper still parses or that a program still reads. Their
results are dropped when they come back (`take_stale`), and the shard is not taken again before that
(`may_add`): they would be taken for results of the new claim.
"""

from __future__ import annotations

from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING

from .body_accounting import Unwritten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mannerly.crawler.host.inflight import InFlight
    from mannerly.crawler.model import Now
    from mannerly.crawler.shard.shard import Shard
    from mannerly.politeness.model import Instant

COMMIT_PAGES = 256  # of one shard, that do not wait for the others
DRY_SHARE = 0.15  # if more of the shards with a batch have nothing else to do, commit early
FAIR = 128  # the most requests (and uncommitted pages, if they count) of one of many shards


class OwnShards:
    """Some shards of a crawl, by number.

    `uncommitted`: the most pages that may wait for a commit, beside the requests under way; 0: they
    count among these.
    """

    def __init__(self, shards: Iterable[Shard], *, uncommitted: int = 0) -> None:
        self.all: list[Shard] = []
        self.by_number: dict[int, Shard] = {}
        self.has_room: dict[int, bool] = {}  # for more requests
        self.stale: dict[int, int] = {}  # by shard that left: results that are still to come
        self.leaving: set[int] = set()  # no request is started in these
        self.unwritten = Unwritten()
        self.is_full = False  # as many pages wait for a commit as may
        self._uncommitted = uncommitted
        self._first = 0  # whose turn is next
        self._had = 0  # requests that it has started in this turn
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

    @property
    def unsettled(self) -> int:
        """Return how many requests have no result: sent, being parsed, or not acknowledged."""
        return sum([shard.flights.unsettled for shard in self.all])

    @property
    def delivered(self) -> int:
        """Return how many pages the program that iterates over the crawl has not acknowledged."""
        return sum([shard.flights.delivered for shard in self.all])

    @property
    def has_batch(self) -> bool:
        """Return whether anything waits for a commit."""
        return any(shard.left.has_batch for shard in self.all)

    @property
    def to_commit_now(self) -> list[Shard]:
        """Return the shards that should not wait.

        A host asked for a pause, which the next run would not know after a crash now; or a batch is
        large.
        """
        return [
            shard
            for shard in self.all
            if shard.left.is_urgent or shard.left.uncommitted >= COMMIT_PAGES
        ]

    def next_due(self, now: Now) -> Instant:
        """Return when the next request can be started, if requests may be; infinite: none can."""
        until = inf
        for shard in self.all:
            if self.has_room[shard.number] and now.mono < shard.store.sure_until:
                due = shard.next_due(now)
                if due is not None and due < until:
                    until = due
        return until

    def await_commit(self, now: Now, commit_at: Instant, *, may_start: bool) -> bool:
        """Return whether many shards with a batch have nothing to do before its commit.

        One has something to do if a request is under way or can be started before.
        """
        having = dry = 0
        for shard in self.all:
            if shard.left.has_batch:
                due = shard.next_due(now) if may_start else None
                having += 1
                dry += shard.flights.unsettled == 0 and (due is None or due >= commit_at)
        return dry > having * DRY_SHARE

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

    def take_stale(self, flight: InFlight) -> bool:
        """Count off a result of a shard that has left; return whether it is one."""
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
        more than its part while others have less. They take turns: if there is room for a few
        requests only, each may start one for each of its hosts before the next one may.
        """
        shards, counted = self.all, _PENDING
        if self._uncommitted:
            counted = _UNSETTLED
            waiting = sum([shard.flights.settled for shard in shards])
            self.is_full = waiting >= self._uncommitted
            if self.is_full:
                return
        if len(shards) == 1:
            shard = shards[0]
            if now < shard.store.sure_until and not self.leaving:
                yield shard, total - counted(shard.flights)
            return
        if not shards:
            return
        left = total - sum([counted(shard.flights) for shard in shards])
        most = max(total // len(shards), min(FAIR, total))
        first = self._first = self._first % len(shards)  # some may have left
        for place, shard in enumerate(shards[first:] + shards[:first], first):
            if now >= shard.store.sure_until or shard.number in self.leaving:
                continue
            before = counted(shard.flights)
            yield shard, min(most - before, left)
            if started := counted(shard.flights) - before:
                left -= started
                self._took_turn(place % len(shards), started, has_room=left > 0)

    def _took_turn(self, place: int, started: int, *, has_room: bool) -> None:
        """A shard has started requests: the next one comes first, unless this one lacked room."""
        had = started + (self._had if place == self._first else 0)
        if has_room or had >= self.all[place].frontier.active_hosts:
            self._first, self._had = (place + 1) % len(self.all), 0
        else:
            self._first, self._had = place, had


_PENDING, _UNSETTLED = attrgetter("pending"), attrgetter("unsettled")
