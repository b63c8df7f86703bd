"""The windows of all hosts together: the URLs that are queued, in memory, and taken.

    queued        wait for their turn: in memory, for a retry, or on disk
    in memory     in a window or, due for a retry, in front of it. Beyond `memory_limit` a host gets
                  one entry at a time; the rest of its queue stays on disk. Below `roomy_limit` a
                  host gets ROOMY times as many: where a read is dear, fewer are needed
    outstanding   taken or put back, and not yet committed: the store still has them, so a read
                  may bring them again

This module knows no time and no place of a host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import RobotsRequest

from .model import Dropped, Refill

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mannerly.crawler.host.queue import HostQueue
    from mannerly.crawler.model import Entry


ROOMY = 16


class Windows:
    """Counts over the queues of all hosts of a shard."""

    __slots__ = (
        "_memory_limit",
        "_outstanding",
        "_per_host",
        "_roomy_limit",
        "in_memory",
        "queued",
    )

    def __init__(self, per_host: int, memory_limit: int, roomy_limit: int = 0) -> None:
        self._per_host = per_host
        self._memory_limit = memory_limit
        self._roomy_limit = roomy_limit
        self._outstanding: set[int] = set()
        self.queued = self.in_memory = 0

    # ------------------------------------------------------------------ in

    def add(self, queue: HostQueue, entry: Entry) -> None:
        """Add a new entry to its host's queue."""
        self.queued += 1
        in_memory = self.in_memory
        room = 0 if in_memory >= self._memory_limit else self._per_host
        if in_memory < self._roomy_limit:
            room *= ROOMY
        self.in_memory = in_memory + queue.add(entry, room)

    def put_back(self, entry: Entry) -> None:
        """Count an entry that will be due for a retry."""
        assert entry.seq in self._outstanding, "only a URL that was taken can be put back"
        self.queued += 1

    def ask(self, queue: HostQueue, entry: Entry) -> None:
        """Put an entry that is in no store in front of its host's window."""
        self.queued += 1
        self.push_retry(queue, entry)

    def taken_back(self, entry: Entry, *, in_memory: bool) -> None:
        """Count off an entry of `ask` that was taken out of its queue, or out of the retries."""
        self.queued -= 1
        self.in_memory -= in_memory
        self.committed((entry,))

    def push_retry(self, queue: HostQueue, entry: Entry) -> None:
        """Put an entry that is due for a retry in front of its host's window."""
        queue.push_retry(entry)
        self.in_memory += 1

    def wanted(self, queues: Iterable[HostQueue]) -> list[Refill]:
        """Return the reads for hosts whose window is empty, in their order."""
        room = self._memory_limit - self.in_memory
        roomy = self._roomy_limit - self.in_memory
        wanted = []
        for queue in queues:
            limit = max(1, min(self._per_host * (ROOMY if roomy > 0 else 1), room))
            room -= limit
            roomy -= limit
            wanted.append(Refill(queue.name, queue.cursor, limit))
        return wanted

    def refill(self, queue: HostQueue, entries: Sequence[Entry], limit: int) -> None:
        """Add entries that were read; fewer than `limit` means that there are no more."""
        before = queue.on_disk
        fresh = queue.refill(entries, self._outstanding, is_end=len(entries) < limit)
        self.in_memory += fresh
        self.queued += fresh + queue.on_disk - before

    # ------------------------------------------------------------------ out

    def remove(self, queue: HostQueue, index: int, item: Entry | RobotsRequest) -> None:
        """Hand out the item at `index`."""
        queue.remove(index)
        if not isinstance(item, RobotsRequest):
            self._outstanding.add(item.seq)
            self.in_memory -= 1
            self.queued -= 1

    def committed(self, entries: Iterable[Entry]) -> None:
        """These have left the store's queue, so no read can bring them again."""
        self._outstanding.difference_update([entry.seq for entry in entries])

    def withhold(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return those that were not taken; from now on they count as taken."""
        free = [entry for entry in entries if entry.seq not in self._outstanding]
        self._outstanding.update([entry.seq for entry in free])
        return free

    def drop(self, queue: HostQueue | None, retries: Collection[Entry], on_disk: int) -> Dropped:
        """Forget a host's queue, its retries, and what is on disk of a host without a queue."""
        self.committed(retries)
        count = len(retries) + on_disk
        requests: list[RobotsRequest] = []
        if queue is not None:
            front = queue.front or ()
            self.committed(item for item in front if not isinstance(item, RobotsRequest))
            count += queue.queued
            self.in_memory -= queue.in_memory
            requests = queue.clear()
            count -= len(requests)
            self.in_memory += len(requests)
        self.queued -= count
        return Dropped(count, requests)

    def check(self, queues: Collection[HostQueue], elsewhere: int) -> None:
        """Assert that the counts are exact and the limit holds.

        `elsewhere` is the number of queued URLs that are in no queue.
        """
        windows = sum([len(queue.window) for queue in queues if queue.window is not None])
        fronts = [item for queue in queues if queue.front is not None for item in queue.front]
        retries = sum(not isinstance(item, RobotsRequest) for item in fronts)
        assert self.in_memory == windows + retries
        assert windows <= self._memory_limit + len(queues), "one for each host beyond it"
        on_disk = sum([queue.on_disk for queue in queues])
        assert self.queued == self.in_memory + on_disk + elsewhere
