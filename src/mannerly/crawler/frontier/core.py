"""Hosts are scheduled, not workers: whose turn is it, and what is its next URL?

                 add, load                       needs_refill, refill
    INACTIVE ───────────────► HEAP ──turn──► window empty? HUNGRY ──► HEAP
    (a name and a count)       ▲   ──turn──► judged, granted: handed out ──► HEAP at ready_at
                               │                 nothing but a report can help: BUSY
                               │                 robots.txt goes first: AWAY, or ERRAND_LINE
                               │                 paused, retired, waiting elsewhere: ASLEEP
                               └── done, wake, take ◄──────┘

**Invariant.** A host with queued URLs is in exactly one of these places, and each place has its
way out: HEAP by time, HUNGRY by `refill`, BUSY by a `done` in its group, or by the member that was
called from the group's line and cannot go (one or the other is to come),
AWAY by the `done` of its errand, ERRAND_LINE by the next `take` with an errand to spare, ASLEEP by
`wake`, INACTIVE by a place becoming free. `check` asserts it.

**Fair.** The heap is ordered by instant, then by order of asking. A host that was served goes
behind everybody who could be asked at the same instant, whatever the length of its queue; hosts
that share a budget (`group_by`) stand in one line for it.

**robots.txt goes first.** `take` shows every entry to a judge before it asks for a slot, so what
may not be fetched costs none. If the judge says `First(errand)`, the slot is spent on the errand
instead, the entry stays where it is, and the host is AWAY until that errand is done: no page can
be sent before, and no second errand either. `RobotsCache.rule` is that judge. A redirect of
robots.txt to another host becomes an errand there (`errand`), while the judge answers
`Later(None)` here, and `wake` ends the wait. An entry that must wait is passed over, not waited
for (within the window): http://x may be unreachable while https://x is well.

The shard's part (`due`, `finished`, `commit`), with everything it owes us:

    for wish in frontier.needs_refill():
        frontier.refill(wish, store.queued(wish.host, after=wish.after, limit=wish.limit), now=now)
    starts, dropped = frontier.take(now, judge)
    … fetch; politeness.report(permit, …); perhaps frontier.put_back(entry, due)
    frontier.done(start, now=now)
    committed = store.commit(batch)              # pages, dropped
    frontier.committed(entries of the batch); frontier.add(committed.new, now=now)

This file reads no clock, does no I/O, and knows neither robots.txt nor the store.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice
from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.model import GO, Drop, First, InFlight, Later, RobotsRequest
from mannerly.politeness.model import Grant, Reason, Refuse
from mannerly.politeness.retry import RetryQueue

from .groups import Groups
from .heap import HostHeap
from .inactive import Inactive
from .model import Dropped, FrontierSnapshot, Refill, Taken
from .window import HostQueue, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mannerly.crawler.model import Entry, Judgement
    from mannerly.politeness.model import Decision, Instant

    from .model import Judge, Pacing

# Hosts and entries looked at in one `take`, and entries in one host's turn: so that ten thousand
# forbidden URLs cannot stop the loop. What is left over is due at once.
_LOOKS_PER_TAKE = 4096
_LOOKS_PER_TURN = 128
# A longer wait is asked for, not computed, because the answer says what it is for.
_WORTH_A_REASON_S = 5.0
# When a permit of the host is out that is none of ours, no `done` will tell us.
_BLIND_WAIT_S = 1.0
_COUNT_READY_UP_TO = 10_000

# A member of an enum is found in 95 ns by its full name and in 15 by these, a dozen times a turn.
_IDLE, _HEAP, _BUSY, _HUNGRY = Place.IDLE, Place.HEAP, Place.BUSY, Place.HUNGRY
_ERRAND_LINE, _AWAY, _ASLEEP = Place.ERRAND_LINE, Place.AWAY, Place.ASLEEP


def everything_goes(_: Entry) -> Judgement:
    """The judge of a crawl without robots.txt."""
    return GO


class Frontier:
    """All hosts of a shard. `max_in_flight` may be changed at any time.

    Args:
        politeness: who grants the slots.
        per_host_window: entries of one host kept in memory.
        max_in_flight: requests under way, errands included.
        max_errands: errands under way.
        heap_limit: hosts in the scheduler; the others wait in line for a place.
        memory_limit: entries in all windows; past it, a host gets one at a time.
    """

    def __init__(
        self,
        politeness: Pacing,
        *,
        per_host_window: int = 64,
        max_in_flight: int = 512,
        max_errands: int = 64,
        heap_limit: int = 500_000,
        memory_limit: int = 250_000,
    ) -> None:
        if min(per_host_window, max_in_flight, max_errands, heap_limit, memory_limit) < 1:
            raise ValueError("every limit of the frontier must be 1 or more")
        self.max_in_flight = max_in_flight
        self._politeness = politeness
        self._per_host_window = per_host_window
        self._max_errands = max_errands
        self._heap_limit = heap_limit
        self._memory_limit = memory_limit
        self._hosts: dict[str, HostQueue] = {}
        self._heap = HostHeap()
        self._groups = Groups()
        self._hungry: dict[str, HostQueue] = {}
        self._errand_line: deque[HostQueue] = deque()
        self._asleep: set[str] = set()
        self._inactive = Inactive()
        self._retries: RetryQueue[Entry] = RetryQueue()
        self._outstanding: set[int] = set()  # handed out or put back, and not yet committed
        self._waiting: Counter[Reason] = Counter()
        self._in_flight = self._errands = 0
        self._queued = self._in_memory = 0

    def __repr__(self) -> str:
        return (
            f"<Frontier {len(self._hosts)} + {len(self._inactive)} hosts, "
            f"{self._queued} queued, {self._in_flight} in flight>"
        )

    @property
    def in_flight(self) -> int:
        """Requests under way, errands included."""
        return self._in_flight

    @property
    def queued(self) -> int:
        """URLs that wait: in memory, for a retry, and on disk."""
        return self._queued

    # ------------------------------------------------------------------ in

    def load(self, hosts: Iterable[tuple[str, int]], *, now: Instant) -> None:
        """Take up an earlier crawl: every host with the number of its queued URLs.

        Hosts that are known keep what they have, so before a crawl is called finished the store's
        word may be taken once more.
        """
        for host, count in hosts:
            if host in self._hosts or host in self._inactive:
                continue
            self._queued += count
            if len(self._hosts) < self._heap_limit:
                self._hosts[host] = queue = HostQueue(host, count)
                self._to_heap(queue, now)
            else:
                self._inactive.add(host, count)

    def add(self, entries: Iterable[Entry], *, now: Instant) -> None:
        """Take in entries that were just queued in the store."""
        hosts, inactive = self._hosts, self._inactive
        for entry in entries:
            self._queued += 1
            host = entry.host
            queue = hosts.get(host)
            if queue is None:
                if len(hosts) >= self._heap_limit or host in inactive:
                    inactive.add(host, 1)
                    continue
                queue = hosts[host] = HostQueue(host)
            is_full = self._in_memory >= self._memory_limit
            self._in_memory += queue.add(entry, 0 if is_full else self._per_host_window)
            if queue.place is _IDLE:
                self._to_heap(queue, now)

    def put_back(self, entry: Entry, due: Instant) -> None:
        """Hand out this entry again, from `due` on and ahead of its host's window."""
        assert entry.seq in self._outstanding, "only what was handed out can be put back"
        self._queued += 1
        self._retries.push(due, entry)

    def errand(self, errand: RobotsRequest, *, now: Instant) -> None:
        """Run an errand at its host's next turn. The judge is not asked."""
        queue = self._active(errand.host)
        queue.push_errand(errand)
        if queue.place is _IDLE or queue.place is _ASLEEP:
            self._to_heap(queue, now)

    # ------------------------------------------------------------------ out

    def take(self, now: Instant, judge: Judge = everything_goes) -> Taken:
        """What may be sent now, with a permit each; and what the judge will not have at all."""
        taken = Taken([], [])
        for entry in self._retries.pop_due(now):
            self._front(entry, now)
        looks = _LOOKS_PER_TAKE
        while looks > 0 and self._in_flight < self.max_in_flight:
            # Who stands in the line for errands has had his turn already, so he goes first.
            if self._errand_line and self._errands < self._max_errands:
                queue: HostQueue | None = self._errand_line.popleft()
            else:
                queue = self._heap.pop_due(now)
            if queue is None:
                break
            looks -= 1 + self._turn(queue, now, judge, taken)
        return taken

    def done(self, start: InFlight, *, now: Instant) -> None:
        """A start's permit was reported or cancelled: its place is free."""
        item, permit = start.item, start.permit
        assert permit.is_settled, "report or cancel the permit first"
        queue = self._hosts[item.host]
        queue.in_flight -= 1
        self._in_flight -= 1
        if isinstance(item, RobotsRequest):
            self._errands -= 1
        key = permit.host.key
        has_line = self._groups.back(key)
        place = queue.place
        if has_line or place is _HEAP or place is _AWAY:
            ready = self._politeness.ready_at(queue.host, now=now)
            if has_line and (ready < inf or not self._groups.is_out(key)):
                self._call(key, _ask_at(ready, now))
            if start.holds_host and place is _AWAY:
                self._to_heap(queue, _ask_at(ready, now))
            elif place is _HEAP and ready < inf:
                self._heap.put(queue, ready)
        if place is _IDLE:
            self._forget_if_spent(queue, now)

    def committed(self, entries: Iterable[Entry]) -> None:
        """These have left the store's queue, so no refill can bring them again."""
        self._outstanding.difference_update([entry.seq for entry in entries])

    def next_due(self, now: Instant) -> Instant | None:
        """When to call `take` again; None while only `done`, `add` or `wake` can help."""
        if self._in_flight >= self.max_in_flight:
            return None
        if self._hungry or (self._errand_line and self._errands < self._max_errands):
            return now
        dues = (self._heap.next_due(), self._retries.next_due())
        earliest = min((due for due in dues if due is not None), default=None)
        return None if earliest is None else max(now, earliest)

    # ------------------------------------------------------------------ windows

    def needs_refill(self, at_most: int = 256) -> list[Refill]:
        """Hosts whose turn has come and whose next URLs are on disk, those first that ran dry."""
        room = self._memory_limit - self._in_memory
        wishes = []
        for queue in islice(self._hungry.values(), at_most):
            limit = max(1, min(self._per_host_window, room))
            room -= limit
            wishes.append(Refill(queue.host, queue.cursor, limit))
        return wishes

    def refill(self, wish: Refill, entries: Sequence[Entry], *, now: Instant) -> None:
        """What the store had for a wish; fewer than wished for means that there are no more."""
        queue = self._hungry.pop(wish.host, None)
        if queue is None:  # dropped since
            return
        before = queue.on_disk
        fresh = queue.refill(entries, self._outstanding, is_end=len(entries) < wish.limit)
        self._in_memory += fresh
        self._queued += fresh + queue.on_disk - before
        if queue.is_spent:
            queue.place = _IDLE
            self._pass_on(queue, now)
            self._forget_if_spent(queue, now)
        else:
            self._to_heap(queue, now)

    # ------------------------------------------------------------------ the operator

    def wake(self, host: str, *, now: Instant) -> None:
        """Something changed for this host: it was revived, or what its pages waited for is done."""
        queue = self._hosts.get(host)
        if queue is not None and queue.place is _ASLEEP:
            self._to_heap(queue, now)

    def drop_host(self, host: str, *, now: Instant) -> Dropped:
        """Forget what is queued for a host; what is in flight still has to be `done`.

        The store keeps the URLs until the engine commits them as dropped.
        """
        retries = self._retries.discard(lambda entry: entry.host == host)
        count = len(retries) + self._inactive.remove(host)
        errands: list[RobotsRequest] = []
        queue = self._hosts.get(host)
        if queue is not None:
            here = len(queue)
            count += here + queue.on_disk
            errands = queue.clear()
            count -= len(errands)
            self._in_memory -= here - len(errands)
            self._withdraw(queue)
            self._pass_on(queue, now)
            self._forget_if_spent(queue, now)
        self._queued -= count
        return Dropped(count, errands)

    def snapshot(self, now: Instant) -> FrontierSnapshot:
        """For the progress line: where everybody is."""
        return FrontierSnapshot(
            active=len(self._hosts),
            inactive=len(self._inactive),
            heaped=len(self._heap),
            ready=self._heap.count_due(now, _COUNT_READY_UP_TO),
            waiting=+self._waiting,
            busy=self._groups.waiting,
            hungry=len(self._hungry),
            errand_line=len(self._errand_line),
            asleep=len(self._asleep),
            in_flight=self._in_flight,
            errands=self._errands,
            queued=self._queued,
            in_memory=self._in_memory,
            retries=len(self._retries),
            next_due=self.next_due(now),
        )

    def check(self) -> None:
        """Assert the invariant: every host is in one place, with a way out; counts are exact."""
        for queue in self._hosts.values():
            queue.check()
            place = queue.place
            assert (queue.due is not None) == (place is _HEAP), queue
            assert queue.reason is None or place is _HEAP, queue
            assert place is not _IDLE or (queue.is_spent and queue.in_flight), queue
            assert place is not _AWAY or queue.in_flight, queue
        # As many as say so are in each list, and nobody is who does not say so.
        places = [queue.place for queue in self._hosts.values()]
        assert places.count(_HEAP) == len(self._heap)
        assert places.count(_BUSY) == self._groups.waiting
        hungry, in_line = self._hungry.keys(), {queue.host for queue in self._errand_line}
        assert len(in_line) == len(self._errand_line)
        for hosts, place in ((hungry, _HUNGRY), (self._asleep, _ASLEEP), (in_line, _ERRAND_LINE)):
            assert places.count(place) == len(hosts)
            assert all(self._hosts[host].place is place for host in hosts)
        self._groups.check(self._hosts, self._in_flight)
        self._inactive.check(self._hosts)
        self._heap.check()
        self._check_counts()

    def _check_counts(self) -> None:
        queues = self._hosts.values()
        assert not self._inactive or len(self._hosts) >= self._heap_limit
        assert self._in_flight == sum([queue.in_flight for queue in queues])
        assert 0 <= self._errands <= min(self._in_flight, self._max_errands)
        windows = sum([len(queue.window) for queue in queues if queue.window is not None])
        fronts = [item for queue in queues if queue.front is not None for item in queue.front]
        retries = sum(not isinstance(item, RobotsRequest) for item in fronts)
        assert self._in_memory == windows + retries
        on_disk = sum([queue.on_disk for queue in queues]) + self._inactive.queued
        assert self._queued == self._in_memory + on_disk + len(self._retries)
        reasons = [queue.reason for queue in queues if queue.reason is not None]
        assert +self._waiting == Counter(reasons)

    # ------------------------------------------------------------------ a host's turn

    def _turn(self, queue: HostQueue, now: Instant, judge: Judge, taken: Taken) -> int:
        """Find something of this host to send; returns how many entries were judged."""
        self._leave_place(queue)
        index = looks = 0
        earliest = inf
        while (item := queue.peek(index)) is not None:
            if looks == _LOOKS_PER_TURN:
                self._to_heap(queue, now)
                return looks
            looks += 1
            if isinstance(item, RobotsRequest) or (ruling := judge(item)) is GO:
                self._send(queue, item, index, now, taken)
                return looks
            if isinstance(ruling, First):
                self._send(queue, ruling.errand, None, now, taken)
                return looks
            if isinstance(ruling, Later):
                earliest = min(earliest, inf if ruling.until is None else ruling.until)
                index += 1
            else:
                self._remove(queue, index, item)
                assert isinstance(ruling, Drop)
                taken.dropped.append((item, ruling.reason))
        if len(queue) == 0 and queue.on_disk:
            queue.place = _HUNGRY
            self._hungry[queue.host] = queue
            return looks
        if len(queue) and earliest < inf:
            self._to_heap(queue, earliest)
        elif len(queue):
            self._to_sleep(queue)
        self._pass_on(queue, now)
        self._forget_if_spent(queue, now)
        return looks

    def _send(
        self,
        queue: HostQueue,
        item: Entry | RobotsRequest,
        index: int | None,
        now: Instant,
        taken: Taken,
    ) -> None:
        """Ask for a slot and spend it on the item, which waits at `index`; None: it goes first."""
        is_errand = isinstance(item, RobotsRequest)
        if is_errand and self._errands >= self._max_errands:
            queue.place = _ERRAND_LINE
            self._errand_line.append(queue)
            self._pass_on(queue, now)
            return
        decision = self._politeness.reserve(queue.host, now=now)
        if not isinstance(decision, Grant):
            self._postpone(queue, decision, now)
            return
        permit = decision.permit
        taken.starts.append(InFlight(item, permit, holds_host=index is None))
        if index is None:
            queue.place = _AWAY
        else:
            self._remove(queue, index, item)
        queue.in_flight += 1
        self._in_flight += 1
        if is_errand:
            self._errands += 1
        key = permit.host.key
        has_line = self._groups.sent(key, queue.host)
        if has_line or (index is not None and not queue.is_spent):
            self._next_turn(queue, key, now, has_line=has_line)

    def _next_turn(self, queue: HostQueue, key: str, now: Instant, *, has_line: bool) -> None:
        """After a grant: who of the group goes next, and when?"""
        ready = self._politeness.ready_at(queue.host, now=now)
        if has_line and ready < inf:
            self._call(key, ready)
        if queue.place is _AWAY or queue.is_spent:
            return
        if ready < inf:
            self._to_heap(queue, ready)
        else:
            self._groups.join(key, queue, was_served=True)

    def _postpone(self, queue: HostQueue, decision: Decision, now: Instant) -> None:
        """Not now: wait for an instant, for a report, or for the operator."""
        assert not isinstance(decision, Grant)
        if decision.until is not None:
            self._to_heap(queue, decision.until, decision.reason)
        elif isinstance(decision, Refuse):
            self._to_sleep(queue)
            self._pass_on(queue, now)
        else:
            known = self._politeness.host(queue.host)
            if known is not None and self._groups.is_out(known.host):
                self._groups.join(known.host, queue, was_served=False)
            else:
                self._to_heap(queue, now + _BLIND_WAIT_S, decision.reason)

    def _call(self, key: str, due: Instant) -> None:
        """Ask the first in a group's line."""
        queue = self._groups.call(key)
        if queue is not None:
            self._to_heap(queue, due)

    def _pass_on(self, queue: HostQueue, now: Instant) -> None:
        """Ask another of the group, if this host was called and cannot go."""
        other = self._groups.pass_on(queue)
        if other is not None:
            self._to_heap(other, now)

    # ------------------------------------------------------------------ from place to place

    def _to_heap(self, queue: HostQueue, due: Instant, reason: Reason | None = None) -> None:
        place = queue.place
        if place is not _HEAP:
            if place is _ASLEEP:
                self._asleep.remove(queue.host)
            queue.place = _HEAP
            queue.reason = reason
            if reason is not None:
                self._waiting[reason] += 1
        self._heap.put(queue, due)

    def _to_sleep(self, queue: HostQueue) -> None:
        queue.place = _ASLEEP
        self._asleep.add(queue.host)

    def _leave_place(self, queue: HostQueue) -> None:
        """The host's turn has come: from the heap or the errands' line to nowhere in particular."""
        if queue.reason is not None:
            self._waiting[queue.reason] -= 1
            queue.reason = None
        queue.place = _IDLE

    def _withdraw(self, queue: HostQueue) -> None:
        """Take an emptied host out of every list; only an errand under way still keeps it."""
        if queue.place is _AWAY:
            return
        self._heap.remove(queue)
        self._hungry.pop(queue.host, None)
        self._asleep.discard(queue.host)
        if queue.place is _ERRAND_LINE:
            self._errand_line.remove(queue)
        if queue.place is _BUSY:
            self._groups.withdraw(queue)
        self._leave_place(queue)

    def _remove(self, queue: HostQueue, index: int, item: Entry | RobotsRequest) -> None:
        queue.remove(index)
        if not isinstance(item, RobotsRequest):
            self._outstanding.add(item.seq)
            self._in_memory -= 1
            self._queued -= 1

    def _front(self, entry: Entry, now: Instant) -> None:
        """A retry is due."""
        queue = self._active(entry.host)
        queue.push_retry(entry)
        self._in_memory += 1
        if queue.place is _IDLE:
            self._to_heap(queue, now)

    # ------------------------------------------------------------------ active and inactive

    def _active(self, host: str) -> HostQueue:
        """The host's queue. Retries and errands do not wait for a place in the scheduler."""
        queue = self._hosts.get(host)
        if queue is None:
            queue = self._hosts[host] = HostQueue(host, self._inactive.remove(host))
        return queue

    def _forget_if_spent(self, queue: HostQueue, now: Instant) -> None:
        if queue.place is not _IDLE or queue.in_flight or not queue.is_spent:
            return
        del self._hosts[queue.host]
        if not self._inactive:
            return
        while len(self._hosts) < self._heap_limit and (host := self._inactive.first()) is not None:
            self._to_heap(self._active(host), now)


def _ask_at(ready: Instant, now: Instant) -> Instant:
    return ready if ready - now <= _WORTH_A_REASON_S else now
