"""Schedule hosts, not workers: choose the next host that is due, and its next URL.

                 add, load                        Taken.refills, refill
    INACTIVE ───────────────► HEAP ──turn──► window empty? NEEDS_REFILL ──► HEAP
    (a name and a count)       ▲   ──turn──► judged, granted: taken     ──► HEAP at ready_at
                               │                 only a report can help: BUSY
                               │                 its connections are in use: OCCUPIED
                               │                 too many robots.txt under way: ROBOTS_LINE
                               │                 paused, given up, rules missing: ASLEEP
                               └── done, wake, take ◄──────┘

`places` has the list of places with their ways out, and asserts that every host is in one.

**Fairness.** The heap is ordered by instant, then by arrival. A host that was served goes behind
every host that is due at the same instant, whatever the length of its queue; hosts that share a
budget (`group_by`) wait for it in one line. What connections change about this is bounded.

**Connections.** Opening one costs more than a page does, over TLS several times as much, and many
idle ones cost memory. So a host without a gap whose connection is idle goes before all that are
due, fifteen times in a row; then it waits in line once. Such a host is asked for one request at a
time, and for one more whenever nothing else is to do and the caller has time (`widening`): while a
loop is busy with what comes in, a second connection to a host makes nothing faster.

**robots.txt goes first.** `take` shows every entry to a judge before it asks for a slot, so an
entry that may not be fetched uses none. The judge changes nothing. If it returns `Unknown`, the
host is put to sleep and named in `Taken.unknown`: the caller loads the rules or requests them with
`request`, and wakes the host when it has them. While a host's own robots.txt is being fetched the
host sleeps, even if it is woken, so that no page is requested before. An entry that must wait
(`Later`) is skipped within the window: http://x may be unreachable while https://x is not.

The caller (`shard`) has to do this:

    taken = frontier.take(now, judge, room=…, robots_room=…)
    for wanted in taken.refills:
        entries = store.queued(wanted.host, after=wanted.after, limit=wanted.limit)
        frontier.refill(wanted, entries, now=now)
    … fetch; politeness.report(permit, …); perhaps frontier.put_back(entry, due)
    frontier.done(flight, now=now)
    committed = store.commit(batch)              # pages, dropped
    frontier.committed(entries of the batch); frontier.add(committed.new, now=now)

How many requests are under way is not counted here: `room` says how many more may start.
This module reads no clock, does no I/O, and knows neither robots.txt nor the store. It is long
because all steps of a host's turn are in one place.
"""

from __future__ import annotations

from itertools import islice
from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.host.host import Place
from mannerly.crawler.host.hosts import Hosts
from mannerly.crawler.host.inflight import InFlight
from mannerly.crawler.model import GO, Drop, Judgement, Later, RobotsRequest, Unknown
from mannerly.politeness.model import NEVER, Grant, Reason, Refuse
from mannerly.politeness.retry import RetryQueue

from .model import Dropped, FrontierSnapshot, Need, Taken
from .places import Places
from .windows import Windows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mannerly.crawler.host.host import Host
    from mannerly.crawler.model import Entry
    from mannerly.politeness.model import Decision, Instant

    from .model import Judge, Pacing, Refill

# Hosts and entries looked at in one `take`, and entries in one host's turn: so that ten thousand
# forbidden URLs cannot stop the loop. What is left over is due at once.
_TRIES_PER_TAKE = 4096
_TRIES_PER_TURN = 128
_REFILLS_PER_TAKE = 64  # more would keep the first request of a resumed crawl waiting
# A longer wait is asked for, not computed, because the answer says what it is for.
_WORTH_A_REASON_S = 5.0
# A host that waits for a report although nothing is under way: ask again after this long.
_BLIND_WAIT_S = 1.0
_COUNT_READY_UP_TO = 10_000
_RETRIES_LOOKED_AT = 1_000
_MANY = 1 << 30
# Requests of a host that go first in a row, as its connection is open; the next one waits in line.
_IN_A_ROW = 16

