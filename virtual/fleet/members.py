"""One member of a simulated fleet: a real `FleetMember`, with clocks and web in virtual time."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.model import Now
from mannerly.crawler.runtime.fleet_member import FleetMember
from mannerly.crawler.runtime.worker import Worker
from mannerly.crawler.store.base import StoreError
from mannerly.crawler.store.fleet import CrawlGone, StoreAway
from mannerly.crawler.store.fleet_times import LEASE_S, MARGIN_S, RENEW_S
from virtual.fetcher import FakeFetcher

from .link import Cut
from .server import EPOCH_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mannerly.crawler.fetch.body_memory import BodyMemory
    from mannerly.crawler.model import Request
    from mannerly.crawler.runtime.coordinator import Coordinator
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import CrawlStore
    from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
    from virtual.fetcher import FakeReply, VirtualClock

    from .link import ModelLink

LOCATION = "redis://127.0.0.1:6379/0#simulated"
LOOK_S = 1.0  # between two looks of a member at the store
DAY_S = 86_400.0


class MachineClocks:
    """The clocks of one machine: its monotonic clock began at 0, its wall clock may be wrong."""

    def __init__(self, clock: VirtualClock, skew_s: float) -> None:
        self._clock = clock
        self._skew_s = skew_s

    def now(self) -> float:
        """Return the monotonic time."""
        return self._clock.now

    def wall(self) -> float:
        """Return what this machine takes for the time of day."""
        return EPOCH_S + self._clock.now + self._skew_s


class VirtualWorker(Worker):
    """A worker with a clock and a fetcher in virtual time."""

    def __init__(
        self,
        store: CrawlStore,
        settings: CrawlSettings,
        coordinator: Coordinator,
        clocks: MachineClocks,
        fetcher: FakeFetcher,
    ) -> None:
        self._clocks = clocks
        self._fake = fetcher
        super().__init__(store, settings, coordinator, is_resumed=True)

    def _make_clock(self) -> MachineClocks:
        return self._clocks

    def _make_fetcher(self, _concurrency: int, _memory: BodyMemory) -> FakeFetcher:
        return self._fake


class VirtualMember(FleetMember):
    """A member that can be told to renew at once, and that says whether it has anything to do."""

    _shown: frozenset[int] = frozenset()  # the shards in its last heartbeat

    @property
    def is_settled(self) -> bool:
        """Return whether a poll changes nothing, as long as nothing else does."""
        engine, now = self._engine, self._clock.now()
        return not (
            self._is_cut_off
            or any(shard.store.sure_until <= now for shard in engine.shards.all)
            or self.is_finished
            or self._leaving
            or self.wants_pages
            or engine.dropped
            or self._shown != engine.shards.by_number.keys()
            or (engine.is_idle and len(self._resting) < len(engine.shards))
        )

    def _renew_claims(self) -> None:
        super()._renew_claims()
        self._shown = frozenset(self._engine.shards.by_number)

    def renew_soon(self) -> None:
        """Renew with the next poll."""
        self._next_renewal = -inf

    def renewed(self, at: float) -> None:
        """Go on as after a renewal that was sent at an instant."""
        for shard in self._engine.shards.all:
            shard.store.sure_until = max(shard.store.sure_until, at + LEASE_S - MARGIN_S)
        self._next_renewal = max(self._next_renewal, at + RENEW_S)


class SimulatedMember:
    """One member: a real `FleetMember` on a link of its own."""

    def __init__(
        self,
        number: int,
        home: Path,
        store: ValkeyCrawl,
        link: ModelLink,
        clocks: MachineClocks,
        settings: CrawlSettings,
        answer: Callable[[Request], FakeReply],
        clock: VirtualClock,
    ) -> None:
        self.number = number
        self.home = home
        self.link = link
        self.is_alive = True
        self.is_finished = False
        self.error: str | None = None
        self.stopped_until = 0.0
        self.unheard: list[tuple[float, float]] = []  # times in which the server cannot hear it
        self.forgotten: list[tuple[float, float]] = []  # times of which the server may know nothing
        self.let_go: list[float] = []  # when it learned that shards were lost
        self.is_watchful = True  # it looks every second (`calm`)
        self.has_looked = False  # and renewed, since it was roused
        self.ticket, self.turn_at = 0, -inf  # of its next turn
        self.links_at = -inf  # when it will look for links of other members
        self._clocks = clocks
        self._fetcher = FakeFetcher(clock, answer)
        self._next_look = clocks.now()
        self.store = store
        self.coordinator = VirtualMember(store.fleet, patience_s=DAY_S)
        self.worker = VirtualWorker(store, settings, self.coordinator, clocks, self._fetcher)

    def turn(self) -> None:
        """Do what is due now."""
        worker, now = self.worker, self._clocks.now()
        try:
            worker.engine.turn(0.0)
            if self.is_watchful and now >= self._next_look:
                self._next_look = now + LOOK_S
                if not self.has_looked:
                    self.coordinator.renew_soon()
                worker.poll(now)
                self.has_looked = True
                if self.coordinator.is_finished:
                    self.is_finished = True
                    self.end()
        except (StoreAway, CrawlGone, StoreError) as error:
            self.error = f"member {self.number}: {type(error).__name__}: {error}"
            self.end()

    def wake_at(self) -> float:
        """Return when the next turn is due."""
        now = self._clocks.now()
        answer_at = self._fetcher.next_at
        if self.is_watchful:
            at = min(now + self.worker.engine.due_in_s(LOOK_S), self._next_look)
        elif (at := self._calm_until()) <= now:
            at = now + self.worker.engine.due_in_s(LOOK_S)
        if answer_at is not None:
            at = min(at, answer_at)
        return max(at, self.link.busy_until, self.stopped_until)

    def _calm_until(self) -> float:
        """Return when a turn has something to do, if no link comes."""
        now = Now(self._clocks.now(), self._clocks.wall())
        until = inf
        for shard in self.worker.engine.shards.all:
            if shard.left.has_batch or shard.left.has_outgoing:
                return now.mono
            due = shard.next_due(now)
            until = until if due is None else min(until, due)
        return until

    @property
    def has_links(self) -> bool:
        """Return whether it was told of links that its shards have not taken yet."""
        return any(shard.arrived for shard in self.store.fleet.claimed.values())

    @property
    def lost(self) -> int:
        """Return how many shards it has lost so far."""
        return self.coordinator.lost + len(self.worker.engine.dropped)

    @property
    def owned(self) -> list[int]:
        """Return the shards that it works on."""
        return list(self.worker.engine.shards.by_number)

    def end(self) -> None:
        """End as a command does."""
        self.is_alive = False
        with suppress(StoreError):
            self.worker.close()
        self.store.close()

    def kill(self) -> None:
        """End as kill -9 ends a process: the server hears nothing more of it."""
        self.is_alive = False
        self.link.cut = Cut.BOTH
        if self.link.aside is not None:
            self.link.aside.end()
            self.link.aside = None
        with suppress(StoreError):
            self.worker.abandon()  # its files are closed as they are
        self.store.close()
