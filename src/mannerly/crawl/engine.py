"""The loop of one process: start what is due, wait on the sockets, handle what finished, commit.

No asyncio and no threads: a callback per page would cost more than the page's own bookkeeping, and
the same loop runs in virtual time when it is given a fake fetcher and its clock. Nobody sleeps in a
host's wait; the loop sleeps until the earliest instant that any host is due.

Limits and ends are checked on a tick, so that an idle crawl sees them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .governor import Governor
from .stats import Stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.politeness.model import Instant

    from .fetch.base import Fetcher
    from .shard import Shard

TICK_S = 0.25
COMMIT_AFTER_S = 0.02  # a page is at risk this long, more while commits themselves take longer
COMMIT_SHARE = 0.1  # of the time may go into commits before they are made rarer
COMMIT_PAGES = 256


class Clock(Protocol):
    """`politeness.clock`, or a virtual one."""

    def now(self) -> Instant: ...

    def wall(self) -> float: ...


class Budget(Protocol):
    """How many more pages this run may fetch; shared by all processes."""

    def take(self, wanted: int) -> int:
        """Up to `wanted` pages, taken off the budget."""

    def give_back(self, unused: int) -> None: ...

    @property
    def is_spent(self) -> bool: ...


class Engine:
    """Some shards, one fetcher, one loop."""

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
    ) -> None:
        self._fetcher = fetcher
        self._shards = shards
        self._clock = clock
        self._budget = budget
        self._workers = workers
        self._tick_s = tick_s
        self._governor = Governor(workers) if governed else None
        now = clock.now()
        self._next_tick = now
        self._committed_at = now
        self._commit_every_s = COMMIT_AFTER_S
        self._commit_s = 0.0
        self.is_draining = False

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return self._fetcher.in_flight

    @property
    def is_idle(self) -> bool:
        """Nothing to do here now, or ever, unless another shard sends something."""
        return self._fetcher.in_flight == 0 and all(shard.is_idle for shard in self._shards)

    def turn(self, longest_s: float = TICK_S) -> None:
        """Once around the loop; it lasts no longer than `longest_s` if nothing happens."""
        clock = self._clock
        now = clock.now()
        if not self.is_draining:
            self._start(now, clock.wall())
        answers = self._fetcher.wait(self._patience_s(now, longest_s))
        for request, instant in self._fetcher.sent():
            shard, start = request.tag  # type: ignore[misc]
            shard.sent(start, instant)
        if answers:
            now, wall = clock.now(), clock.wall()
            for answer in answers:
                shard, start = answer.request.tag  # type: ignore[misc]
                shard.finished(start, answer, now, wall)
        self._commit_if_due()
        now = clock.now()
        if now >= self._next_tick:
            self._next_tick = now + self._tick_s
            for shard in self._shards:
                shard.tick(now, clock.wall())

    def _start(self, now: Instant, wall: float) -> None:
        total = self._workers if self._governor is None else self._governor.total
        share = max(1, total // len(self._shards))
        fetcher, budget = self._fetcher, self._budget
        for shard in self._shards:
            frontier = shard.frontier
            room = share - shard.pending
            if room <= 0:
                continue
            granted = budget.take(room)
            if granted == 0:
                continue
            frontier.max_in_flight = frontier.in_flight + granted
            requests = shard.due(now, wall)
            for request in requests:
                fetcher.start(request)
            budget.give_back(granted - shard.pages_of(requests))

    def _patience_s(self, now: Instant, longest_s: float) -> float:
        """How long to wait on the sockets: until the next host, tick or commit is due."""
        until = min(now + longest_s, max(now, self._next_tick))
        if any(shard.has_batch for shard in self._shards):
            until = min(until, self._committed_at + self._commit_every_s)
        if not self.is_draining:
            for shard in self._shards:
                due = shard.frontier.next_due(now)
                if due is not None:
                    until = min(until, due)
        return max(0.0, until - now)

    def _commit_if_due(self) -> None:
        now = self._clock.now()
        waited_s = now - self._committed_at
        full = any(shard.pending_pages >= COMMIT_PAGES for shard in self._shards)
        if waited_s >= self._commit_every_s or full:
            self.commit()

    def commit(self) -> None:
        """Make everything durable that has come in."""
        clock = self._clock
        began = clock.now()
        for shard in self._shards:
            shard.commit(began, clock.wall())
        ended = clock.now()
        self._commit_s = took_s = ended - began
        self._committed_at = ended
        self._commit_every_s = max(COMMIT_AFTER_S, took_s * (1.0 - COMMIT_SHARE) / COMMIT_SHARE)
        if self._governor is not None:
            self._governor.committed(took_s, ended)

    def stats(self) -> Stats:
        """The totals of this process."""
        total = Stats()
        for shard in self._shards:
            total.add(shard.stats)
        total.commit_s = self._commit_s
        return total

    def stop(self) -> None:
        """Give up what is under way, keep everything that came in."""
        now = self._clock.now()
        for request in self._fetcher.cancel_all():
            shard, start = request.tag  # type: ignore[misc]
            shard.politeness.cancel(start.permit, now=now, was_sent=True)
        self.commit()
