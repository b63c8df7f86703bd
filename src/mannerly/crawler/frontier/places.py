"""Keep the place of every host of a shard. A host with queued URLs is in exactly one place.

    HEAP          waits for an instant                      way out: time
    NEEDS_REFILL  its window is empty, the store has more   a refill
    BUSY          in the line of its group, see below       a request of the group comes back
    OCCUPIED      its connections are in use                a request comes back, or `widen`
    ROBOTS_LINE   too many robots.txt are being fetched     one of them comes back
    ASLEEP        paused, given up, or rules are missing    `wake`
    INACTIVE      a name and a count: the scheduler is full another host is done

This file moves hosts from place to place and asserts the invariant (`check`). It does not decide
where a host goes: that is `core`.

A **group** is the set of hosts that share a budget; mostly it is one host. A host that can only
continue when a request of its group is answered joins the group's line. When one is answered, the
first host in the line is called: one only, because an address may have a hundred thousand hosts.

**Invariant.** For every line there is a request under way, or a host that was called and will be
served. A host that was called and cannot send (its URLs are forbidden, or it was dropped) passes
the call on, or else the line would wait for ever.

**Fairness.** A host that was refused a slot goes before one that just got one: hosts take turns.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from mannerly.crawler.host.host import Place

from .heap import HostHeap

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mannerly.crawler.host.host import Host
    from mannerly.crawler.host.hosts import Hosts
    from mannerly.politeness.model import Instant, Reason


class _Line:
    __slots__ = ("hosts", "refused_first")

    def __init__(self) -> None:
        self.hosts: list[Host] = []
        self.refused_first = 0  # how many of them were refused a slot; they are the first


class Groups:
    """Hosts that wait for a request of their group to come back.

    `is_out` returns whether requests of a group are under way, which the politeness core knows.
    """

    __slots__ = ("_called", "_is_out", "_lines")

    def __init__(self, is_out: Callable[[str], bool]) -> None:
        self._is_out = is_out
        self._lines: dict[str, _Line] = {}  # by group; no line is empty
        self._called: dict[Host, str] = {}  # hosts called and not served yet, with their groups

    @property
    def waiting(self) -> int:
        """Return the number of hosts in all lines."""
        return sum(len(line.hosts) for line in self._lines.values())

    def has_line(self, key: str) -> bool:
        """Return whether a host waits for a request of this group."""
        return key in self._lines

    def served(self, host: Host) -> None:
        """Note that a host was granted a request."""
        if self._called:
            self._called.pop(host, None)

    def join(self, key: str, host: Host, *, was_served: bool) -> None:
        """Put a host into its group's line, until a request of the group is answered."""
        self._called.pop(host, None)
        host.place = Place.BUSY
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        if was_served:
            line.hosts.append(host)
        else:
            line.hosts.insert(line.refused_first, host)
            line.refused_first += 1

    def call(self, key: str) -> Host | None:
        """Remove and return the first host of the line, which must be served next."""
        line = self._lines.get(key)
        if line is None:
            return None
        host = line.hosts[0]
        self._leave(key, host)
        self._called[host] = key
        return host

    def pass_on(self, host: Host) -> Host | None:
        """Return the host to serve instead of one that was called and cannot send."""
        key = self._called.pop(host, None) if self._called else None
        return None if key is None or self._is_out(key) else self.call(key)

    def withdraw(self, host: Host) -> None:
        """Remove a host from the line that it is in."""
        for key in [key for key, line in self._lines.items() if host in line.hosts]:
            self._leave(key, host)

    def check(self) -> None:
        """Assert that for every line there is a request under way or a called host."""
        in_line = [host for line in self._lines.values() for host in line.hosts]
        assert all(host.place is Place.BUSY for host in in_line)
        assert len(in_line) == len(set(in_line))
        for key, line in self._lines.items():
            called = [host for host, name in self._called.items() if name == key]
            is_coming = any(host.place in (Place.HEAP, Place.NEEDS_REFILL) for host in called)
            assert self._is_out(key) or is_coming, key
            assert 0 <= line.refused_first <= len(line.hosts)
            assert line.hosts

    def _leave(self, key: str, host: Host) -> None:
        line = self._lines[key]
        at = line.hosts.index(host)
        del line.hosts[at]
        line.refused_first -= at < line.refused_first
        if not line.hosts:
            del self._lines[key]


