"""A worker: an engine with everything that it needs, for some shards of a crawl.

A crawl with one process has one worker, in this process (`run`). With more, each worker is a child
process (`worker_process`), started by the supervisor. Which shards and pages it has, and when all
is finished, is up to its `Coordinator`.

The worker acts on control records about the whole crawl (pause and the number of requests in
flight) and passes those about URLs and hosts to its shards. Those that end the run are read by
`RunLimits`. It is long because all parts of a process are made and released here.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from mannerly.crawler.control import (
    AddSeeds,
    FetchRobots,
    Pause,
    SeedsMoved,
    SetOption,
    Stop,
    Unpause,
)
from mannerly.crawler.events import Events, Watched
from mannerly.crawler.fetch.body_memory import BodyMemory
from mannerly.crawler.fetch.curl import CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.fetch.poller import max_sockets
from mannerly.crawler.host_view import HostStatus
from mannerly.crawler.model import Now
from mannerly.crawler.store.base import Heartbeat, StoreError
from mannerly.crawler.store.exchange import OneByOne
from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.fleet_times import ROBOTS_S
from mannerly.crawler.web.seeds import moved_seeds
from mannerly.hosts.base import said_of
from mannerly.politeness.clock import MonotonicClock

from .agreement import WorkProgress
from .beginning import browsers_of, extracting, fetch_settings, join_others, rules_of
from .delivery import Delivery
from .engine import Engine
from .event_batches import EventCollector
from .machine import room
from .messages import machine
from .offload import Offload, code_role
from .opening import ShardOpener, ShardParts, catch_up
from .order_book import OrderBook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from mannerly.crawler.control import Control
    from mannerly.crawler.fetch.base import Fetcher
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.shard.interfaces import PageReading
    from mannerly.crawler.shard.shard import Shard
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import CrawlStore, ShardStore
    from mannerly.politeness.model import Instant

    from .coordinator import Coordinator
    from .delivery import Delivered
    from .engine import Clock

HEADROOM = 256  # descriptors for everything but pages: the store, connections kept alive
LONG_WAIT_S = 5.0  # without a request that is due; a shorter wait is not worth a word


class Worker:
    """An engine for some shards, their stores, and who coordinates them with other processes."""

    def __init__(
        self,
        store: CrawlStore,
        settings: CrawlSettings,
        coordinator: Coordinator,
        *,
        is_resumed: bool,
        deliver: Callable[[list[Delivered]], None] | None = None,
        number: int = 0,
        watched: Watched = Watched.NO,
    ) -> None:
        self.clock = clock = self._make_clock()
        # First, because a memory that cannot be used must not leave sockets behind.
        self._leases = join_others(settings, store, clock)
        self.store = store
        self.settings = settings
        self.coordinator = coordinator
        manifest = store.manifest
        self._room = room(len(coordinator.first))
        concurrency = self._share(settings.concurrency)
        self._rules = rules_of(settings, manifest)
        memory = BodyMemory(settings.memory_limit // settings.processes)
        self._guard = NetworkGuard(allow_net=settings.allow_net)
        self._open_network(manifest.seeds)
        self._fetcher = self._make_fetcher(concurrency, memory)
        self._extract = extracting(settings)
        self._offload: Offload[PageReading] = Offload(
            settings.parse_processes,
            max_bytes=settings.max_bytes,
            code=code_role(settings.parse_processes, self._extract),
        )
        self._delivery: Delivery | None = None
        self._acknowledged: dict[int, AbstractSet[int]] = {}  # before this run, by shard
        if deliver is not None:
            self._delivery = Delivery(deliver, self._acknowledged, number)
            self._fetcher.watch(self._delivery.descriptor)
        self.emit = (events := Events()).emit
        self.events = EventCollector(events, watched) if watched is not Watched.NO else None
        self._browsers = browsers_of(settings, manifest.shards)
        common = ShardParts(
            self._rules,
            events,
            self._offload,
            self._delivery,
            self._extract,
            watched,
            self._leases,
            self._browsers,
        )
        self.opener = ShardOpener(store, settings, common, is_resumed=is_resumed)
        self.engine = Engine(
            self._fetcher,
            (),
            clock,
            coordinator.budget,
            concurrency=concurrency,
            governed=settings.governor,
            rhythm=None if store.fleet is None else store.fleet.rhythm,
            offload=self._offload,
            parse_limit=max(1, settings.parse_limit // settings.processes),
            delivery=self._delivery,
            events=events,
            memory=memory,
            leases=self._leases,
            exchange=store.fleet or OneByOne(manifest.shards),
            browsers=self._browsers,
            max_requests=settings.max_requests,
            takes_requisites=settings.requisites,
        )
        self._is_paused = self._is_held = False
        self.orders = OrderBook(store)
        now = clock.now()
        self._next_orders = self._next_robots = now
        coordinator.join(self)
        try:
            self._begin(coordinator.first, is_resumed=is_resumed)
        except BaseException:
            self.abandon()
            raise

    # A worker in virtual time has others of these two.

    def _make_clock(self) -> Clock:
        return MonotonicClock()

    def _make_fetcher(self, concurrency: int, memory: BodyMemory) -> Fetcher:
        seeds = self.store.manifest.seeds
        chosen = fetch_settings(self.settings, seeds, self._connections(concurrency))
        return CurlFetcher(self._guard, chosen, memory)

    def _begin(self, numbers: Sequence[int], *, is_resumed: bool) -> None:
        """Open the first shards."""
        stores = [self.opener.claim(number) for number in numbers]
        if is_resumed:
            for each in stores:
                self._rules.widen(*moved_seeds(each.redirects, self.store.manifest.seeds))
        for number, each in zip(numbers, stores, strict=True):
            self.take(number, each)
        self.engine.commit()
        self.poll(self.clock.now())

    def take(self, number: int, store: ShardStore) -> None:
        """Work on a shard that was claimed."""
        now = self._now()
        self._acknowledged[number] = store.acknowledged
        shard = self.opener.make(number, store, now)
        self.engine.add(shard)
        self.opener.say_mended([shard])
        catch_up(shard, self.orders.past, now)

    @property
    def progress(self) -> WorkProgress:
        """Return how far this process is."""
        in_flight, is_idle = self.engine.in_flight, self.coordinator.is_finished
        has_only_unreachable = (
            not is_idle and in_flight == 0 and self.coordinator.has_only_unreachable
        )
        received = sum(shard.received for shard in self._shards)
        is_spent = self.coordinator.budget.is_spent
        has_requisites = self.engine.has_requisites
        return WorkProgress(
            is_idle, has_only_unreachable, in_flight, received, is_spent, has_requisites
        )

    @property
    def is_quiet(self) -> bool:
        """Return whether this process has nothing to do but wait for unreachable hosts."""
        engine = self.engine
        return engine.in_flight == 0 and (engine.is_idle or engine.has_only_unreachable)

    @property
    def _shards(self) -> list[Shard]:
        return self.engine.shards.all

    def _now(self) -> Now:
        return Now(self.clock.now(), self.clock.wall())

    def stats(self) -> Stats:
        """Return the totals of this process, and whether it is paused."""
        stats = self.engine.stats()
        stats.now.is_paused = self._is_paused
        stats.now.trouble = stats.now.trouble or self.orders.trouble
        self.coordinator.describe(stats)
        return stats

    def watch(self, descriptor: int) -> None:
        """Wake up when there is something to read from this descriptor."""
        self._fetcher.watch(descriptor)

    def acknowledge(self, tokens: list[int]) -> None:
        """Note that the program is done with these pages. Any thread may call this."""
        if self._delivery is not None:
            self._delivery.acknowledge(tokens)

    def hold(self, is_held: bool) -> None:  # noqa: FBT001 - a state, not an option
        """Start no request while held, whatever control records say."""
        self._is_held = is_held
        self._apply_pause()

    def poll(self, now: Instant) -> None:
        """Do everything that is due, beside the engine.

        Raises:
            StoreError: the crawl is not there any more.
            StoreAway: the store has been away for too long.
        """
        coordinator = self.coordinator
        try:
            coordinator.keep(now)
            if self.engine.away is not None:
                return
            if self._leases is not None:
                self._leases.tick(self._now())
            if now >= self._next_orders:
                self._next_orders = now + coordinator.orders_s
                self._read_orders(now)
            if now >= self._next_robots:
                self._next_robots = now + ROBOTS_S
                self._take_robots(self._now())
                self.opener.say_mended(self._shards)
            coordinator.share(now)
        except StoreAway as error:
            coordinator.store_away(error)

    def _read_orders(self, now: Instant) -> None:
        for number, order in self.orders.news():
            self._act(number, order, Now(now, self.clock.wall()))
        if self.store.manifest.shards > 1:
            self._tell_others(now)

    def close(self, *, with_process: bool = False) -> None:
        """Cancel the requests under way, commit, and release everything.

        `with_process`: the process ends now. Sockets are left to the system then, because curl
        would wait for names that are still being looked up.
        """
        try:
            with suppress(StoreAway):  # what was not committed is still queued
                self.engine.stop()
                self.coordinator.leave()
                self.opener.say_mended(self._shards)
        finally:
            try:
                if self._leases is not None:  # else others would wait until they end
                    self._leases.close(self._now())
            finally:
                self.abandon(with_process=with_process)

    def abandon(self, *, with_process: bool = False) -> None:
        """Release everything without a commit: after an error a batch may be incomplete."""
        try:
            self._offload.close()
            if self._browsers is not None:
                self._browsers.close()
            if self._delivery is not None:
                self._delivery.close()
            if not with_process:
                self._fetcher.close()
        finally:
            if self._extract is not None:
                self._extract.close()
            if self._leases is not None:
                self._leases.abandon()
            for shard in (*self._shards, *self.engine.dropped):
                shard.close()
            self._retire()

    def _act(self, number: int, order: Control, now: Now) -> None:
        match order:
            case Pause() | Unpause():
                self._is_paused = isinstance(order, Pause)
                self._apply_pause()
            case SetOption(name="concurrency", value=value):
                wanted = self.settings.concurrency if value is None else int(value)
                concurrency = self._share(wanted)
                self._fetcher.set_max_connections(self._connections(concurrency))
                self.engine.set_concurrency(concurrency)
            case Stop() | SetOption(name="max_urls" | "duration"):
                pass  # read by `RunLimits`
            case _:
                if isinstance(order, AddSeeds):
                    self._open_network(order.urls)
                    self._include_moved(order.urls)
                for shard in self._shards:
                    shard.control(number, order, now)

    def _tell_others(self, now: Instant) -> None:
        """Order what concerns the shards of other workers, too."""
        if self._rules.moved:
            self.orders.send(SeedsMoved(tuple(self._rules.moved)))
            self._rules.moved.clear()
        for shard in self._shards:
            if requests := shard.take_robots_requests():
                self.orders.send(FetchRobots(tuple(requests)))
        self.orders.flush(now)

    def _take_robots(self, now: Now) -> None:
        """Take over the robots.txt that other shards have fetched for shards of this worker."""
        asked = {each: shard for shard in self._shards for each in shard.awaited_origins}
        for number in range(self.store.manifest.shards) if asked else ():
            with suppress(StoreError), self.store.read(number) as reader:
                for origin, shard in asked.items():
                    record = reader.robots(origin)
                    if record is not None and record.expires_at > now.wall:
                        shard.robots_found(record, now)

    def _open_network(self, seeds: Iterable[str]) -> None:
        """Let seeds be contacted that are private, or have a port of their own."""
        if self.settings.seeds_open_network:
            self._guard.add_seeds(seeds)

    def _include_moved(self, seeds: Iterable[str]) -> None:
        """Include in the scope where seeds were redirected to in an earlier run."""
        for shard in self._shards:
            self._rules.widen(*moved_seeds(shard.store.redirects, seeds))

    def _apply_pause(self) -> None:
        self.engine.is_paused = self._is_paused or self._is_held
        if self._leases is not None:
            self._leases.is_resting = self._is_paused

    def _share(self, concurrency: int) -> int:
        """Return this process's part of the requests in flight."""
        share = max(1, concurrency // self.settings.processes)
        return min(share, max_sockets(), self._room.requests)

    def _connections(self, concurrency: int) -> int:
        """Return how many connections may be open, kept alive ones included."""
        return min(concurrency + HEADROOM, self._room.connections)

    def heartbeat(self) -> Heartbeat:
        """Return what the store shows of this process."""
        stats = self.stats()
        return Heartbeat(
            self.coordinator.id,
            machine(),
            os.getpid(),
            sorted(self.engine.shards.by_number),
            stats.pages,
            self.clock.wall(),
            self._waits_for(stats),
            is_quiet=self.is_quiet,
            code="" if self._extract is None else self._extract.version,
        )

    def _waits_for(self, stats: Stats) -> str | None:
        """Return why this worker makes no progress, if it knows."""
        if self._is_paused:
            return "paused"
        if stats.now.trouble is not None:
            return stats.now.trouble
        if self.engine.waits_for_program:
            ready = self.engine.shards.delivered
            return f"waiting for the program that reads the pages: {ready} ready"
        if stats.now.waits.states[HostStatus.SHARED] and not stats.now.waits.fetching:
            return _used_by_others(stats)
        next_in_s = stats.now.waits.next_in_s
        if next_in_s is not None and next_in_s >= LONG_WAIT_S and not self.engine.in_flight:
            hosts = f"{stats.now.hosts:,} hosts" if stats.now.hosts != 1 else "1 host"
            return (
                f"no request is due for {next_in_s:.0f} s: {hosts} with a pause, a slow pace or a "
                "robots.txt that is asked for again"
            )
        return stats.now.idle_reason if stats.is_left_to_others else None

    def _retire(self) -> None:
        with suppress(StoreError):  # the heartbeat expires by itself
            self.store.retire(self.coordinator.id)


def _used_by_others(stats: Stats) -> str:
    """Return who sends to the hosts that are left, as far as that is known."""
    count = stats.now.waits.states[HostStatus.SHARED]
    holders = {each.held_by for each in stats.now.host_views if each.held_by}
    by = said_of(min(holders)) if len(holders) == 1 else "other crawls"
    return f"{'1 host is' if count == 1 else f'{count:,} hosts are'} in use by {by}"
