"""A member of a crawl that several runs share: its shards come and go while it runs.

Every poll of its worker, four times a second, does what is due, in this order:

    keep      every RENEW_S: prolong the claims; what was lost meanwhile is dropped
    pages     of --max-urls, in chunks
    balance   claim what has no owner, hand over what is more than this member's part (`balance`)
    rest      note which shards have nothing to do; find out whether the crawl is finished

**The store is away.** Nothing is started or written until a renewal succeeds; what is under way
comes to its end, and after `sure_until` nothing is sent. After `patience_s` the run ends with
StoreAway. Nothing is lost: the crawl continues when the same command is run again.

**Handing over.** A shard that is released starts no request; when those under way have ended, after
HAND_OVER_S at the latest, everything is committed and the shard released. The next owner waits for
the gap of each host.

**Unreachable hosts** (`agreement`) are waited for while any member has other work: each says in its
heartbeat that it has none (`Heartbeat.is_quiet`).
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.events import ShardLost
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
    SILENT_S,
)
from mannerly.crawler.web.words import many

from .balance import FreeShards, moves, quota
from .budget import CHUNK, FREELY, PageBudget
from .coordinator import Coordinator

if TYPE_CHECKING:
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import Heartbeat
    from mannerly.crawler.store.fleet import Fleet
    from mannerly.politeness.model import Instant

    from .worker import Worker

MANY = 100  # members: each inspection reads a heartbeat of each


class FleetMember(Coordinator):
    """Coordinates a process in a fleet: its shards and pages are those of the store.

    It claims its first shards once it knows the other members, and gives unreachable hosts up by
    itself.
    """

    orders_s = ORDERS_S

    def __init__(self, fleet: Fleet, patience_s: float) -> None:
        self._fleet = fleet
        self._patience_s = patience_s
        self.budget = PageBudget(0, ask=self._want_pages)
        self.wants_pages = True
        self._next_renewal = self._next_balance = self._next_rest = self._rest_again = -inf
        self._moving_until = -inf
        self._away_since: Instant | None = None
        self._leaving: dict[int, Instant] = {}  # shards that are released, and since when
        self._kept: dict[int, Instant] = {}  # shards beyond the quota, and since when
        self._refused: dict[int, Instant] = {}  # shards whose claims fail, and until when
        self._resting: set[int] = set()
        self._others = 0  # members that were heard lately
        self._quiet_since: Instant | None = None  # all members are, as far as is known
        self._is_finished = False
        self.lost = 0  # shards that another member has taken over

    def join(self, worker: Worker) -> None:
        """Coordinate this worker from now on."""
        super().join(worker)
        self._engine = worker.engine
        self._clock = worker.clock
        self._shards = worker.store.manifest.shards
        self._free = FreeShards(self._fleet, self._shards)

    @property
    def id(self) -> str:
        """Return the name of this member."""
        return self._fleet.member

    @property
    def is_finished(self) -> bool:
        """Return whether the whole crawl is finished."""
        return self._is_finished

    def keep(self, now: Instant) -> None:
        """Renew the claims, and drop what was lost.

        Raises:
            StoreAway: nothing was renewed.
            CrawlGone: the crawl is not in the store any more.
        """
        self._close_dropped()
        if now >= self._next_renewal:
            self._renew_claims()

    def share(self, now: Instant) -> None:
        """Take and hand over pages and shards, and find out whether the crawl is finished.

        Raises:
            StoreAway: the store does not answer.
        """
        self._take_pages()
        if now >= self._next_balance:
            self._next_balance = now + BALANCE_S
            self._balance(now)
        self._hand_over(now)
        if now >= self._next_rest:
            self._next_rest = now + REST_S
            self._rest(now)

    def leave(self) -> None:
        """Give back the pages that were not started."""
        unused = self.budget.recalled()
        if unused and not self._is_cut_off:
            with suppress(StoreAway):
                self._fleet.return_pages(unused)

    def describe(self, stats: Stats) -> None:
        """Add that the store is away, or why there is nothing to do here."""
        if self._engine.away is not None:
            stats.now.trouble = f"waiting for the store: {self._engine.away}"
        stats.now.idle_reason = self._idle_reason()

    def _idle_reason(self) -> str | None:
        """Return why there is nothing to fetch here, while the crawl is not finished."""
        if self._is_finished or not self._engine.is_idle:
            return None
        if len(self._engine.shards):
            return "all pages of its hosts are fetched; waiting for what other workers find"
        if self._refused:
            return f"waiting for shards: the server was restarted, {RESTARTED_S:.0f} s at most"
        if self._others:
            return f"waiting for shards: all are with {many(self._others, 'other worker')}"
        return "waiting for shards"

    @property
    def _is_cut_off(self) -> bool:
        return self._engine.away is not None

    # ------------------------------------------------------------------ pages

    def _want_pages(self) -> None:
        self.wants_pages = True

    def _take_pages(self) -> None:
        """Take pages from the crawl's limit, if some are wanted."""
        if not self.wants_pages:
            return
        pages = self._fleet.take_pages(CHUNK if self._is_limited else FREELY)
        self.wants_pages = pages == 0
        self.budget.granted(pages)

    @property
    def _is_limited(self) -> bool:
        return self._worker.settings.max_urls is not None or any(
            getattr(order, "name", None) == "max_urls" for _, order in self._worker.orders.past
        )

    # ------------------------------------------------------------------ leases

    def _renew_claims(self) -> None:
        now = self._clock.now()  # before the message is sent
        self._next_renewal = now + AGAIN_S
        for number in self._fleet.renew(self._worker.heartbeat(), now=now):
            self._lose(number)
        self._next_renewal = now + RENEW_S
        if (at := self._fleet.withheld_until) is not None:
            self._next_renewal = min(self._next_renewal, max(at, now + AGAIN_S))
        if self._away_since is not None and now - self._away_since > SILENT_S - RENEW_S:
            # The others were not heard, either: that does not mean that they are dead.
            self._next_balance = now + BACK_S
        self._away_since = None
        self._engine.store_is(None)
        if self._worker.events is not None:  # they are read
            self._engine.figures = self._fleet.figures()

    def store_away(self, error: StoreAway) -> None:
        """Wait for the store.

        Raises:
            StoreAway: it has been away for `patience_s`.
        """
        now = self._clock.now()
        self._engine.store_is(error)
        if self._away_since is None:
            self._away_since = now
        self._next_renewal = min(self._next_renewal, now + AGAIN_S)
        if now - self._away_since >= self._patience_s:
            raise StoreAway(
                f"{error} (waited {self._patience_s:g} s: --store-patience). Nothing is lost. Run "
                "the same command again to continue"
            ) from error

    def _lose(self, number: int) -> None:
        """Forget a shard that has another owner."""
        if number in self._engine.shards:
            shard = self._engine.shards.by_number[number]
            self._engine.drop(number)
            self._forget(number)
            shard.close()
            self._worker.emit(ShardLost(number, "another run has it"))
        self.lost += 1

    def _close_dropped(self) -> None:
        """Close the stores of the shards that the engine has lost."""
        for shard in self._engine.dropped:
            self._forget(shard.number)
            shard.close()
        self.lost += len(self._engine.dropped)
        self._engine.dropped.clear()

    def _forget(self, number: int) -> None:
        self._leaving.pop(number, None)
        self._resting.discard(number)

    # ------------------------------------------------------------------ shards

    def _balance(self, now: Instant) -> None:
        staying = self._engine.shards.by_number.keys() - self._leaving.keys()
        heartbeats = self._fleet.heard(SILENT_S)
        members = [heartbeat.id for heartbeat in heartbeats]
        self._others = len({*members} - {self.id})
        self._next_balance = now + BALANCE_S * max(1.0, len(members) / MANY)
        free = self._free_shards(heartbeats, now)
        self._kept = {at: since for at, since in self._kept.items() if now - since < BEYOND_KEPT_S}
        self._refused = {at: until for at, until in self._refused.items() if now < until}
        planned = moves(
            self.id,
            members,
            owned=staying,
            leaving=self._leaving,
            unclaimed=free,
            shards=self._shards,
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
            self._engine.shards.release(number)
        for number in (*planned.claim, *planned.beyond):
            if self._clock.now() - now >= CLAIMING_S:
                self._next_balance = now  # go on in the next poll
                break
            if self._claim(number) and number in planned.beyond:
                self._kept[number] = now

    def _free_shards(self, heartbeats: list[Heartbeat], now: Instant) -> list[int]:
        """Return the shards that may be claimed, by the heartbeats of the members."""
        owned = self._engine.shards.by_number
        part = quota(self.id, [heartbeat.id for heartbeat in heartbeats], self._shards)
        others = [heartbeat.shards for heartbeat in heartbeats if heartbeat.id != self.id]
        return self._free.poll(
            now,
            owned=owned,
            shown=set().union(*others),
            is_settled=len(owned) == part and now >= self._moving_until,
        )

    def _claim(self, number: int) -> bool:
        """Try to become the owner of a shard; return whether this member is."""
        if not self._engine.shards.may_add(number):
            return False
        try:
            store = self._worker.opener.claim(number, patience_s=0.0)
        except StoreInUse as error:  # another member was faster, or the server was restarted
            if error.for_s:
                self._refused[number] = self._clock.now() + error.for_s
            return False
        try:
            self._worker.take(number, store)
        except (LeaseLost, StoreAway) as error:
            # It may lack orders from before its claim, and is not told of them a second time.
            if number in self._engine.shards:
                self._engine.drop(number)
            store.close()  # else it would be renewed, and no member would work on it
            if isinstance(error, StoreAway):
                raise
            return False
        return True

    def _hand_over(self, now: Instant) -> None:
        """Release the shards that are drained, or were given time enough for it."""
        for number, since in list(self._leaving.items()):
            shard = self._engine.shards.by_number.get(number)
            if shard is None:  # it was lost
                self._forget(number)
                continue
            if shard.flights.unsettled and now - since < HAND_OVER_S:
                continue
            with suppress(LeaseLost):
                self._engine.release(number)
            self._next_renewal = min(self._next_renewal, now + AGAIN_S)
            self._forget(number)
            shard.close()

    # ------------------------------------------------------------------ the end

    def _rest(self, now: Instant) -> None:
        """Note which shards rest, and find out whether all shards of the crawl do."""
        shards = self._engine.shards.all
        if not self._engine.is_idle:
            # A rest costs round trips, and the crawl cannot be finished yet, or not any more.
            self._resting.clear()
            self._is_finished = False
            self._end_if_unreachable(now)
            return
        if now >= self._rest_again:
            self._rest_again = now + REST_AGAIN_S
            self._resting.clear()
        numbers = self._engine.shards.by_number.keys() - self._resting
        if numbers:
            self._resting |= self._fleet.rest(sorted(numbers))
        may_be_finished = len(self._resting) == len(shards) and not self._leaving
        self._is_finished = may_be_finished and self._fleet.finished()
        self._end_if_unreachable(now)

    def _end_if_unreachable(self, now: Instant) -> None:
        """Give unreachable hosts up once no member has had other work for a while."""
        if not self._worker.is_quiet or self._engine.is_idle:
            self._quiet_since = None
            return
        others = [
            heartbeat for heartbeat in self._worker.store.workers() if heartbeat.id != self.id
        ]
        if any(self._fleet.unclaimed()) or not all(heartbeat.is_quiet for heartbeat in others):
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = now
        elif now - self._quiet_since >= QUIET_S:
            self._quiet_since = None
            self._engine.give_up_unreachable()
