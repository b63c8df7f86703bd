"""The loop of one process: start what is due, wait on the sockets, handle what finished, commit.

It uses neither asyncio nor threads: a callback per page would cost more than the page's own
bookkeeping, and the same loop runs in virtual time with a fake fetcher and its clock. No task waits
for a single host; the loop sleeps until the earliest instant at which any host is due.

Each shard is told the time at every tick, so that an idle crawl sees new control records and links.

Shards can be added and removed between two turns (`own_shards`). In a crawl that several runs share
nothing is sent for a shard after its store's `sure_until`. A shard whose lease is lost is dropped:
its requests are cancelled and nothing more of it is committed. While the store is away nothing is
started or written; one that goes away in the middle of anything but a commit or the passing on of
links costs the shard its memory, since the call may have had its effect. Both are done for all
shards in one exchange with the store (`Fleet.commit`, `Fleet.pass_links`). While its answer is
awaited, the sockets are served (`_serve`).

This module is long because the loop and everything that makes it start less are one object.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Protocol

from mannerly.crawler.events import BatchCommitted, Events, LoopStalled, ShardLost
from mannerly.crawler.fetch.base import never
from mannerly.crawler.fetch.body_memory import BodyMemory
from mannerly.crawler.host.inflight import InFlight, Stage, flight_of
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import STARVED, Entry, LocalError, Now
from mannerly.crawler.shard.reading import readable
from mannerly.crawler.shard.shard import RECEIVE
from mannerly.crawler.stats import OldestRequest
from mannerly.crawler.stats_fold import StatsFold
from mannerly.crawler.store.base import StoreError, StoreFull
from mannerly.crawler.store.fleet import LeaseLost, Rhythm, StoreAway
from mannerly.politeness.model import NEVER

from .governor import Governor
from .held import answer_bytes, result_bytes
from .own_shards import OwnShards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.fetch.base import Fetcher
    from mannerly.crawler.model import Fetched, Request
    from mannerly.crawler.shard.interfaces import PageReading
    from mannerly.crawler.shard.shard import Shard
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import Committed
    from mannerly.crawler.store.fleet import Fleet, FleetFigures
    from mannerly.hosts.leases import Leases
    from mannerly.politeness.model import Instant

    from .budget import PageBudget
    from .delivery import Delivery
    from .offload import Offload

TICK_S = 0.25
COMMIT_SHARE = 0.1  # of all time; if commits take more, they are made less often
COMMIT_PAGES = 256
DRY_SHARE = 0.15  # of the shards with a batch: more that wait for a commit get it early
FULL_RETRY_S = 1.0  # between two tries to write to a full disk
WORTH_SAYING_S = 1.0  # since the sockets were looked at: every host has waited for as long
STALLED_S = 0.01  # since the sockets were looked at: look again before anything is started
STARVED_AGAIN_S = 30.0  # without a lack: the next one is another
STARVED_PAUSE_S = 1.0  # without new requests, after one for which memory or descriptors lacked
FULL_PATIENCE_S = 300.0  # for any of these; then the crawl ends, and can be resumed


# A member of an enum is found in 95 ns by its full name and in 15 by these, for every answer.
_READING, _DELIVERED = Stage.READING, Stage.DELIVERED
_REFUSED = 400  # the first status that is no page

LACKS = {
    LocalError.NO_DESCRIPTORS: "out of file descriptors: raise ulimit -n, or lower --concurrency",
    LocalError.NO_MEMORY: (
        "out of memory: raise ulimit -v, or lower --concurrency and --memory-limit"
    ),
}


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
        fleet: Fleet | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._fleet = fleet
        self._memory = memory or BodyMemory()
        self._leases = leases
        self._rhythm = rhythm = rhythm or Rhythm()
        self.shards = owned = OwnShards(shards, uncommitted=rhythm.uncommitted)
        self._shards, self._by_number = owned.all, owned.by_number
        self._unwritten, self._has_room = owned.unwritten, owned.has_room
        self._clock = clock
        self._budget = budget
        self._concurrency = concurrency
        self._offload = offload
        self._parse_limit = parse_limit
        self._delivery = delivery
        fetcher.ask(self._may_leave)
        if offload is not None:
            fetcher.watch(offload.descriptor)
        self._governor = Governor(concurrency) if governed else None
        self._fold = StatsFold()
        self._events = events or Events()
        self._events.listen(self._fold)
        now = clock.now()
        self._next_tick = now
        self._polled_at: Instant = NEVER
        self._arrived: list[Fetched] = []  # answers that came while the store was waited for
        # An instant, not a span: the sum of two floats may never become as large as a third.
        self._next_commit = now + rhythm.commit_after_s
        self._next_early = now  # when to see whether a commit is awaited before that
        self._full_since: Instant | None = None
        self._starved_since: Instant | None = None
        self._lack: str | None = None  # what this machine lacks, until `_next_start`
        self._next_start = now
        self._trouble: str | None = None
        self._latest_url = ""  # of the requests that were started
        self.is_draining = False
        self.is_paused = False
        self.dropped: list[Shard] = []  # lost by this engine; the worker closes their stores
        self.away: StoreAway | None = None  # since a call failed; the worker takes it back
        self.figures: FleetFigures | None = None  # of the store, as of the last poll; for metrics

    @property
    def in_flight(self) -> int:
        """Return how many requests have no result: sent, being parsed, or not acknowledged."""
        return sum([shard.flights.unsettled for shard in self._shards])

    @property
    def is_idle(self) -> bool:
        """Return whether there is nothing to do, unless another shard sends links."""
        return all(shard.is_idle for shard in self._shards)

    @property
    def has_only_unreachable(self) -> bool:
        """Return whether all that is left are hosts that would be given up before they are due."""
        if self.is_paused or self.is_idle:
            return False
        now = self._now()
        return all(shard.is_idle or shard.has_only_unreachable(now) for shard in self._shards)

    def give_up_unreachable(self) -> None:
        """Give those hosts up: nothing else is left to do in the crawl."""
        now = self._now()
        for shard in self._shards:
            shard.give_up_unreachable(now)
        self._next_tick = now.mono

    @property
    def undelivered(self) -> int:
        """Pages that the program which iterates over the crawl has not acknowledged."""
        return sum([shard.flights.delivered for shard in self._shards])

    @property
    def waits_for_program(self) -> bool:
        """Return whether nothing can happen until the program acknowledges a page."""
        now = self._now()
        return self.undelivered > 0 and all(
            shard.flights.unsettled == shard.flights.delivered
            and not (
                self._may_start and self._has_room[shard.number] and shard.next_due(now) is not None
            )
            for shard in self._shards
        )

    def set_concurrency(self, concurrency: int) -> None:
        """Change how many requests may be in flight."""
        self._concurrency = concurrency
        if self._governor is not None:
            self._governor.set_most(concurrency)

    def turn(self, longest_s: float = TICK_S) -> None:
        """Run the loop once. Without events it waits for up to `longest_s` seconds."""
        now = self._now()
        if self._delivery is not None:
            self._settle_acknowledged(self._delivery, now)
        busy_s = now.mono - self._polled_at
        if busy_s > STALLED_S:
            if WORTH_SAYING_S < busy_s < inf and longest_s > 0.0:  # 0: the caller waits itself
                self._events.emit(LoopStalled(busy_s))
            # What came in while this process was stopped or busy may forbid what is due now.
            self._receive(0.0)
            now = self._now()
        if self._may_start:
            self._start(now)
        self._receive(self._timeout_s(now, longest_s))
        if self._offload is not None:
            self._collect(self._offload)
        if self._delivery is not None:
            self._delivery.flush()
        try:
            if self.away is None:
                self._commit_if_due()
                self._take_arrived()
                self._tick_if_due()
        except StoreAway as error:
            self.away = error
        except StoreFull as error:
            self._wait_for_room(error)
        if self._unwritten:
            self._memory.held += self._unwritten.growth()

    def due_in_s(self, longest_s: float) -> float:
        """Return after how many seconds `turn` has something to do, without an answer before."""
        return self._timeout_s(self._now(), longest_s)

    def _receive(self, timeout_s: float) -> None:
        if self._arrived:
            self._take_arrived()  # they may forbid what would leave now
            timeout_s = 0.0
        answers = self._fetcher.wait(timeout_s)
        self._polled_at = self._clock.now()
        self._note_sent()
        if answers:
            self._take(answers)

    def _serve(self) -> None:
        """Serve the sockets while the store works.

        Shards learn of it later, because they are in the middle of something. Until then nothing
        more is sent: an answer may forbid it.
        """
        if not self._arrived:
            self._arrived = self._fetcher.wait(0.0)

    def _take_arrived(self) -> None:
        """Tell the shards what came in while the store was waited for."""
        answers, self._arrived = self._arrived, []
        if answers:
            self._take(answers)

    def _note_sent(self) -> None:
        for request, instant in self._fetcher.sent():
            flight = request.flight
            assert isinstance(flight, InFlight)  # see `flight_of`: the call would take longer
            self._by_number[flight.shard].sent(flight, instant)

    def _may_leave(self, request: Request, instant: Instant, address: str) -> bool:
        flight = request.flight
        assert isinstance(flight, InFlight)
        return self._by_number[flight.shard].may_leave(flight, instant, address)

    def _take(self, answers: list[Fetched]) -> None:
        now = self._now()
        for answer in answers:
            flight = flight_of(answer.request)
            if answer.exchange is not None:
                answer = readable(answer)  # one at a time: a body may become a thousand of it
            if answer.error is None:
                self._starved_since = None
            elif isinstance(answer.error, LocalError) and answer.error in STARVED:
                self._start_less(answer.error, now.mono)
            shard, is_again = self._by_number.get(flight.shard), True
            if shard is not None:  # else it was lost since this answer came
                try:
                    is_again = shard.answered(flight, answer, now)
                except (LeaseLost, StoreAway) as error:
                    self._lose(flight.shard, error)
            self._account(flight, answer, is_again=is_again)
        if self._governor is not None:
            self._governor.turned(self._clock.now() - now.mono)

    def _account(self, flight: InFlight, answer: Fetched, *, is_again: bool) -> None:
        """Count the memory of a page that goes on, or free the budget of one that is lost here.

        `is_again`: it got no record, so it is no page of this run.
        """
        if flight.stage in (_READING, _DELIVERED):
            self._memory.held += answer_bytes(flight.stage, answer, flight.item.kind)
        elif is_again:
            self._give_back(flight)

    def _give_back(self, flight: InFlight) -> None:
        """Free the budget of a request that is no page of this run."""
        if KINDS[flight.item.kind].is_page:
            self._budget.give_back(1)

    def _now(self) -> Now:
        return Now(self._clock.now(), self._clock.wall())

    @property
    def _may_start(self) -> bool:
        if self.is_draining or self.is_paused or self._full_since is not None:
            return False
        if self.away is not None:
            return False
        if self._memory.is_scarce or self._next_start > self._clock.now():
            return False  # this machine lacks something
        if self._leases is not None and self._clock.now() >= self._leases.sure_until:
            return False  # another crawl may have taken the hosts over
        return self._offload is None or self._offload.pending < self._parse_limit

    def _start_less(self, lack: LocalError, now: Instant) -> None:
        """Start less while this machine lacks memory or descriptors.

        Raises:
            OSError: no request has succeeded for FULL_PATIENCE_S.
        """
        if self._starved_since is None or now - self._next_start > STARVED_AGAIN_S:
            self._starved_since = now
        if now - self._starved_since >= FULL_PATIENCE_S:
            raise OSError(f"{LACKS[lack]} (waited {FULL_PATIENCE_S:g} s)")
        self._lack = LACKS[lack]
        self._next_start = now + STARVED_PAUSE_S
        if self._governor is not None:
            self._governor.starved(now)

    def _start(self, now: Now) -> None:
        total = self._concurrency if self._governor is None else self._governor.total
        fetcher, budget, has_room = self._fetcher, self._budget, self._has_room
        for shard, room in self.shards.rooms(total, now.mono):
            granted = budget.take(room) if room > 0 else 0
            has_room[shard.number] = granted > 0
            if granted == 0:
                continue
            try:
                requests = shard.start_due(now, granted)
            except (LeaseLost, StoreAway) as error:
                self._lose(shard.number, error)
                return
            has_room[shard.number] = len(requests) < granted
            budget.settle(
                sum([KINDS[flight_of(request).item.kind].is_page for request in requests])
            )
            for request in requests:
                fetcher.start(request)
            if requests:
                self._latest_url = requests[-1].url

    # ------------------------------------------------------------------ shards that come and go

    def add(self, shard: Shard) -> None:
        """Work on one more shard."""
        self.shards.add(shard)
        self._next_tick = self._clock.now()

    def release(self, number: int) -> None:
        """Commit everything of a shard and forget it; its requests under way are cancelled.

        Raises:
            LeaseLost: it has another owner. It is forgotten all the same.
            StoreAway: nothing was released.
        """
        self._receive(0.0)  # a refusal that waits in a socket must not be forgotten
        shard, now = self._by_number[number], self._now()
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
        self._hear_refusals(shard, now)
        self._cancel(shard, now)
        shard.abandon(now)
        self._forget(shard)

    def _lose(self, number: int, error: LeaseLost | StoreAway) -> None:
        if isinstance(error, StoreAway):
            self.away = error
        if number in self.shards:
            self.dropped.append(self._by_number[number])
            self.drop(number)
            self._events.emit(ShardLost(number, str(error)))

    def _hear_refusals(self, shard: Shard, now: Now) -> None:
        """Learn what hosts of a lost shard have asked for: it may wait in a socket.

        Pages are left: they cannot be kept any more.
        """
        self._arrived += self._fetcher.wait(0.0)
        self._note_sent()
        heard: list[Fetched] = []
        others: list[Fetched] = []
        for answer in self._arrived:
            is_refusal = answer.status is not None and answer.status >= _REFUSED
            is_ours = flight_of(answer.request).shard == shard.number
            (heard if is_ours and is_refusal else others).append(answer)
        self._arrived = others
        for answer in heard:
            flight = flight_of(answer.request)
            with suppress(StoreError):
                shard.answered(flight, answer, now)
            self._account(flight, answer, is_again=True)

    def _cancel(self, shard: Shard, now: Now) -> None:
        """Cancel the requests of a shard that are on the wire."""
        self._note_sent()
        number = shard.number
        requests = [
            each.request for each in self._arrived if flight_of(each.request).shard == number
        ]
        self._arrived = [each for each in self._arrived if flight_of(each.request).shard != number]
        requests += self._fetcher.cancel(lambda each: flight_of(each).shard == number)
        for request in requests:
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
            if self.shards.is_stale(flight):
                self._give_back(flight)
                continue
            shard = self._by_number[flight.shard]
            try:
                is_again = shard.read(reading, work, now)
            except (LeaseLost, StoreAway) as error:
                if flight.stage is _READING:
                    shard.flights.end(flight)  # it does not come back a second time
                self._give_back(flight)
                self._lose(flight.shard, error)
                continue
            if KINDS[flight.item.kind].is_page:  # a list has no body any more, only URLs
                self._account(flight, answer, is_again=is_again)

    def _settle_acknowledged(self, delivery: Delivery, now: Now) -> None:
        """Settle the pages that the program is done with."""
        for flight, result in delivery.settled():
            self._memory.held -= result_bytes(result)
            if self.shards.is_stale(flight):
                self._give_back(flight)
                continue
            try:
                self._by_number[flight.shard].settle(flight, result, now)
            except (LeaseLost, StoreAway) as error:
                self._give_back(flight)
                self._lose(flight.shard, error)

    def _timeout_s(self, now: Now, longest_s: float) -> float:
        """Return how long to wait on the sockets: until the next host, tick or commit is due."""
        if self.away is not None:
            return longest_s  # nothing is started or written until the store is back
        mono = now.mono
        until = min(mono + longest_s, max(mono, self._next_tick))
        if any(shard.left.has_batch for shard in self._shards):
            until = min(until, self._next_commit)
            if self._rhythm.early_s:
                until = min(until, max(mono, self._next_early))
        if self._may_start:
            for shard in self._shards:
                if self._has_room[shard.number] and mono < shard.store.sure_until:
                    due = shard.next_due(now)
                    if due is not None:
                        until = min(until, due)
        return max(0.0, until - mono)

    def _commit_if_due(self) -> None:
        is_due = self.shards.is_full and self._full_since is None
        if is_due or self._clock.now() >= self._next_commit or self._is_commit_awaited:
            self.shards.is_full = False
            self.commit()
            return
        if self._full_since is not None:
            return
        # A host asked for a pause, which the next run would not know after a crash now; or a batch
        # is large.
        needed = [
            shard
            for shard in self._shards
            if shard.left.is_urgent or shard.left.uncommitted >= COMMIT_PAGES
        ]
        if needed and self._fleet is None:
            self.commit()
        elif needed and self._fleet is not None:
            self._commit_together(self._fleet, needed, self._now())

    @property
    def _is_commit_awaited(self) -> bool:
        """Return whether nothing else can be done in a part of the shards that have a batch.

        Where commits are dear (`Rhythm.early_s`) this is asked at intervals, and a shard has
        something to do if a request is under way or can be started before the next commit.
        """
        early_s = self._rhythm.early_s
        if not early_s:
            return self._is_unoccupied and any(shard.left.has_batch for shard in self._shards)
        now = self._now()
        if now.mono < self._next_early or self._full_since is not None:
            return False
        self._next_early = now.mono + early_s
        may_start, having, dry = self._may_start, 0, 0
        for shard in self._shards:
            if shard.left.has_batch:
                due = shard.next_due(now) if may_start else None
                is_dry = shard.flights.unsettled == 0 and (due is None or due >= self._next_commit)
                having += 1
                dry += is_dry
        return dry > having * DRY_SHARE

    def hurry(self) -> None:
        """If nothing is under way, check at once whether other shards have sent links."""
        if self._is_unoccupied:
            self._next_tick = self._clock.now()

    def _tick_if_due(self) -> None:
        if self._clock.now() < self._next_tick and not self._has_time_to_deliver:
            return
        now = self._now()
        shards, failure = list(self._shards), None
        received: dict[int, Committed] = {}
        if self._fleet is not None:
            stores = [shard.store for shard in shards]
            results = self._fleet.pass_links(stores, RECEIVE, self._serve)
            self._note_sent()
            received, failure = self._sorted_out(shards, results)
            shards = [shard for shard in shards if shard.number in received]
        for shard in shards:
            try:
                shard.tick(now, received.get(shard.number))
            except (LeaseLost, StoreAway) as error:
                self._lose(shard.number, error)
                if self.away is not None:
                    break
        if failure is not None:
            raise failure
        self._next_tick = now.mono + self._rhythm.tick_s
        self._full_since = self._trouble = None

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
        if self._rhythm.early_s:
            return False
        return self._is_unoccupied and any(shard.left.has_outgoing for shard in self._shards)

    @property
    def _is_unoccupied(self) -> bool:
        """Return whether nothing is under way, for another reason than a full disk."""
        return self._full_since is None and self.in_flight == 0

    def _wait_for_room(self, error: StoreFull) -> None:
        """Start no request and try again later. Nothing was written, so nothing is lost.

        Raises:
            StoreFull: the disk has been full for FULL_PATIENCE_S.
        """
        now = self._clock.now()
        if self._full_since is None:
            self._full_since = now
        if now - self._full_since >= FULL_PATIENCE_S:
            raise StoreFull(f"{error} (waited {FULL_PATIENCE_S:g} s)") from error
        self._trouble = str(error)
        self._next_commit = self._next_tick = now + FULL_RETRY_S

    def commit(self) -> None:
        """Write everything that has come in to the store."""
        began = self._now()
        pages = sum([shard.left.uncommitted for shard in self._shards])
        if self._fleet is None:
            for shard in self._shards:
                shard.commit(began)
        else:
            self._commit_together(self._fleet, self._shards, began)
        ended = self._clock.now()
        took_s = ended - began.mono
        rhythm = self._rhythm
        pause_s = took_s * (1.0 - COMMIT_SHARE) / COMMIT_SHARE
        self._next_commit = ended + min(max(rhythm.commit_after_s, pause_s), rhythm.commit_within_s)
        if rhythm.early_s:
            self._next_early = ended + max(rhythm.early_s, pause_s)
            self._next_tick = ended  # links are passed on in the same rhythm
        self._events.emit(BatchCommitted(pages, took_s))
        if self._governor is not None:
            self._governor.committed(took_s, ended)

    def _commit_together(self, fleet: Fleet, shards: Sequence[Shard], now: Now) -> None:
        """Commit some shards, one exchange with the store for all of them."""
        offered = [(shard, batch) for shard in shards if (batch := shard.to_commit(now))]
        batches = [(shard.store, batch) for shard, batch in offered]
        results = fleet.commit(batches, self._serve)
        committing = [shard for shard, _ in offered]
        for shard, result in zip(committing, results, strict=True):
            if not isinstance(result, StoreError):
                shard.committed(result, now)
        self._note_sent()
        _, failure = self._sorted_out(committing, results)
        if failure is not None:
            raise failure

    def stats(self) -> Stats:
        """Return the totals of this process, as they are now."""
        stats = self._fold.summed()
        stats.trouble = self._trouble
        stats.fleet = self.figures
        if self._leases is not None:
            stats.trouble = stats.trouble or self._leases.trouble
        stats.oldest = self._oldest()
        stats.latest_url = self._latest_url
        stats.host_views = self._fold.host_views(self._clock.now())
        stats.robots_in_flight = sum(shard.flights.robots for shard in self._shards)
        stats.parsing = 0 if self._offload is None else self._offload.pending
        stats.body_bytes = self._memory.used
        if self._lack is not None and self._clock.now() < self._next_start:
            stats.trouble = self._lack
        elif stats.trouble is None and self._memory.is_scarce and not self.waits_for_program:
            megabytes = self._memory.used // 1_000_000
            stats.trouble = f"waiting for memory: bodies take {megabytes} MB (--memory-limit)"
        elif stats.trouble is None and self._offload is not None:
            stats.trouble = self._offload.trouble(self._clock.now())
        return stats

    def _oldest(self) -> OldestRequest | None:
        request = self._fetcher.oldest
        if request is None:
            return None
        flight = flight_of(request)
        made = flight.item.attempts if isinstance(flight.item, Entry) else 0
        return OldestRequest(
            max(0.0, self._clock.now() - flight.permit.sent_at),
            request.timeout_s,
            made + 1,
            flight.permit.host.retry_policy.max_attempts,
        )

    def stop(self) -> None:
        """Read what has arrived, cancel the other requests, and commit everything that came in.

        A refusal that waits in a socket would be forgotten otherwise: the next run would contact
        its host inside the Retry-After.
        """
        now = self._now()
        if self._delivery is not None:
            self._settle_acknowledged(self._delivery, now)
        self._fetcher.ask(never)
        self._receive(0.0)
        now = self._now()
        for request in self._fetcher.cancel():
            flight = flight_of(request)
            self._by_number[flight.shard].cancelled(flight, now)
        self.commit()