_UNSCHEDULED, _IDLE, _HEAP = Place.UNSCHEDULED, Place.IDLE, Place.HEAP
_BUSY, _ASLEEP, _NEEDS_REFILL = Place.BUSY, Place.ASLEEP, Place.NEEDS_REFILL
_OCCUPIED = Place.OCCUPIED


def everything_goes(_entry: Entry, _now: Instant) -> Judgement:
    """Let every entry be fetched: the judge of a crawl without robots.txt."""
    return GO


class Frontier:
    """All hosts of a shard and their queues.

    Args:
        politeness: grants the slots.
        hosts: the registry of the shard.
        per_host_window: entries of one host kept in memory.
        heap_limit: hosts in the scheduler; the others wait in line for a place.
        memory_limit: entries in all windows; past it, a host gets one at a time.
        roomy_limit: up to so many of them windows are larger, so that they are read less often.
    """

    def __init__(
        self,
        politeness: Pacing,
        hosts: Hosts | None = None,
        *,
        per_host_window: int = 64,
        heap_limit: int = 500_000,
        memory_limit: int = 250_000,
        roomy_limit: int = 0,
    ) -> None:
        if min(per_host_window, heap_limit, memory_limit) < 1:
            raise ValueError("every limit of the frontier must be 1 or more")
        self._politeness = politeness
        self._windows = Windows(per_host_window, memory_limit, roomy_limit)
        self._hosts = hosts = Hosts() if hosts is None else hosts
        self._places = Places(hosts, heap_limit, self._is_out)
        self._to_heap = self._places.to_heap
        self._retries: RetryQueue[Entry] = RetryQueue()

    def __repr__(self) -> str:
        places = self._places
        return f"<Frontier {places.scheduled} + {len(places.inactive)} hosts, {self.queued} queued>"

    @property
    def queued(self) -> int:
        """URLs that wait: in memory, for a retry, and on disk."""
        return self._windows.queued

    @property
    def active_hosts(self) -> int:
        """Hosts in the scheduler."""
        return self._places.scheduled

    # ------------------------------------------------------------------ in

    def load(self, hosts: Iterable[tuple[str, int]], *, now: Instant) -> None:
        """Load an earlier crawl: every host with the number of its queued URLs.

        Hosts that are known keep what they have, so this may be called again at any time.
        """
        places, known = self._places, self._hosts.get
        for name, count in hosts:
            host = known(name)
            if name in places.inactive or (host is not None and host.place is not _UNSCHEDULED):
                continue
            self._windows.queued += count
            if places.is_full:
                places.inactive.add(name, count)
            else:
                self._to_heap(places.schedule(name, count), now)

    def add(self, entries: Iterable[Entry], *, now: Instant) -> None:
        """Take in entries that were just queued in the store."""
        places, known = self._places, self._hosts.get
        inactive, windows = places.inactive, self._windows
        for entry in entries:
            name = entry.host
            host = known(name)
            if host is None or host.place is _UNSCHEDULED:
                if places.is_full or name in inactive:
                    inactive.add(name, 1)
                    windows.queued += 1
                    continue
                host = places.schedule(name)
            windows.add(host, entry)
            if host.place is _IDLE:
                self._to_heap(host, _turn(host, now))

    def put_back(self, entry: Entry, due: Instant) -> None:
        """Hand out this entry again, from `due` on and ahead of its host's window."""
        self._windows.put_back(entry)
        self._retries.push(due, entry)

    def request(self, request: RobotsRequest, *, now: Instant) -> None:
        """Send a request for a robots.txt at its host's next turn. It is not judged."""
        host = self._places.schedule(request.host)
        host.push_robots(request)
        if host.place is _IDLE or host.place is _ASLEEP:
            self._to_heap(host, now)

    def unrequest(self, request: RobotsRequest) -> bool:
        """Take back a request for a robots.txt; return False if it was sent already."""
        host = self._hosts.get(request.host)
        return host is not None and host.pull(request)

    def ask(self, entry: Entry, *, now: Instant) -> None:
        """Send a request that is in no store at its host's next turn, ahead of its window.

        It is judged. When it has ended it has to be named to `committed`.
        """
        host = self._places.schedule(entry.host)
        self._windows.ask(host, entry)
        if host.place is _IDLE or host.place is _ASLEEP:
            self._to_heap(host, _turn(host, now))

    def take_back(self, entry: Entry, *, now: Instant) -> bool:
        """Take back an entry of `ask`; return False if it is under way."""
        retries = self._retries.discard(lambda each: each.seq == entry.seq)
        host = self._hosts.get(entry.host)
        is_here = host is not None and host.pull(entry)
        if not (retries or is_here):
            return False
        self._windows.taken_back(entry, in_memory=is_here)
        if host is not None and host.is_spent and host.place is not _UNSCHEDULED:
            self._places.withdraw(host, now)
        return True

    # ------------------------------------------------------------------ out

    def take(
        self,
        now: Instant,
        judge: Judge = everything_goes,
        *,
        room: int = _MANY,
        robots_room: int = _MANY,
        widening: int = _MANY,
    ) -> Taken:
        """Hand out up to `room` requests that may be sent now, with a permit each.

        At most `robots_room` of them are for a robots.txt, and at most `widening` for hosts without
        a gap all of whose connections are in use.
        """
        taken = Taken([], [], [], [])
        places, starts = self._places, taken.starts
        for entry in self._retries.pop_due(now):
            self._front(entry, now)
        tries = _TRIES_PER_TAKE
        while tries > 0 and len(starts) < room:
            # A host in the robots line has had its turn already, so it goes before the others, but
            # for those whose connection is idle.
            has_robots = robots_room > 0 and bool(places.robots_line)
            host = places.heap.pop_due(NEVER if has_robots else now)
            if host is None and has_robots:
                host = places.robots_line.popleft()
            if host is None and widening > 0:
                widening -= 1
                host = places.widen()
            if host is None:
                break
            before = len(starts)
            tries -= 1 + self._turn(host, now, judge, taken, may_ask_robots=robots_room > 0)
            if len(starts) > before and isinstance(starts[-1].item, RobotsRequest):
                robots_room -= 1
        if places.need_refill:
            taken.refills.extend(
                self._windows.wanted(islice(places.need_refill, _REFILLS_PER_TAKE))
            )
        return taken

    def done(self, flight: InFlight, *, now: Instant) -> None:
        """A flight's permit was reported or cancelled: let the next one of its group go."""
        permit, item, host = flight.permit, flight.item, flight.host
        assert permit.is_settled, "report or cancel the permit first"
        host.on_wire -= 1
        if isinstance(item, RobotsRequest) and item.hops == 0:
            host.awaits_robots = False
            self.wake(host, now=now)
        key = permit.host.key
        has_line = self._places.groups.has_line(key)
        turn = _turn(host, now)
        if host.place is _OCCUPIED:
            self._places.resume(host, turn)
        # A host that is due already need not be moved to an earlier instant.
        is_heaped = host.due is not None and host.due > turn
        if not has_line and not is_heaped:
            return
        ready = self._politeness.ready_at(item.host, now=now)
        due = turn if ready <= now else ready
        if has_line and (ready < inf or permit.host.in_flight == 0):
            # Of a group another host may be called, whose connection is not idle.
            next_due = due if key == host.name else ready
            self._places.call(key, next_due if ready - now <= _WORTH_A_REASON_S else now)
        if is_heaped and ready < inf:
            self._places.heap.put(host, due)

    def committed(self, entries: Iterable[Entry]) -> None:
        """These have left the store's queue, so no refill can bring them again."""
        self._windows.committed(entries)

    def withhold(self, entries: Iterable[Entry]) -> list[Entry]:
        """Claim the entries that were not taken yet, and return them."""
        return self._windows.withhold(entries)

    def next_due(self, now: Instant, *, robots_room: int = _MANY) -> Instant | None:
        """Return when to call `take` again; None: after the next `done`, `add` or `wake`."""
        places = self._places
        if places.need_refill or (places.robots_line and robots_room > 0):
            return now
        dues = (places.heap.next_due(), self._retries.next_due())
        earliest = min((due for due in dues if due is not None), default=None)
        return None if earliest is None else max(now, earliest)

    def refill(self, wanted: Refill, entries: Sequence[Entry], *, now: Instant) -> None:
        """Add entries that were read; fewer than wanted means that there are no more."""
        host = self._hosts.get(wanted.host)
        if host is None or host.place is not _NEEDS_REFILL:  # dropped since
            return
        self._windows.refill(host, entries, wanted.limit)
        if host.is_spent:
            self._places.withdraw(host, now)
        else:
            del self._places.need_refill[host]
            self._to_heap(host, _turn(host, now))

    # ------------------------------------------------------------------ the operator

    def wake(self, host: Host | None, *, now: Instant, at: Instant | None = None) -> None:
        """Ask a host again that sleeps or waits: it was revived, or its rules or pace changed.

        It is asked at once, or at a later instant.
        """
        if host is None:  # nothing of it is queued
            return
        if host.place is _ASLEEP or host.place is _HEAP:
            self._to_heap(host, _turn(host, now) if at is None else at)
        elif host.place is _BUSY:  # more requests may be under way now
            known = self._politeness.host(host.name)
            if known is not None:
                self._places.call(known.host, now)

    def wake_all(self, *, now: Instant) -> None:
        """Ask every host again that waits for an instant or a request: the pace of all changed."""
        for host in self._hosts.scheduled:
            if host.place is _HEAP or host.place is _BUSY:
                self.wake(host, now=now)

    def drop_hosts(self, hosts: Collection[str], *, now: Instant) -> Dropped:
        """Forget what is queued for some hosts; what is in flight still has to be `done`.

        The store keeps the URLs until they are committed as dropped. All waiting retries are looked
        through, once for all these hosts: so `hosts` had better be a set.
        """
        retries = self._retries.discard(lambda entry: entry.host in hosts)
        entries, requests = self._windows.drop(None, retries, 0)
        for name in hosts:
            host = self._hosts.get(name)
            dropped = self._windows.drop(host, (), self._places.inactive.remove(name))
            entries += dropped.entries
            requests += dropped.requests
            if host is not None and host.place is not _UNSCHEDULED:
                self._places.withdraw(host, now)
        return Dropped(entries, requests)

    def snapshot(self, now: Instant) -> FrontierSnapshot:
        """Count the hosts in every place, for the progress line."""
        places = self._places
        return FrontierSnapshot(
            active=places.scheduled,
            inactive=len(places.inactive),
            heaped=len(places.heap),
            ready=places.heap.count_due(now, _COUNT_READY_UP_TO),
            waiting=+places.waiting,
            busy=places.groups.waiting,
            need_refill=len(places.need_refill),
            robots_line=len(places.robots_line),
            asleep=places.asleep,
            queued=self._windows.queued,
            in_memory=self._windows.in_memory,
            retries=len(self._retries),
            next_due=self.next_due(now),
        )

    def retrying(self) -> dict[str, tuple[int, Instant]]:
        """Return the hosts of which retries wait: how many, and when the first is due.

        Only so many retries are looked at.
        """
        found: dict[str, tuple[int, Instant]] = {}
        for due, entry in islice(self._retries, _RETRIES_LOOKED_AT):
            count, first = found.get(entry.host, (0, due))
            found[entry.host] = count + 1, min(first, due)
        return found

    def first_of(self, host: str, *, by: Instant) -> Entry | RobotsRequest | None:
        """Return what a host is asked for next, if it is in memory: a retry that is due by then."""
        for due, entry in islice(self._retries, _RETRIES_LOOKED_AT):
            if entry.host == host and due <= by:
                return entry
        known = self._hosts.get(host)
        return None if known is None else known.peek(0)

    def check(self) -> None:
        """Assert the invariant: every host is in one place, with a way out; counts are exact."""
        places = self._places
        self._hosts.check()
        places.check()
        elsewhere = places.inactive.queued + len(self._retries)
        self._windows.check(self._hosts.scheduled, elsewhere)

    # ------------------------------------------------------------------ a host's turn

    def _turn(
        self, host: Host, now: Instant, judge: Judge, taken: Taken, *, may_ask_robots: bool
    ) -> int:
        """Find something of this host to send; return how many entries were judged."""
        places = self._places
        places.leave(host)
        if host.awaits_robots:
            places.to_sleep(host, now)
            return 0
        index = tries = 0
        earliest, why = inf, None
        while (item := host.peek(index)) is not None:
            if tries == _TRIES_PER_TURN:
                self._to_heap(host, now)
                return tries
            tries += 1
            if isinstance(item, RobotsRequest):
                if may_ask_robots:
                    self._send(host, item, index, now, taken)
                else:
                    places.to_robots_line(host, now)
                return tries
            ruling = judge(item, now)
            if ruling is GO:
                self._send(host, item, index, now, taken)
                return tries
            if isinstance(ruling, Later):
                earliest = min(earliest, inf if ruling.until is None else ruling.until)
                why = Reason.ROBOTS if ruling.needs_rules else why
                index = host.in_memory if ruling.is_for_host else index + 1
            elif isinstance(ruling, Unknown):
                taken.unknown.append(Need(host.name, ruling.origin))
                places.to_sleep(host, now)
                return tries
            else:
                assert isinstance(ruling, Drop)
                self._windows.remove(host, index, item)
                taken.dropped.append((item, ruling.reason))
        if not host.in_memory and host.on_disk:
            places.to_refill(host)
            return tries
        if host.in_memory and earliest < inf:
            self._to_heap(host, earliest, why)
        elif host.in_memory:
            places.to_sleep(host, now)
        places.pass_on(host, now)
        places.forget_if_spent(host, now)
        return tries

    def _send(
        self,
        host: Host,
        item: Entry | RobotsRequest,
        index: int,
        now: Instant,
        taken: Taken,
    ) -> None:
        """Ask for a slot and spend it on the item, which waits at `index`."""
        decision = self._politeness.reserve(host.name, now=now)
        if not isinstance(decision, Grant):
            self._postpone(host, decision, now)
            return
        permit = decision.permit
        taken.starts.append(InFlight(item, permit, host))
        host.has_gap = permit.host.delay_s > 0.0
        host.on_wire += 1
        self._windows.remove(host, index, item)
        if isinstance(item, RobotsRequest) and item.hops == 0:
            host.awaits_robots = True
        key, places = permit.host.key, self._places
        places.groups.served(host)
        has_line = places.groups.has_line(key)
        if host.is_spent and not has_line:
            places.forget_if_spent(host, now)
            return
        ready = self._politeness.ready_at(host.name, now=now)
        if has_line and ready < inf:
            places.call(key, ready)
        if host.is_spent:
            places.forget_if_spent(host, now)
        elif host.awaits_robots:
            places.to_sleep(host, now)
        elif ready <= now and not host.has_gap and host.on_wire >= host.connections:
            places.to_occupied(host)
        elif ready < inf:
            self._to_heap(host, ready)
        else:
            places.groups.join(key, host, was_served=True)

    def _postpone(self, host: Host, decision: Decision, now: Instant) -> None:
        """Not now: wait for an instant, for a report, or for the operator."""
        assert not isinstance(decision, Grant)
        if decision.until is not None:
            self._to_heap(host, decision.until, decision.reason)
        elif isinstance(decision, Refuse):
            self._places.to_sleep(host, now)
        else:
            known = self._politeness.host(host.name)
            if known is not None and known.in_flight > 0:
                self._places.groups.join(known.host, host, was_served=False)
            else:
                self._to_heap(host, now + _BLIND_WAIT_S, decision.reason)

    def _is_out(self, key: str) -> bool:
        """Return whether a request of a group is under way, and so will be `done`."""
        known = self._politeness.host(key)
        return known is not None and known.in_flight > 0

    def _front(self, entry: Entry, now: Instant) -> None:
        """A retry is due."""
        host = self._places.schedule(entry.host)
        self._windows.push_retry(host, entry)
        if host.place is _IDLE:
            self._to_heap(host, now)


def _turn(host: Host, now: Instant) -> Instant:
    """Return the instant at which a host that may be asked now is to be asked: see Connections."""
    counts = host.counts
    if host.has_gap or counts is None:
        return now
    if host.on_wire < host.connections and counts.requests % _IN_A_ROW:
        return NEVER
    return now
