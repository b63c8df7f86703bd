"""Crawls in this process that several members share: `memory+shared:NAME`.

Every `open` of a name stands for a process of its own: it has its own claims, with leases by the
clock of the crawl (`SharedMemoryCrawl.clock_of`). `is_away` cuts one of them off. It is the twin of
a store on a server, for tests and for crawls in virtual time.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Protocol

from mannerly.crawler.control import is_for_shards
from mannerly.crawler.store.base import StoreInUse
from mannerly.crawler.store.exchange import OneByOne
from mannerly.crawler.store.fleet import (
    SHARED,
    CrawlGone,
    FleetFigures,
    LeaseLost,
    StoreAway,
    Unclaimed,
)
from mannerly.crawler.store.fleet_times import LEASE_S, MARGIN_S
from mannerly.politeness.clock import MonotonicClock

from .memory_crawl import CrawlData, DatedStore, MemoryCrawl, crawls

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mannerly.crawler.control import Control
    from mannerly.crawler.model import Entry
    from mannerly.crawler.store.base import (
        Batch,
        BroughtBack,
        Committed,
        Heartbeat,
        ShardOptions,
    )
    from mannerly.politeness.model import Instant


class LeaseClock(Protocol):
    """The clock of the store. Virtual members read it, too, so both ends of a lease are its own."""

    def now(self) -> Instant: ...


class _Shared:
    """The state that the members of a crawl share, besides its shards."""

    def __init__(self, limit: int | None) -> None:
        self.clock: LeaseClock = MonotonicClock()
        self.joined = 0
        self.seen: dict[str, Instant] = {}  # by member: its last renewal
        self.resting: set[int] = set()
        self.pages = inf if limit is None else limit  # of --max-urls that are left


_shared: dict[str, _Shared] = {}  # by location


class LeasedStore(DatedStore):
    """A shard that is claimed until `expires_at`: nothing is written after that."""

    crawl: SharedMemoryCrawl
    expires_at: Instant = -inf

    def prolong(self, now: Instant) -> None:
        """Hold the shard for another LEASE_S."""
        self.expires_at = now + LEASE_S
        self.sure_until = now + LEASE_S - MARGIN_S

    @property
    def is_held(self) -> bool:
        """Return whether this is still the shard's owner."""
        return self._data.owner is self and self.crawl.clock.now() < self.expires_at

    def commit(self, batch: Batch) -> Committed:
        self._fence()
        self.crawl.stir(self.shard)
        return super().commit(batch)

    def admit_waiting(self, room: int) -> list[Entry]:
        self._fence()
        return super().admit_waiting(room)

    def bring_back(self, limit: int) -> BroughtBack:
        self._fence()
        return super().bring_back(limit)

    def deliver(self) -> int:
        for shard, _ in self._data.outbox:
            self.crawl.stir(shard)
        return super().deliver()

    def pass_links(self, limit: int) -> Committed:
        self._fence()
        return super().pass_links(limit)

    def close(self) -> None:
        if not self.crawl.is_away:
            super().close()

    def _fence(self) -> None:
        self.crawl.reach()
        if not self.is_held:
            raise LeaseLost(f"shard {self.shard} of {self.crawl.location} has another owner")


