"""The loop of one process: start what is due, wait on the sockets, handle what finished, commit.

It uses neither asyncio nor threads: a callback per page would cost more than the page's own
bookkeeping, and the same loop runs in virtual time with a fake fetcher and its clock. No task waits
for a single host; the loop sleeps until the earliest instant at which any host is due.

Each shard is told the time at every tick, so that an idle crawl sees new control records and links.

Which shards a process has, and how many pages it may start, is decided by its `Coordinator`. It
adds and removes shards between two turns (`own_shards`), and the engine asks its `PageBudget`.
Nothing is sent for a shard after its store's `sure_until`. A shard whose lease is lost is dropped:
its requests are cancelled and nothing more of it is committed. While the store is away nothing is
started or written. If the store fails during a single call, it is unknown whether that call was
applied: the shard is dropped. An exchange (`exchange`) can be repeated. While its answer is
awaited, the sockets are served.

This module is long because the loop and all that slows it down share one state.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Protocol

from mannerly.crawler.events import BatchCommitted, Events, LoopStalled, ShardLost
from mannerly.crawler.fetch.base import HEADERS_SUFFICE
from mannerly.crawler.fetch.body_memory import BodyMemory
from mannerly.crawler.host.inflight import Stage, flight_of
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import STARVED, Entry, Fetched, LocalError, Now
from mannerly.crawler.render.values import OTHER_PROCESS, RUN_ENDS
from mannerly.crawler.shard.reading import readable
from mannerly.crawler.stats_fold import StatsFold
from mannerly.crawler.store.base import StoreError, StoreFull
from mannerly.crawler.store.exchange import OneByOne
from mannerly.crawler.store.fleet import LeaseLost, Rhythm, StoreAway

from .body_accounting import answer_bytes, result_bytes
from .commit_schedule import CommitSchedule
from .governor import Governor
from .machine import Shortage
from .own_shards import OwnShards
from .wire import Wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.fetch.base import Fetcher
    from mannerly.crawler.host.inflight import InFlight
    from mannerly.crawler.shard.interfaces import PageReading
    from mannerly.crawler.shard.shard import Shard
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import Committed
    from mannerly.crawler.store.exchange import StoreExchange
    from mannerly.crawler.store.fleet import FleetFigures
    from mannerly.hosts.leases import Leases
    from mannerly.politeness.model import Instant

    from .budget import PageBudget
    from .delivery import Delivery
    from .offload import Offload
    from .rendering import Browsers

TICK_S = 0.25
SUBREQUESTS = 16  # of rendered pages that may start in one turn when pages take all room
RECEIVE = 2000  # links of other shards that each shard takes over per tick
WORTH_SAYING_S = 1.0  # since the sockets were polled: every host has waited for as long
STALLED_S = 0.01  # since the sockets were polled: poll again before anything is started


# A member of an enum is found in 95 ns by its full name and in 15 by these, for every answer.
_READING, _DELIVERED = Stage.READING, Stage.DELIVERED
_NO_ROOM = LocalError.NO_ROOM


class Clock(Protocol):
    """The clock of `politeness.clock`, or a virtual one."""

    def now(self) -> Instant: ...

    def wall(self) -> float: ...


class Engine:
    """Some shards, one fetcher, one loop.

    While `is_draining` or `is_paused` is set, no request is started.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        shards: Sequence[Shard],
        clock: Clock,
        budget: PageBudget,
        *,
        concurrency: int,
        governed: bool = True,
        rhythm: Rhythm | None = None,
        offload: Offload[PageReading] | None = None,
        parse_limit: int = 256,
        delivery: Delivery | None = None,
        events: Events | None = None,
        memory: BodyMemory | None = None,
        leases: Leases | None = None,
        exchange: StoreExchange | None = None,
        browsers: Browsers | None = None,
        max_requests: int | None = None,
        takes_requisites: bool = False,
    ) -> None:
        self._exchange = exchange or OneByOne()
        self._memory = memory or BodyMemory()
        self._leases = leases
        rhythm = rhythm or Rhythm()
        self.shards = owned = OwnShards(shards, uncommitted=rhythm.uncommitted)
        self._shards, self._by_number = owned.all, owned.by_number
        self._clock = clock
        self._wire = Wire(fetcher, clock, owned.by_number)
        self._budget = budget
        self._max_requests = max_requests
        self._takes_requisites = takes_requisites
        self._governor = Governor(concurrency, is_on=governed)
        self._offload = offload
        self._parse_limit = parse_limit
        self._delivery = delivery
        if offload is not None:
            fetcher.watch(offload.descriptor)
        self._browsers = browsers
        if browsers is not None:
            fetcher.watch(browsers.descriptor)
        self._fold = StatsFold()
        self._events = events or Events()
        self._events.listen(self._fold)
        self._schedule = CommitSchedule(rhythm, clock.now())
        self._shortage = Shortage()  # of memory or descriptors
        self._latest_url = ""  # of the requests that were started
        self.is_draining = False
        self.is_paused = False
        self.dropped: list[Shard] = []  # lost by this engine; the worker closes their stores
        self.away: StoreAway | None = None  # since a call failed; the worker takes it back
        self.figures: FleetFigures | None = None  # of the store, for metrics

    @property
    def in_flight(self) -> int:
        """Return how many requests have no result: sent, being parsed, or not acknowledged."""
        return self.shards.unsettled

    @property
    def is_idle(self) -> bool:
        """Return whether there is nothing to do, unless another shard sends links."""
        return all(shard.is_idle for shard in self._shards)

    @property
    def has_requisites(self) -> bool:
        """Return whether pages that were fetched still need something, when no page may start."""
        now = self._now()
        return self._takes_requisites and any(shard.has_requisites(now) for shard in self._shards)

    @property
    def has_only_unreachable(self) -> bool:
        """Return whether only unreachable hosts are left (`agreement`)."""
        if self.is_paused or self.is_idle:
            return False
        now = self._now()
        return all(shard.is_idle or shard.has_only_unreachable(now) for shard in self._shards)

    def give_up_unreachable(self) -> None:
        """Give those hosts up: nothing else is left to do in the crawl."""
        now = self._now()
        for shard in self._shards:
            shard.give_up_unreachable(now)
        self._schedule.tick_at = now.mono

    @property
    def waits_for_program(self) -> bool:
        """Return whether nothing can happen until the program acknowledges a page."""
        if self.shards.delivered == 0 or self.in_flight != self.shards.delivered:
            return False
        now = self._now()
        return not self._may_start or self.shards.next_due(now) == inf

    def drain(self) -> None:
        """Start no request any more: the run ends when those under way have a result.

        Pages in browsers get nothing more: what is there of them is their result.
        """
        self.is_draining = True
        self._refuse_subrequests()

    def _refuse_subrequests(self) -> None:
        now = self._now()
        for shard in self._shards:
            if shard.subrequests:
                shard.subrequests.refuse_all(RUN_ENDS, now)

    def store_is(self, away: StoreAway | None) -> None:
        """Start and write nothing while the store is away; None: it is back."""
        self.away = away

    def set_concurrency(self, concurrency: int) -> None:
        """Change how many requests may be in flight."""
        self._governor.set_most(concurrency)

    def turn(self, longest_s: float = TICK_S) -> None:
        """Run the loop once. Without events it waits for up to `longest_s` seconds."""
        now = self._now()
        if self._delivery is not None:
            self._settle_acknowledged(self._delivery, now)
        busy_s = now.mono - self._wire.polled_at
        if busy_s > STALLED_S:
            if WORTH_SAYING_S < busy_s < inf and longest_s > 0.0:  # 0: the caller waits itself
                self._events.emit(LoopStalled(busy_s))
            # What came in while this process was stopped or busy may forbid what is due now.
            self._receive(0.0)
            now = self._now()
        if self._may_start:
            self._start(now)
        self._receive(self.due_in_s(longest_s, now))
        if self._offload is not None:
            self._collect(self._offload)
        if self._browsers is not None:
            self._serve_browsers(self._browsers)
        if self._delivery is not None:
            self._delivery.flush()
        try:
            if self.away is None:
                self._commit_if_due()
                self._take(self._wire.take_arrived())
                self._tick_if_due()
        except StoreAway as error:
            self.store_is(error)
        except StoreFull as error:
            self._schedule.wait_for_room(error, self._clock.now())
        if self.shards.unwritten:
            self._memory.held += self.shards.unwritten.growth()

    def _receive(self, timeout_s: float) -> None:
        """Serve the sockets; do not wait if answers have arrived: they may forbid what is due."""
        if arrived := self._wire.take_arrived():
            self._take(arrived)
            timeout_s = 0.0
        self._take(self._wire.wait(timeout_s))

    def _take(self, answers: list[Fetched]) -> None:
        if not answers:
            return
        now, shortage = self._now(), self._shortage
        for answer in answers:
            flight = flight_of(answer.request)
            if "content-encoding" in answer.headers:
                answer = self._decoded(answer)
            if answer.error is None:
                shortage.since = None
            elif isinstance(answer.error, LocalError) and answer.error in STARVED:
                shortage.met(answer.error, now.mono)
                self._governor.starved(now.mono)
            shard, frees_page = self._by_number.get(flight.shard), True
            if shard is not None:  # else it was lost since this answer came
                try:
                    frees_page = shard.answered(flight, answer, now)
                except (LeaseLost, StoreAway) as error:
                    self._lose(flight.shard, error)
            self._account(flight, answer, frees_page=frees_page)
        self._governor.turned(self._clock.now() - now.mono)

    def _decoded(self, answer: Fetched) -> Fetched:
        """Return an answer with its body decoded, which may make it a thousand times larger."""
        memory, status = self._memory, answer.status
        is_page = status is not None and status < HEADERS_SUFFICE
        is_full = memory.used >= memory.limit and not _is_subrequest(flight_of(answer.request))
        if is_page and answer.body and is_full:
            return Fetched(answer.request, error=_NO_ROOM, detail=_NO_ROOM.value)
        return readable(answer)

    def _account(self, flight: InFlight, answer: Fetched, *, frees_page: bool) -> None:
        """Count the memory of a page that is still worked on.

        `frees_page`: it got no record, so its place among `--max-urls` is free again.
        """
        if flight.stage in (_READING, _DELIVERED):
            self._memory.held += answer_bytes(flight.stage, answer, flight.item.kind)
        elif frees_page:
            self._give_back(flight)

    def _give_back(self, flight: InFlight) -> None:
        """Free the budget of a request that is no page of this run."""
        if KINDS[flight.item.kind].is_page:
            self._budget.give_back(1)

    def _now(self) -> Now:
        return Now(self._clock.now(), self._clock.wall())

    @property
    def _may_start(self) -> bool:
        if self.is_draining or self.is_paused or self._schedule.is_disk_full:
            return False
        if self.away is not None:
            return False
        if self._shortage.resume_at > self._clock.now():
            return False  # this machine lacks something
        if self._leases is not None and self._clock.now() >= self._leases.sure_until:
            return False  # another crawl may have taken the hosts over
        return self._has_memory or any(shard.subrequests for shard in self._shards)

    @property
    def _has_memory(self) -> bool:
        """Return whether there is room for more bodies.

        What pages in browsers ask for may start without: these give their memory back after it.
        """
        if self._memory.is_scarce:
            return False
        return self._offload is None or self._offload.pending < self._parse_limit

    def _start(self, now: Now) -> None:
        start, budget, has_room = self._wire.start, self._budget, self.shards.has_room
        has_memory = self._has_memory
        for shard, room in self.shards.rooms(self._governor.total, now.mono):
            is_full = room <= 0 or not has_memory
            if is_full:  # pages in browsers take all room, and wait for these
                room = SUBREQUESTS if shard.subrequests else 0
            if self._max_requests is not None:
                room = min(room, self._requests_left(self._max_requests))
            granted = budget.take(room) if room > 0 and not is_full else 0
            takes_pages = granted > 0
            if not takes_pages and room > 0 and (self._takes_requisites or shard.subrequests):
                granted = room  # pages that were started wait for these
            has_room[shard.number] = granted > 0
            if granted == 0:
                continue
            try:
                requests = shard.start_due(
                    now, granted, has_time=self._wire.was_idle, pages=takes_pages
                )
            except (LeaseLost, StoreAway) as error:
                self._lose(shard.number, error)
                return
            has_room[shard.number] = len(requests) < granted
            budget.settle(
                sum([KINDS[flight_of(request).item.kind].is_page for request in requests])
            )
            for request in requests:
                start(request)
            if requests:
                self._latest_url = requests[-1].url

    def _requests_left(self, limit: int) -> int:
        """Return how many requests this process may still start, if all that are under way leave.

        A sent request counts in both numbers until it is answered: the run stops a few early rather
        than going beyond the limit, and the last ones go one after the other.
        """
        on_wire = sum([shard.flights.on_wire for shard in self._shards])
        return limit - self._fold.stats.requests.audited - on_wire

    # ------------------------------------------------------------------ shards that come and go

    def add(self, shard: Shard) -> None:
        """Work on one more shard."""
        self.shards.add(shard)
        self._schedule.tick_at = self._clock.now()

    def release(self, number: int) -> None:
        """Commit everything of a shard and forget it; its requests under way are cancelled.

        Raises:
            LeaseLost: it has another owner. It is forgotten all the same.
            StoreAway: nothing was released.
        """
        self._receive(0.0)  # a refusal that waits in a socket must not be forgotten
        if self.away is not None:
            raise self.away
        shard, now = self._by_number.get(number), self._now()
        if shard is None:
            raise LeaseLost(f"shard {number} was lost while its last answers were taken")
        self._cancel(shard, now)
        try:
            shard.commit(now)
        except LeaseLost:
            self._forget(shard)
            raise
        self._forget(shard)

    def drop(self, number: int) -> None:
        """Forget a shard without a commit: it has another owner, or its state is unsure."""
        shard, now = self._by_number[number], self._now()
        # What its hosts have asked for counts. Pages are left: they cannot be kept any more.
        for answer in self._wire.take_refusals(number):
            flight = flight_of(answer.request)
            with suppress(StoreError):
                shard.answered(flight, answer, now)
            self._account(flight, answer, frees_page=True)
        self._cancel(shard, now)
        shard.abandon(now)
        self._forget(shard)

    def _lose(self, number: int, error: LeaseLost | StoreAway) -> None:
        if isinstance(error, StoreAway):
            self.store_is(error)
        if number in self.shards:
            self.dropped.append(self._by_number[number])
            self.drop(number)
            self._events.emit(ShardLost(number, str(error)))

    def _cancel(self, shard: Shard, now: Now) -> None:
        """Cancel the requests of a shard that are on the wire."""
        for request in self._wire.cancel(shard.number):
            flight = flight_of(request)
            self._give_back(flight)
            shard.cancelled(flight, now)

    def _forget(self, shard: Shard) -> None:
        self.shards.remove(shard)
        self._fold.forget(shard.number)
        shard.release(self._now())

    def _collect(self, offload: Offload[PageReading]) -> None:
        """Take the results of pages that were parsed in other processes."""
        if not self.shards.stale and not any(shard.flights.reading for shard in self._shards):
            return
        now = self._now()
        for reading, work in offload.collect():
            flight, answer = reading.flight, reading.answer
            self._memory.held -= answer_bytes(_READING, answer, flight.item.kind)
            if self.shards.take_stale(flight):
                self._give_back(flight)
                continue
            shard = self._by_number[flight.shard]
            try:
                frees_page = shard.read(reading, work, now)
            except (LeaseLost, StoreAway) as error:
                if flight.stage is _READING:
                    shard.flights.end(flight)  # it does not come back a second time
                self._give_back(flight)
                self._lose(flight.shard, error)
                continue
            if KINDS[flight.item.kind].is_page:  # a list has no body any more, only URLs
                self._account(flight, answer, frees_page=frees_page)

    def _serve_browsers(self, browsers: Browsers) -> None:
        """Take what pages in browsers ask for, and those that are finished."""
        asked, forgotten, done = browsers.collect()
        if not (asked or forgotten or done):
            return
        now, by_number = self._now(), self._by_number
        for request in asked:
            shard = by_number.get(browsers.owner_of(request))
            if shard is None:
                browsers.refuse(request, OTHER_PROCESS)
            elif self.is_draining:
                browsers.refuse(request, RUN_ENDS)
            else:
                shard.subrequests.ask(request, now)
        for request in forgotten:
            shard = by_number.get(browsers.owner_of(request))
            if shard is not None:
                shard.subrequests.forget(request, now)
        for reading, answer in done:
            self._take_rendered(reading, answer, now)

    def _take_rendered(self, reading: PageReading, answer: Fetched, now: Now) -> None:
        flight = reading.flight
        self._memory.held -= answer_bytes(_READING, reading.answer, flight.item.kind)
        if self.shards.take_stale(flight):
            self._give_back(flight)
            return
        try:
            frees_page = self._by_number[flight.shard].rendered(reading, answer, now)
        except (LeaseLost, StoreAway) as error:
            if flight.stage is _READING:
                self._by_number[flight.shard].flights.end(flight)
            self._give_back(flight)
            self._lose(flight.shard, error)
            return
        self._account(flight, answer, frees_page=frees_page)

    def _settle_acknowledged(self, delivery: Delivery, now: Now) -> None:
        """Settle the pages that the program is done with."""
        for flight, result in delivery.settled():
            self._memory.held -= result_bytes(result)
            if self.shards.take_stale(flight):
                self._give_back(flight)
                continue
            try:
                self._by_number[flight.shard].settle(flight, result, now)
            except (LeaseLost, StoreAway) as error:
                self._give_back(flight)
                self._lose(flight.shard, error)

    def due_in_s(self, longest_s: float, now: Now | None = None) -> float:
        """Return how long to wait on the sockets: until the next host, tick or commit is due."""
        now = now or self._now()
        if self.away is not None:
            return longest_s  # nothing is started or written until the store is back
        mono = now.mono
        until = self._schedule.wakes_at(mono, has_batch=self.shards.has_batch)
        until = min(until, mono + longest_s)
        if self._may_start:
            until = min(until, self.shards.next_due(now))
        return max(0.0, until - mono)

    def _commit_if_due(self) -> None:
        schedule, shards = self._schedule, self.shards
        is_called_for = shards.is_full and not schedule.is_disk_full
        if is_called_for or self._clock.now() >= schedule.commit_at or self._is_commit_awaited:
            shards.is_full = False
            self.commit()
        elif not schedule.is_disk_full and (needed := shards.to_commit_now):
            if schedule.is_seldom:
                self._exchange_batches(needed, self._now())
            else:
                self.commit()

    @property
    def _is_commit_awaited(self) -> bool:
        """Return whether nothing else can be done in a part of the shards that have a batch."""
        schedule = self._schedule
        if not schedule.is_seldom:
            return self._is_unoccupied and self.shards.has_batch
        now = self._now()
        return schedule.takes_early_look(now.mono) and self.shards.await_commit(
            now, schedule.commit_at, may_start=self._may_start
        )

    def hurry(self) -> None:
        """If nothing is under way, check at once whether other shards have sent links."""
        if self._is_unoccupied:
            self._schedule.tick_at = self._clock.now()

    def _tick_if_due(self) -> None:
        if self._clock.now() < self._schedule.tick_at and not self._has_time_to_deliver:
            return
        self._raise_failures()
        if self.is_draining:
            self._refuse_subrequests()  # those that were to be sent again
        now, shards = self._now(), list(self._shards)
        stores = [shard.store for shard in shards]
        results = self._exchange.pass_links(stores, RECEIVE, self._wire.serve)
        self._wire.note_sent()
        received, failure = self._sorted_out(shards, results)
        for shard in shards:
            if shard.number not in received:
                continue
            try:
                shard.tick(now, received[shard.number])
            except (LeaseLost, StoreAway) as error:
                self._lose(shard.number, error)
                if self.away is not None:
                    break
        if failure is not None:
            raise failure
        self._schedule.ticked(now.mono)

    def _raise_failures(self) -> None:
        """Raise why a request could not be noted, which is known since the fetcher asked for it."""
        for shard in list(self._shards):
            failure = shard.sent_once.take_failure()
            if isinstance(failure, LeaseLost):
                self._lose(shard.number, failure)
            elif failure is not None:
                raise failure

    def _sorted_out(
        self, shards: Sequence[Shard], results: Sequence[Committed | StoreError]
    ) -> tuple[dict[int, Committed], StoreError | None]:
        """Drop the shards that are lost; return what was done, by shard, and the worst failure."""
        done: dict[int, Committed] = {}
        failure: StoreError | None = None
        for shard, result in zip(shards, results, strict=True):
            if isinstance(result, LeaseLost):
                self._lose(shard.number, result)
            elif not isinstance(result, StoreError):
                done[shard.number] = result
            elif failure is None or isinstance(failure, StoreAway | StoreFull):
                failure = result
        return done, failure

    @property
    def _has_time_to_deliver(self) -> bool:
        """Return whether to deliver links now: nothing is under way, and another shard may wait.

        Where commits are dear they are delivered after each commit.
        """
        if self._schedule.is_seldom:
            return False
        return self._is_unoccupied and any(shard.left.has_outgoing for shard in self._shards)

    @property
    def _is_unoccupied(self) -> bool:
        """Return whether nothing is under way, for another reason than a full disk."""
        return not self._schedule.is_disk_full and self.in_flight == 0

    def commit(self) -> None:
        """Write everything that has come in to the store."""
        began = self._now()
        pages = sum([shard.left.uncommitted for shard in self._shards])
        self._exchange_batches(self._shards, began)
        ended = self._clock.now()
        took_s = ended - began.mono
        self._schedule.committed(took_s, ended)
        self._events.emit(BatchCommitted(pages, took_s))
        self._governor.committed(took_s, ended)

    def _exchange_batches(self, shards: Sequence[Shard], now: Now) -> None:
        """Commit some shards, and drop those that are lost."""
        offered = [(shard, batch) for shard in shards if (batch := shard.to_commit(now))]
        batches = [(shard.store, batch) for shard, batch in offered]
        results = self._exchange.commit(batches, self._wire.serve)
        committing = [shard for shard, _ in offered]
        for shard, result in zip(committing, results, strict=True):
            if not isinstance(result, StoreError):
                shard.committed(result, now)
                if result.lagging:
                    self._governor.outran(now.mono)
        self._wire.note_sent()
        _, failure = self._sorted_out(committing, results)
        if failure is not None:
            raise failure

    def stats(self) -> Stats:
        """Return the totals of this process, as they are now."""
        stats = self._fold.summed()
        stats.now.trouble = self._schedule.trouble
        stats.fleet = self.figures
        if self._leases is not None:
            stats.now.trouble = stats.now.trouble or self._leases.trouble
        stats.now.oldest = self._wire.oldest(self._clock.now())
        stats.now.latest_url = self._latest_url
        stats.now.host_views = self._fold.host_views(self._clock.now())
        stats.now.robots_in_flight = sum(shard.flights.robots for shard in self._shards)
        stats.now.parsing = 0 if self._offload is None else self._offload.pending
        stats.now.body_bytes = self._memory.used
        if (lack := self._shortage.words(self._clock.now())) is not None:
            stats.now.trouble = lack
        elif stats.now.trouble is None and self._memory.is_scarce and not self.waits_for_program:
            megabytes = self._memory.used // 1_000_000
            stats.now.trouble = f"waiting for memory: bodies take {megabytes} MB (--memory-limit)"
        elif stats.now.trouble is None and self._offload is not None:
            stats.now.trouble = self._offload.trouble(self._clock.now())
        return stats

    def stop(self) -> None:
        """Read what has arrived, cancel the other requests, and commit everything that came in.

        A refusal that waits in a socket would be forgotten otherwise: the next run would contact
        its host inside the Retry-After.
        """
        now = self._now()
        if self._delivery is not None:
            self._settle_acknowledged(self._delivery, now)
        self._wire.close_exit()
        self._receive(0.0)
        now = self._now()
        for request in self._wire.cancel_all():
            flight = flight_of(request)
            self._give_back(flight)
            self._by_number[flight.shard].cancelled(flight, now)
        self.commit()


def _is_subrequest(flight: InFlight) -> bool:
    """Return whether a page in a browser waits for this: its own memory is not free before."""
    return isinstance(flight.item, Entry) and flight.item.seq < 0
