"""A worker of a crawl that several runs share: its shards come and go while it runs.

Every poll, four times a second, does what is due, in this order:

    renew     every RENEW_S: prolong the claims; what was lost meanwhile is dropped
    orders    every ORDERS_S: control records of the crawl
    pages     of --max-urls, in chunks
    balance   claim what has no owner, hand over what is more than this member's part (`balance`)
    rest      note which shards have nothing to do; find out whether the crawl is finished

**The store is away.** Nothing is started or written until a renewal succeeds; what is under way
comes to its end, and after `sure_until` nothing is sent. After `patience_s` the run ends with
StoreAway: nothing is lost, and the same command goes on.

**Handing over.** A shard that is released starts no request; when those under way have ended, after
HAND_OVER_S at the latest, everything is committed and the shard released. The next owner waits for
the gap of each host.

**Unreachable** hosts, which would be given up before they are due, are waited for while one has
other work: each says on its heartbeat that it has none (`Heartbeat.is_quiet`).
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.events import ShardLost, Watched
from mannerly.crawler.store.base import StoreInUse
from mannerly.crawler.store.fleet import LeaseLost, StoreAway
from mannerly.crawler.store.fleet_times import (
    AGAIN_S,
    BACK_S,
    BALANCE_S,
    BEYOND_KEPT_S,
    CLAIMING_S,
    HAND_OVER_S,
    MOVED_S,
    MOVING_S,
    ORDERS_S,
    QUIET_S,
    RENEW_S,
    REST_AGAIN_S,
    REST_S,
    RESTARTED_S,
    ROBOTS_S,
    SILENT_S,
)
from mannerly.crawler.web.words import many

from .balance import moves, quota
from .fleet_budget import FleetBudget
from .free_shards import FreeShards
from .worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import CrawlStore, Heartbeat
    from mannerly.politeness.model import Instant

    from .delivery import Delivered

MANY = 100  # members: each inspection reads a heartbeat of each


class FleetWorker(Worker):
    """A member of a crawl that several runs share."""

    orders_s = ORDERS_S

    def __init__(
        self,
        store: CrawlStore,
        settings: CrawlSettings,
        *,
        patience_s: float,
        deliver: Callable[[list[Delivered]], None] | None = None,
        number: int = 0,
        watched: Watched = Watched.NO,
    ) -> None:
        assert store.fleet is not None
        self._fleet = store.fleet
        self.budget = FleetBudget(store.fleet)
        self._patience_s = patience_s
        self._next_renewal = self._next_balance = self._next_rest = self._rest_again = -inf
        self._next_robots = self._moving_until = -inf
        self._away_since: Instant | None = None
        self._leaving: dict[int, Instant] = {}  # shards that are released, and since when
        self._free = FreeShards(store.fleet, store.manifest.shards)
        self._kept: dict[int, Instant] = {}  # shards beyond the quota, and since when
        self._refused: dict[int, Instant] = {}  # shards whose claims fail, and until when
        self._resting: set[int] = set()
        self._others = 0  # members that were heard lately
        self._quiet_since: Instant | None = None  # all members are, as far as is known
        self._is_finished = self._is_ending = False
        self.lost = 0  # shards that another member has taken over
        super().__init__(
            store,
            settings,
            [],
            self.budget,
            is_resumed=True,
            deliver=deliver,
            number=number,
            watched=watched,
        )

    # ------------------------------------------------------------------ as `Worker`

    @property
    def is_idle(self) -> bool:
        """Return whether the whole crawl is finished."""
        return self._is_finished

    @property
    def has_only_unreachable(self) -> bool:
        """Return False: this worker gives hosts up itself, after a check of the other members."""
        return False

    @property
    def is_cut_off(self) -> bool:
        """Return whether the store is away."""
        return self.engine.away is not None

    def poll(self, now: Instant) -> None:
        """Do everything that is due.

        Raises:
            StoreAway: the store has been away for `patience_s`.
            CrawlGone: the crawl is not in the store any more.
        """
        self._close_dropped()
        try:
            if now >= self._next_renewal:
                self._renew_claims()
            if self.is_cut_off:
                return
            if self._leases is not None:
                self._leases.tick(self._now())
            if now >= self._next_orders:
                self._read_orders(now)
            self.budget.poll(is_limited=self._is_limited)
            if now >= self._next_balance:
                self._next_balance = now + BALANCE_S
                self._balance(now)
            if now >= self._next_robots:
                self._next_robots = now + ROBOTS_S
                self._take_robots(self._now())
            self._hand_over(now)
            if now >= self._next_rest:
                self._next_rest = now + REST_S
                self._rest(now)
        except StoreAway as error:
            self._is_away(error)

    def close(self, *, with_process: bool = False) -> None:
        """Commit, and release everything."""
        self._is_ending = True
        try:
            if not self.is_cut_off:
                with suppress(StoreAway):
                    self.budget.give_rest_back()
            self.engine.stop()
            if self._leases is not None:
                self._leases.close(self._now())
        except StoreAway:
            pass  # what was not committed is still queued
        finally:
            self.abandon(with_process=with_process)

    def stats(self) -> Stats:
        stats = super().stats()
        if self.engine.away is not None:
            stats.trouble = f"waiting for the store: {self.engine.away}"
        stats.idle_reason = self._idle_reason()
        return stats

    def _idle_reason(self) -> str | None:
        """Return why there is nothing to fetch here, while the crawl is not finished."""
        if self._is_finished or not self.engine.is_idle:
            return None
        if len(self.engine.shards):
            return "all pages of its hosts are fetched; waiting for what other workers find"
        if self._refused:
            return f"waiting for shards: the server was restarted, {RESTARTED_S:.0f} s at most"
        if self._others:
            return f"waiting for shards: all are with {many(self._others, 'other worker')}"
        return "waiting for shards"

    def _waits_for(self, stats: Stats) -> str | None:
        return super()._waits_for(stats) or (stats.idle_reason if stats.is_left_to_others else None)

    @property
    def _id(self) -> str:
        return self._fleet.member

    def _heartbeat(self, stats: Stats) -> Heartbeat:
        return super()._heartbeat(stats)._replace(is_quiet=self._is_quiet)

    # ------------------------------------------------------------------ leases

    def _renew_claims(self) -> None:
        now = self._clock.now()  # before the message is sent
        self._next_renewal = now + AGAIN_S
        for number in self._fleet.renew(self._heartbeat(self.stats()), now=now):
            self._lose(number)
        self._next_renewal = now + RENEW_S
        if (at := self._fleet.withheld_until) is not None:
            self._next_renewal = min(self._next_renewal, max(at, now + AGAIN_S))
        if self._away_since is not None and now - self._away_since > SILENT_S - RENEW_S:
            # The heartbeats of the others are old, too: that does not mean that they are dead.
            self._next_balance = now + BACK_S
        self._away_since = self.engine.away = None
        if self.news is not None:  # they are read
            self.engine.figures = self._fleet.figures()

    def _is_away(self, error: StoreAway) -> None:
        now = self._clock.now()
        self.engine.away = error
        if self._away_since is None:
            self._away_since = now
        self._next_renewal = min(self._next_renewal, now + AGAIN_S)
        if now - self._away_since >= self._patience_s:
            raise StoreAway(
                f"{error} (waited {self._patience_s:g} s: --store-patience). Nothing is lost: the "
                "same command goes on"
            ) from error

    def _lose(self, number: int) -> None:
        """Forget a shard that has another owner."""
        if number in self.engine.shards:
            shard = self.engine.shards.by_number[number]
            self.engine.drop(number)
            self._forget(number)
            shard.close()
            self._events.emit(ShardLost(number, "another run has it"))
        self.lost += 1

    def _close_dropped(self) -> None:
        """Close the stores of the shards that the engine has lost."""
        for shard in self.engine.dropped:
            self._forget(shard.number)
            shard.close()
        self.lost += len(self.engine.dropped)
        self.engine.dropped.clear()

    def _forget(self, number: int) -> None:
        self._leaving.pop(number, None)
        self._resting.discard(number)

    # ------------------------------------------------------------------ shards

    def _balance(self, now: Instant) -> None:
        staying = self.engine.shards.by_number.keys() - self._leaving.keys()
        heartbeats = self._fleet.heard(SILENT_S)
        members = [heartbeat.id for heartbeat in heartbeats]
        self._others = len({*members} - {self._id})
        self._next_balance = now + BALANCE_S * max(1.0, len(members) / MANY)
        free = self._free_shards(heartbeats, now)
        self._kept = {at: since for at, since in self._kept.items() if now - since < BEYOND_KEPT_S}
        self._refused = {at: until for at, until in self._refused.items() if now < until}
        planned = moves(
            self._id,
            members,
            owned=staying,
            leaving=self._leaving,
            unclaimed=free,
            shards=self._store.manifest.shards,
            waiting=self._free.waiting(now),
            overdue=self._free.overdue(now),
            kept=self._kept,
            refused=self._refused,
        )
        if any(planned):
            self._next_renewal = min(self._next_renewal, now + AGAIN_S)  # the heartbeat has changed
        if any(planned) or self._leaving:
            self._moving_until = now + MOVED_S
        if now < self._moving_until:
            self._next_balance = now + MOVING_S
        for number in planned.release:
            self._leaving[number] = now
            self.engine.shards.release(number)
        for number in (*planned.claim, *planned.beyond):
            if self._clock.now() - now >= CLAIMING_S:
                self._next_balance = now  # go on in the next poll
                break
            if self._claim(number) and number in planned.beyond:
                self._kept[number] = now

    def _free_shards(self, heartbeats: list[Heartbeat], now: Instant) -> list[int]:
        """Return the shards that may be claimed, by the heartbeats of the members."""
        owned = self.engine.shards.by_number
        part = quota(
            self._id, [heartbeat.id for heartbeat in heartbeats], self._store.manifest.shards
        )
        others = [heartbeat.shards for heartbeat in heartbeats if heartbeat.id != self._id]
        return self._free.poll(
            now,
            owned=owned,
            shown=set().union(*others),
            is_settled=len(owned) == part and now >= self._moving_until,
        )

    def _claim(self, number: int) -> bool:
        """Try to become the owner of a shard; return whether this member is."""
        if not self.engine.shards.may_add(number):
            return False
        try:
            store = self._opener.claim(number, patience_s=0.0)
        except StoreInUse as error:  # another member was faster, or the server was restarted
            if error.for_s:
                self._refused[number] = self._clock.now() + error.for_s
            return False
        try:
            self._take(number, store)
        except LeaseLost:
            store.close()
            return False
        except StoreAway:
            if number not in self.engine.shards:
                store.close()  # else it would be renewed, and no member would work on it
            raise
        return True

    def _hand_over(self, now: Instant) -> None:
        """Release the shards that are drained, or were given time enough for it."""
        for number, since in list(self._leaving.items()):
            shard = self.engine.shards.by_number.get(number)
            if shard is None:  # it was lost
                self._forget(number)
                continue
            if shard.flights.unsettled and now - since < HAND_OVER_S:
                continue
            with suppress(LeaseLost):
                self.engine.release(number)
            self._next_renewal = min(self._next_renewal, now + AGAIN_S)
            self._forget(number)
            shard.close()

    # ------------------------------------------------------------------ the end

    def _rest(self, now: Instant) -> None:
        """Note which shards rest, and find out whether all shards of the crawl do."""
        shards = self.engine.shards.all
        if not self.engine.is_idle:
            # A rest costs round trips, and the crawl cannot be finished yet.
            self._resting.clear()
            self._end_if_unreachable(now)
            return
        if now >= self._rest_again:
            self._rest_again = now + REST_AGAIN_S
            self._resting.clear()
        numbers = self.engine.shards.by_number.keys() - self._resting
        if numbers:
            self._resting |= self._fleet.rest(sorted(numbers))
        if len(self._resting) == len(shards) and not self._leaving:
            self._is_finished = self._fleet.finished()
        self._end_if_unreachable(now)

    @property
    def _is_quiet(self) -> bool:
        """Return whether this member has nothing to do but wait for unreachable hosts."""
        engine = self.engine
        return engine.in_flight == 0 and (engine.is_idle or engine.has_only_unreachable)

    def _end_if_unreachable(self, now: Instant) -> None:
        if not self._is_quiet or self.engine.is_idle:
            self._quiet_since = None
            return
        others = [heartbeat for heartbeat in self._store.workers() if heartbeat.id != self._id]
        if any(self._fleet.unclaimed()) or not all(heartbeat.is_quiet for heartbeat in others):
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = now
        elif now - self._quiet_since >= QUIET_S:
            self._quiet_since = None
            self.engine.give_up_unreachable()

    @property
    def _is_limited(self) -> bool:
        return self._settings.max_urls is not None or any(
            getattr(order, "name", None) == "max_urls" for _, order in self.orders.past
        )
