"""Keep the place of every host of a shard. A host with queued URLs is in exactly one place.

    HEAP          waits for an instant                      way out: time
    HUNGRY        its window is empty, the store has more   a refill
    BUSY          in its group's line (see `groups`)        a request of the group comes back
    ROBOTS_LINE   too many robots.txt are being fetched     one of them comes back
    ASLEEP        paused, given up, or rules are missing    `wake`
    INACTIVE      a name and a count: the scheduler is full another host is done

This file moves hosts from place to place and asserts the invariant (`check`). It does not decide
where a host goes: that is `core`.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from .groups import Groups
from .heap import HostHeap
from .inactive import Inactive
from .window import HostQueue, Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.politeness.model import Instant, Reason

# A member of an enum is found in 95 ns by its full name and in 15 by these, a dozen times a turn.
_IDLE, _HEAP, _BUSY, _HUNGRY = Place.IDLE, Place.HEAP, Place.BUSY, Place.HUNGRY
_ROBOTS_LINE, _ASLEEP = Place.ROBOTS_LINE, Place.ASLEEP


class Places:
    """The hosts of a shard by place.

    `is_out` returns whether requests of a group are under way: see `groups`.
    """

    def __init__(self, heap_limit: int, is_out: Callable[[str], bool]) -> None:
        self._heap_limit = heap_limit
        self.groups = Groups(is_out)
        self.hosts: dict[str, HostQueue] = {}  # all but the inactive ones
        self.heap = HostHeap()
        self.hungry: dict[str, HostQueue] = {}
        self.robots_line: deque[HostQueue] = deque()
        self.asleep: set[str] = set()
        self.inactive = Inactive()
        self.waiting: Counter[Reason] = Counter()  # what hosts in the heap said they wait for

    @property
    def is_full(self) -> bool:
        """Return whether new hosts have to wait for a place in the scheduler."""
        return len(self.hosts) >= self._heap_limit

    def to_heap(self, queue: HostQueue, due: Instant, reason: Reason | None = None) -> None:
        """Ask this host at `due`, or earlier if that was agreed before."""
        place = queue.place
        if place is not _HEAP:
            if place is _ASLEEP:
                self.asleep.remove(queue.host)
            queue.place = _HEAP
            queue.reason = reason
            if reason is not None:
                self.waiting[reason] += 1
        self.heap.put(queue, due)

    def to_sleep(self, queue: HostQueue, now: Instant) -> None:
        """Do not ask this host until it is woken."""
        queue.place = _ASLEEP
        self.asleep.add(queue.host)
        self.pass_on(queue, now)

    def to_hungry(self, queue: HostQueue) -> None:
        """Read more of this host's queue from the store before asking it."""
        queue.place = _HUNGRY
        self.hungry[queue.host] = queue

    def to_robots_line(self, queue: HostQueue, now: Instant) -> None:
        """Ask this host again when fewer robots.txt are being fetched."""
        queue.place = _ROBOTS_LINE
        self.robots_line.append(queue)
        self.pass_on(queue, now)

    def call(self, key: str, due: Instant) -> None:
        """Ask the first in a group's line at `due`."""
        queue = self.groups.call(key)
        if queue is not None:
            self.to_heap(queue, due)

    def pass_on(self, queue: HostQueue, now: Instant) -> None:
        """Ask another of the group, if this host was called and cannot send."""
        other = self.groups.pass_on(queue)
        if other is not None:
            self.to_heap(other, now)

    def leave(self, queue: HostQueue) -> None:
        """The host's turn has come: it is in no place until its turn is over."""
        if queue.reason is not None:
            self.waiting[queue.reason] -= 1
            queue.reason = None
        queue.place = _IDLE

    def withdraw(self, queue: HostQueue, now: Instant) -> None:
        """Take an emptied host out of every list, and drop it."""
        self.heap.remove(queue)
        self.hungry.pop(queue.host, None)
        self.asleep.discard(queue.host)
        if queue.place is _ROBOTS_LINE:
            self.robots_line.remove(queue)
        if queue.place is _BUSY:
            self.groups.withdraw(queue)
        self.leave(queue)
        self.pass_on(queue, now)
        self.forget_if_spent(queue, now)

    def active(self, host: str) -> HostQueue:
        """Return the host's queue. Retries and robots.txt need no place in the scheduler."""
        queue = self.hosts.get(host)
        if queue is None:
            queue = self.hosts[host] = HostQueue(host, self.inactive.remove(host))
        return queue

    def forget_if_spent(self, queue: HostQueue, now: Instant) -> None:
        """Drop a host with nothing left to hand out, and let inactive hosts take its place."""
        if queue.place is not _IDLE or not queue.is_spent:
            return
        del self.hosts[queue.host]
        if not self.inactive:
            return
        while not self.is_full and (host := self.inactive.first()) is not None:
            self.to_heap(self.active(host), now)

    def check(self) -> None:
        """Assert that every host is in one place, with a way out."""
        for queue in self.hosts.values():
            queue.check()
            place = queue.place
            assert (queue.due is not None) == (place is _HEAP), queue
            assert queue.reason is None or place is _HEAP, queue
            assert place is not _IDLE, queue
        # As many as say so are in each list, and none is in a list that does not say so.
        places = [queue.place for queue in self.hosts.values()]
        assert places.count(_HEAP) == len(self.heap)
        assert places.count(_BUSY) == self.groups.waiting
        in_line = {queue.host for queue in self.robots_line}
        assert len(in_line) == len(self.robots_line)
        for names, place in (
            (self.hungry.keys(), _HUNGRY),
            (self.asleep, _ASLEEP),
            (in_line, _ROBOTS_LINE),
        ):
            assert places.count(place) == len(names)
            assert all(self.hosts[host].place is place for host in names)
        assert not self.inactive or self.is_full
        self.groups.check(self.hosts)
        self.inactive.check(self.hosts)
        self.heap.check()
        reasons = [queue.reason for queue in self.hosts.values() if queue.reason is not None]
        assert +self.waiting == Counter(reasons)