class SharedMemoryCrawl(MemoryCrawl):
    """`CrawlStore` and its `Fleet` in memory: every instance is one member."""

    rhythm = SHARED
    withheld_until: Instant | None = None  # it is never restarted

    def __init__(self, location: str, crawl: CrawlData) -> None:
        super().__init__(location, crawl)
        self.fleet = self
        self.member = ""
        self.is_away = False  # cut off from the store: for tests
        limit = self.manifest.settings.get("max_urls")
        assert limit is None or isinstance(limit, int)
        self._shared = _shared.setdefault(location, _Shared(limit))
        self._leased: dict[int, LeasedStore] = {}
        exchange = OneByOne()
        self.commit, self.pass_links = exchange.commit, exchange.pass_links

    @classmethod
    def clock_of(cls, location: str, clock: LeaseClock) -> None:
        """Let the leases of a crawl, which exists, end by this clock."""
        _shared.setdefault(location, _Shared(None)).clock = clock

    @classmethod
    def wipe(cls, location: str) -> None:
        """Forget a crawl."""
        super().wipe(location)
        _shared.pop(location, None)

    @property
    def clock(self) -> LeaseClock:
        """The clock of the store."""
        return self._shared.clock

    def reach(self) -> None:
        """Raise StoreAway if this member is cut off, CrawlGone if there is no such crawl."""
        if self.is_away:
            raise StoreAway(f"{self.location} cannot be reached")
        if crawls.get(self.location) is not self._crawl:
            raise CrawlGone(f"the crawl in {self.location} was wiped")

    def stir(self, shard: int) -> None:
        """End the rest of a shard: something reaches it."""
        self._shared.resting.discard(shard)

    # ------------------------------------------------------------------ CrawlStore

    def hold(self) -> None:
        """Do nothing: the crawl is shared."""
        self.reach()

    def claim(self, shard: int, options: ShardOptions) -> LeasedStore:
        """Become the owner of a shard, for as long as it is renewed."""
        self.reach()
        data = self._crawl.shards[shard]
        if isinstance(data.owner, LeasedStore) and data.owner.is_held:
            raise StoreInUse(f"shard {shard} of {self.location} has another owner")
        store = LeasedStore(
            shard, frontier_limit=options.frontier_limit, inboxes=self._crawl.inboxes, data=data
        )
        store.crawl = self
        store.prolong(self.clock.now())
        self._claimed.append(store)
        self._leased[shard] = store
        self.stir(shard)
        return store

    def renew(self, heartbeat: Heartbeat, *, now: Instant | None = None) -> list[int]:  # type: ignore[override]
        """Prolong the claims of this member, and show its heartbeat."""
        self.reach()
        super().renew(heartbeat)
        self._shared.seen[heartbeat.id] = self.clock.now()
        instant = self.clock.now() if now is None else now
        lost = []
        for shard, store in list(self._leased.items()):
            if store.is_held:
                store.prolong(instant)
            else:
                del self._leased[shard]
                if store._data.owner is not None:  # else it was released
                    lost.append(shard)
        return lost

    def workers(self) -> list[Heartbeat]:
        """Return the heartbeats of the members."""
        self.reach()
        oldest = self.clock.now() - LEASE_S
        heartbeats = self._crawl.heartbeats.values()
        return sorted(
            heartbeat for heartbeat in heartbeats if self._shared.seen[heartbeat.id] > oldest
        )

    def is_running(self) -> bool:
        """Return whether a shard has an owner."""
        owners = (shard.owner for shard in self._crawl.shards)
        return any(isinstance(owner, LeasedStore) and owner.is_held for owner in owners)

    def order(self, control: Control) -> int:
        """Append a control record; return its number."""
        self.reach()
        return super().order(control)

    def orders(self, *, after: int = 0) -> list[tuple[int, Control]]:
        """Return the control records with larger numbers, in order."""
        self.reach()
        return super().orders(after=after)

    # ------------------------------------------------------------------ Fleet

    def join(self, home: Path, segments: Path | None = None) -> str:  # noqa: ARG002
        """Become a member. Nothing is kept in the directory."""
        self.reach()
        if not self.member:
            self._shared.joined += 1
            self.member = f"member-{self._shared.joined}"
        return self.member

    def heard(self, within_s: float) -> list[Heartbeat]:
        """Return the heartbeats that were renewed lately."""
        since = self.clock.now() - within_s
        return [
            heartbeat for heartbeat in self.workers() if self._shared.seen[heartbeat.id] > since
        ]

    def unclaimed(self, among: Sequence[int] | None = None) -> Unclaimed:
        """Return the shards that have no owner now, of all shards or among these."""
        self.reach()
        found = Unclaimed([], [], [])
        for shard in range(len(self._crawl.shards)) if among is None else among:
            owner = self._crawl.shards[shard].owner
            if not isinstance(owner, LeasedStore):
                found.released.append(shard)
            elif not owner.is_held:
                found.lapsed.append(shard)
        return found

    def rest(self, shards: Sequence[int]) -> set[int]:
        """Note that there is nothing to do in shards of this member; return where that holds."""
        self.reach()
        resting = {
            shard for shard in shards if self._leased[shard].is_held and not self._has_work(shard)
        }
        self._shared.resting |= resting
        return resting

    def finished(self) -> bool:
        """Return whether every shard rests."""
        self.reach()
        shards = range(self.manifest.shards)
        return len(self._shared.resting) == len(shards) and not any(map(self._has_work, shards))

    def take_pages(self, wanted: int) -> int:
        """Return how many of `wanted` pages may be started."""
        self.reach()
        taken = int(min(wanted, self._shared.pages))
        self._shared.pages -= taken
        return taken

    def return_pages(self, pages: int) -> None:
        """Give back pages that were taken and not started."""
        self.reach()
        self._shared.pages += pages

    def figures(self) -> FleetFigures:
        """Return what this process knows of the store."""
        return FleetFigures(leases=len(self._leased))

    def recall(self, host: str | None) -> int:  # noqa: ARG002
        """Return 0: no record is lost without the crawl."""
        return 0

    def _has_work(self, shard: int) -> bool:
        data = self._crawl.shards[shard]
        waits = data.queued or data.waiting or data.outbox or data.retries
        return bool(waits or self._crawl.inboxes[shard]) or any(
            is_for_shards(order) for order in self._crawl.orders[data.applied :]
        )
