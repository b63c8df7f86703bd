"""The loop of one process: start what is due, wait on the sockets, handle what finished, commit.

No asyncio and no threads: a callback per page would cost more than the page's own bookkeeping, and
the same loop runs in virtual time when it is given a fake fetcher and its clock. Nothing sleeps in
a host's wait; the loop sleeps until the earliest instant that any host is due.

Limits and ends are checked on a tick, so that an idle crawl sees them too.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Protocol

from mannerly.crawler.events import BatchCommitted, Events
from mannerly.crawler.model import Now
from mannerly.crawler.stats import StatsFold
from mannerly.crawler.store.base import StoreFull

from .governor import Governor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.fetch.base import Fetcher
    from mannerly.crawler.model import InFlight, Request
    from mannerly.crawler.shard.elsewhere import Reading
    from mannerly.crawler.shard.shard import Shard
    from mannerly.crawler.stats import Stats
    from mannerly.politeness.model import Instant

    from .delivery import Delivery
    from .offload import Offload

TICK_S = 0.25
COMMIT_AFTER_S = 0.02  # a page is at risk this long, more while commits themselves take longer
COMMIT_SHARE = 0.1  # of the time may go into commits before they are made rarer
COMMIT_PAGES = 256
FULL_RETRY_S = 1.0  # how often to look whether the disk has room again
FULL_PATIENCE_S = 300.0  # time to notice and to delete something; then the crawl ends, resumable


class Clock(Protocol):
    """`politeness.clock`, or a virtual one."""

    def now(self) -> Instant: ...

    def wall(self) -> float: ...


class Budget(Protocol):
    """How many more pages this run may fetch; shared by all processes."""

    def take(self, wanted: int) -> int:
        """Return how many of `wanted` pages may be started; they are taken off the budget."""

    def settle(self, used: int) -> None:
        """So many of the pages just taken were started; the others go back."""

    def give_back(self, pages: int) -> None:
        """These were started, and will have to be asked for again."""

    @property
    def is_spent(self) -> bool: ...


class Engine:
    """Some shards, one fetcher, one loop.

    Set `is_draining` to start nothing more for good, `is_paused` to start nothing for a while.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        shards: Sequence[Shard],
        clock: Clock,
        budget: Budget,
        *,
        workers: int,
        governed: bool = True,
        tick_s: float = TICK_S,
        offload: Offload[Reading] | None = None,
        delivery: Delivery | None = None,
        events: Events | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._shards = shards
        self._by_number = {shard.number: shard for shard in shards}
        self._has_room = dict.fromkeys(self._by_number, True)  # for more requests, by shard
        self._clock = clock
        self._budget = budget
        self._workers = workers
        self._tick_s = tick_s
        self._offload = offload
        self._delivery = delivery
        if offload is not None:
            fetcher.watch(offload.descriptor)
        self._governor = Governor(workers) if governed else None
        self._fold = StatsFold()
        self._events = events or Events()
        self._events.listen(self._fold)
        now = clock.now()
        self._next_tick = now
        # An instant, not a span: the sum of two floats may never become as large as a third.
        self._next_commit = now + COMMIT_AFTER_S
        self._full_since: Instant | None = None
        self._trouble: str | None = None
        self.is_draining = False
        self.is_paused = False

    @property
    def in_flight(self) -> int:
        """Requests that have no result yet: on the wire, being parsed, or not acknowledged."""
        return sum([shard.flights.unsettled for shard in self._shards])

    @property
    def is_idle(self) -> bool:
        """Nothing to do here now, or ever, unless another shard sends something."""
        return all(shard.is_idle for shard in self._shards)

    def set_workers(self, workers: int) -> None:
        """Change how many requests may be in flight."""
        self._workers = workers
        if self._governor is not None:
            self._governor.set_most(workers)

    def turn(self, longest_s: float = TICK_S) -> None:
        """Once around the loop; it lasts no longer than `longest_s` if nothing happens."""
        now = self._now()
        if self._delivery is not None:
            self._settle_acknowledged(self._delivery, now)
        if self._may_start:
            self._start(now)
        answers = self._fetcher.wait(self._patience_s(now, longest_s))
        for request, instant in self._fetcher.sent():
            flight = _flight(request)
            self._by_number[flight.shard].sent(flight, instant)
        if answers:
            now = self._now()
            for answer in answers:
                flight = _flight(answer.request)
                if self._by_number[flight.shard].answered(flight, answer, now):
                    self._budget.give_back(1)
            if self._governor is not None:
                self._governor.turned(self._clock.now() - now.mono)
        if self._offload is not None:
            self._collect(self._offload)
        if self._delivery is not None:
            self._delivery.flush()
        try:
            self._commit_if_due()
            self._tick_if_due()
        except StoreFull as error:
            self._wait_for_room(error)

    def _now(self) -> Now:
        return Now(self._clock.now(), self._clock.wall())

    @property
    def _may_start(self) -> bool:
        return not self.is_draining and not self.is_paused and self._full_since is None

    def _start(self, now: Now) -> None:
        total = self._workers if self._governor is None else self._governor.total
        share = max(1, total // len(self._shards))
        fetcher, budget = self._fetcher, self._budget
        for shard in self._shards:
            room = share - shard.flights.pending
            granted = budget.take(room) if room > 0 else 0
            self._has_room[shard.number] = granted > 0
            if granted == 0:
                continue
            requests = shard.start_due(now, granted)
            self._has_room[shard.number] = len(requests) < granted
            budget.settle(sum([_flight(request).item.kind == 0 for request in requests]))
            for request in requests:
                fetcher.start(request)

    def _collect(self, offload: Offload[Reading]) -> None:
        """Take back the pages that were parsed elsewhere."""
        if not any(shard.flights.reading for shard in self._shards):
            return
        now = self._now()
        for (flight, answer, outcome), work in offload.collect():
            self._by_number[flight.shard].read(flight, answer, outcome, work, now)

    def _settle_acknowledged(self, delivery: Delivery, now: Now) -> None:
        """Settle the pages that the program is done with."""
        for flight, result in delivery.settled():
            self._by_number[flight.shard].settle(flight, result, now)

    def _patience_s(self, now: Now, longest_s: float) -> float:
        """How long to wait on the sockets: until the next host, tick or commit is due."""
        mono = now.mono
        until = min(mono + longest_s, max(mono, self._next_tick))
        if any(shard.has_batch for shard in self._shards):
            until = min(until, self._next_commit)
        if self._may_start:
            for shard in self._shards:
                if self._has_room[shard.number]:
                    due = shard.next_due(now)
                    if due is not None:
                        until = min(until, due)
        return max(0.0, until - mono)

    def _commit_if_due(self) -> None:
        if self._clock.now() >= self._next_commit or self._is_worth_a_commit:
            self.commit()

    @property
    def _is_worth_a_commit(self) -> bool:
        """There is much to be committed, or nothing else to do; unless there is no room for it."""
        if self._is_unoccupied:
            return any(shard.has_batch for shard in self._shards)
        is_large = any(shard.pending_pages >= COMMIT_PAGES for shard in self._shards)
        return is_large and self._full_since is None

    def hurry(self) -> None:
        """With nothing under way, look at once whether other shards have sent something."""
        if self._is_unoccupied:
            self._next_tick = self._clock.now()

    def _tick_if_due(self) -> None:
        if self._clock.now() < self._next_tick and not self._has_time_to_deliver:
            return
        now = self._now()
        for shard in self._shards:
            shard.tick(now)
        self._next_tick = now.mono + self._tick_s
        self._full_since = self._trouble = None

    @property
    def _has_time_to_deliver(self) -> bool:
        """With nothing under way, another shard may be waiting for what was found here."""
        return self._is_unoccupied and any(shard.has_outgoing for shard in self._shards)

    @property
    def _is_unoccupied(self) -> bool:
        """Nothing is under way, and that is not for want of room (`_wait_for_room`)."""
        return self._full_since is None and self.in_flight == 0

    def _wait_for_room(self, error: StoreFull) -> None:
        """Nothing was written, so nothing is lost: start nothing, and try again in a while."""
        now = self._clock.now()
        if self._full_since is None:
            self._full_since = now
        if now - self._full_since >= FULL_PATIENCE_S:
            raise StoreFull(f"{error} (waited {FULL_PATIENCE_S:g} s)") from error
        self._trouble = str(error)
        self._next_commit = self._next_tick = now + FULL_RETRY_S

    def commit(self) -> None:
        """Make everything durable that has come in."""
        began = self._now()
        pages = sum([shard.pending_pages for shard in self._shards])
        for shard in self._shards:
            shard.commit(began)
        ended = self._clock.now()
        took_s = ended - began.mono
        rest_s = max(COMMIT_AFTER_S, took_s * (1.0 - COMMIT_SHARE) / COMMIT_SHARE)
        self._next_commit = ended + rest_s
        self._events.emit(BatchCommitted(pages, took_s))
        if self._governor is not None:
            self._governor.committed(took_s, ended)

    def stats(self) -> Stats:
        """Return the totals of this process, as they are now."""
        stats = copy(self._fold.stats)
        stats.trouble = self._trouble
        return stats

    def stop(self) -> None:
        """Break off what is under way, keep everything that came in."""
        now = self._now()
        if self._delivery is not None:
            self._settle_acknowledged(self._delivery, now)
        for request in self._fetcher.cancel_all():
            flight = _flight(request)
            self._by_number[flight.shard].cancelled(flight, now)
        self.commit()


def _flight(request: Request) -> InFlight:
    flight = request.flight
    assert flight is not None, "every request of a shard has its flight"
    return flight