# A member of an enum is found in 95 ns by its full name and in 15 by these, a dozen times a turn.
_UNSCHEDULED, _IDLE, _HEAP, _BUSY = Place.UNSCHEDULED, Place.IDLE, Place.HEAP, Place.BUSY
_NEEDS_REFILL, _ROBOTS_LINE, _ASLEEP = Place.NEEDS_REFILL, Place.ROBOTS_LINE, Place.ASLEEP
_OCCUPIED = Place.OCCUPIED


class Inactive:
    """Names that wait for a place in the scheduler, each with the number of its URLs on disk.

    About 140 bytes each, where a host in the scheduler takes three times as much before its first
    URL. First in, first out.
    """

    __slots__ = ("_counts", "_order")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        # A dict keeps the order too, but finding its first key takes longer with every removal.
        self._order: deque[str] = deque()

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, host: str) -> bool:
        return host in self._counts

    @property
    def queued(self) -> int:
        """Return the number of URLs of all these hosts."""
        return sum(self._counts.values())

    def add(self, host: str, count: int) -> None:
        """Add `count` URLs of a host; a new host joins the end of the line."""
        if host not in self._counts:
            self._order.append(host)
            self._counts[host] = 0
        self._counts[host] += count

    def remove(self, host: str) -> int:
        """Remove a host from the line; return its count, 0 if it was not in it."""
        return self._counts.pop(host, 0)

    def first(self) -> str | None:
        """Return the first host of the line, without removing it."""
        while self._order:
            if self._order[0] in self._counts:
                return self._order[0]
            self._order.popleft()  # it was removed before its turn
        return None

    def check(self, scheduled: Collection[str]) -> None:
        """Assert that every name is in the line, not scheduled, and has URLs."""
        assert self._counts.keys().isdisjoint(scheduled)
        assert self._counts.keys() <= set(self._order)
        assert all(count > 0 for count in self._counts.values())


class Places:
    """The hosts in the scheduler by place.

    `is_out` returns whether requests of a group are under way.
    """

    def __init__(self, hosts: Hosts, heap_limit: int, is_out: Callable[[str], bool]) -> None:
        self._hosts = hosts
        self._heap_limit = heap_limit
        self.groups = Groups(is_out)
        self.scheduled = 0  # hosts; the inactive ones are not
        self.heap = HostHeap()
        self.need_refill: dict[Host, None] = {}  # in their order
        self.robots_line: deque[Host] = deque()
        self.occupied: dict[Host, None] = {}  # in their order
        self.asleep = 0  # hosts
        self.inactive = Inactive()
        self.waiting: Counter[Reason] = Counter()  # what hosts in the heap said they wait for

    @property
    def is_full(self) -> bool:
        """Return whether new hosts have to wait for a place in the scheduler."""
        return self.scheduled >= self._heap_limit

    def to_heap(self, host: Host, due: Instant, reason: Reason | None = None) -> None:
        """Ask this host at `due`, or earlier if that was agreed before."""
        place = host.place
        if place is not _HEAP:
            if place is _ASLEEP:
                self.asleep -= 1
            host.place = _HEAP
            host.reason = reason
            if reason is not None:
                self.waiting[reason] += 1
        self.heap.put(host, due)

    def to_sleep(self, host: Host, now: Instant) -> None:
        """Do not ask this host until it is woken."""
        host.place = _ASLEEP
        self.asleep += 1
        self.pass_on(host, now)

    def to_refill(self, host: Host) -> None:
        """Read more of this host's queue from the store before asking it."""
        host.place = _NEEDS_REFILL
        self.need_refill[host] = None

    def to_occupied(self, host: Host) -> None:
        """Ask this host again when one of its connections is free, or when it may open another."""
        host.place = _OCCUPIED
        self.occupied[host] = None

    def resume(self, host: Host, due: Instant) -> None:
        """One of this host's connections is free."""
        del self.occupied[host]
        self.to_heap(host, due)

    def widen(self) -> Host | None:
        """Return the host that is to use one connection more; None: no host waits for that."""
        if not self.occupied:
            return None
        host = next(iter(self.occupied))
        del self.occupied[host]
        host.connections = host.on_wire + 1
        return host

    def to_robots_line(self, host: Host, now: Instant) -> None:
        """Ask this host again when fewer robots.txt are being fetched."""
        host.place = _ROBOTS_LINE
        self.robots_line.append(host)
        self.pass_on(host, now)

    def call(self, key: str, due: Instant) -> None:
        """Ask the first in a group's line at `due`."""
        host = self.groups.call(key)
        if host is not None:
            self.to_heap(host, due)

    def pass_on(self, host: Host, now: Instant) -> None:
        """Ask another of the group, if this host was called and cannot send."""
        other = self.groups.pass_on(host)
        if other is not None:
            self.to_heap(other, now)

    def leave(self, host: Host) -> None:
        """The host's turn has come: it is in no place until its turn is over."""
        if host.reason is not None:
            self.waiting[host.reason] -= 1
            host.reason = None
        host.place = _IDLE

    def withdraw(self, host: Host, now: Instant) -> None:
        """Take an emptied host out of every list, and out of the scheduler."""
        self.heap.remove(host)
        if host.place is _NEEDS_REFILL:
            del self.need_refill[host]
        elif host.place is _ASLEEP:
            self.asleep -= 1
        elif host.place is _ROBOTS_LINE:
            self.robots_line.remove(host)
        elif host.place is _BUSY:
            self.groups.withdraw(host)
        elif host.place is _OCCUPIED:
            del self.occupied[host]
        self.leave(host)
        self.pass_on(host, now)
        self.forget_if_spent(host, now)

    def schedule(self, name: str, on_disk: int = 0) -> Host:
        """Return a host that is in the scheduler from now on, with URLs that the store has.

        Retries and robots.txt need no place in it.
        """
        host = self._hosts.meet(name)
        if host.place is _UNSCHEDULED:
            host.place = _IDLE
            host.begin_anew(on_disk + self.inactive.remove(name))
            self.scheduled += 1
        return host

    def forget_if_spent(self, host: Host, now: Instant) -> None:
        """Let go of a host with nothing left to hand out; inactive hosts take its place."""
        if host.place is not _IDLE or not host.is_spent:
            return
        host.place = _UNSCHEDULED
        self.scheduled -= 1
        self._hosts.release(host)
        if not self.inactive:
            return
        while not self.is_full and (name := self.inactive.first()) is not None:
            self.to_heap(self.schedule(name), now)

    def check(self) -> None:
        """Assert that every host is in one place, with a way out."""
        scheduled = self._hosts.scheduled
        assert len(scheduled) == self.scheduled
        # As many as say so are in each list, and none is in a list that does not say so.
        places = [host.place for host in scheduled]
        assert places.count(_IDLE) == 0
        assert places.count(_HEAP) == len(self.heap)
        assert places.count(_BUSY) == self.groups.waiting
        assert places.count(_ASLEEP) == self.asleep
        assert len(set(self.robots_line)) == len(self.robots_line)
        lists = (
            (self.need_refill, _NEEDS_REFILL),
            (self.robots_line, _ROBOTS_LINE),
            (self.occupied, _OCCUPIED),
        )
        for hosts, place in lists:
            assert places.count(place) == len(hosts)
            assert all(host.place is place for host in hosts)
        assert not self.inactive or self.is_full
        self.groups.check()
        self.inactive.check({host.name for host in scheduled})
        self.heap.check()
        reasons = [host.reason for host in scheduled if host.reason is not None]
        assert +self.waiting == Counter(reasons)
