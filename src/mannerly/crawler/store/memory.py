"""The same promises without a disk: for crawls in virtual time, and to tell what durability costs.

Plain dictionaries, one per set of URLs. A host's queue is put in order when somebody reads it: most
hosts of a large crawl have one URL, and their queue is never read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Self

from mannerly.crawler.model import (
    Candidate,
    Entry,
    HostRecord,
    Kind,
    PageRecord,
    RobotsRecord,
    Skipped,
)

from .base import Batch, Committed, Counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_in_order = attrgetter("priority", "seq")


class MemoryStore:
    """`ShardStore` in memory. The stores of one crawl share their inboxes: see `group`."""

    def __init__(
        self,
        shard: int = 0,
        *,
        frontier_limit: int,
        inboxes: dict[int, list[list[Candidate]]] | None = None,
    ) -> None:
        self.shard = shard
        self.handed_over = 0  # links to other shards
        self._inboxes = {shard: []} if inboxes is None else inboxes
        self._frontier_limit = frontier_limit
        self._next_seq = 1
        self._seen: dict[str, int] = {}
        self._queues: defaultdict[str, dict[int, Entry]] = defaultdict(dict)  # by number
        self._queued: dict[int, Entry] = {}
        self._waiting: dict[int, Entry] = {}
        self._pages: list[PageRecord] = []
        self._fetched: dict[int, PageRecord] = {}
        self._skipped: dict[int, Skipped] = {}
        self._outbox: list[tuple[int, list[Candidate]]] = []
        self._hosts: dict[str, HostRecord | None] = {}  # None: met, and nothing to say of it yet
        self._robots: dict[str, RobotsRecord] = {}
        self._failed = 0

    @classmethod
    def group(cls, shards: int, *, frontier_limit: int) -> list[Self]:
        """The stores of a crawl of several shards, in one process."""
        inboxes: dict[int, list[list[Candidate]]] = {shard: [] for shard in range(shards)}
        return [cls(shard, frontier_limit=frontier_limit, inboxes=inboxes) for shard in inboxes]

    def commit(self, batch: Batch) -> Committed:
        """Apply everything that a batch brought."""
        for shard, _ in batch.outgoing:
            if shard == self.shard or shard not in self._inboxes:
                raise ValueError(f"shard {self.shard} cannot send to shard {shard}")
        for entry, record in batch.pages:
            if self._take(entry):
                self._fetched[entry.seq] = record
                if entry.kind == Kind.PAGE:
                    self._pages.append(record)
                    self._failed += record.status is None
        for entry, reason in batch.dropped:
            if self._take(entry):
                self._skipped[entry.seq] = Skipped(entry.url, reason, entry.depth, entry.parent)
        committed = self._arrive(batch.found)
        self._send(batch.outgoing)
        self._hosts.update([(record.host, record) for record in batch.hosts])
        self._robots.update(batch.robots)
        return committed

    def queued(self, host: str, *, after: tuple[int, int], limit: int) -> list[Entry]:
        """A host's next entries in order, past (priority, seq); (−1, −1) is the beginning."""
        entries = sorted(self._queues.get(host, {}).values(), key=_in_order)
        first = bisect_right(entries, after, key=_in_order)
        return entries[first : first + limit]

    def queued_hosts(self) -> Iterator[tuple[str, int]]:
        """Every host with URLs in its window, and how many."""
        yield from [(host, len(queue)) for host, queue in self._queues.items()]

    def known(self, urls: Sequence[str]) -> set[str]:
        """Which of these the store already has."""
        return {url for url in urls if url in self._seen}

    suspects: dict[int, int] = {}  # noqa: RUF012

    def parsing(self, seq: int) -> None:
        """Not kept yet."""

    def admit_waiting(self, room: int) -> list[Entry]:
        """Move up to `room` URLs from the waiting room into the queue."""
        room = max(min(room, self._frontier_limit - len(self._queued)), 0)
        entries = list(islice(self._waiting.values(), room))
        for entry in entries:
            del self._waiting[entry.seq]
            self._enqueue(entry)
        return entries

    def deliver(self) -> int:
        """Hand outgoing links over to their shards; returns how many were handed over."""
        delivered = self.counts().outgoing
        for shard, letter in self._outbox:
            self._inboxes[shard].append(letter)
        self._outbox.clear()
        self.handed_over += delivered
        return delivered

    def receive(self, limit: int) -> Committed:
        """Take over what is in the inbox, a letter at a time until `limit` is reached."""
        inbox = self._inboxes[self.shard]
        found: list[Candidate] = []
        while inbox and len(found) < limit:
            found += inbox.pop(0)
        return self._arrive(found)

    @property
    def has_unread(self) -> bool:
        """Whether there is anything in the inbox."""
        return bool(self._inboxes[self.shard])

    def host(self, host: str) -> HostRecord | None:
        """What is kept of a host; None if no URL of it was ever offered."""
        return (self._hosts[host] or HostRecord(host=host)) if host in self._hosts else None

    def hosts(self) -> Iterator[HostRecord]:
        """Every host, in the order in which they were found."""
        yield from [record or HostRecord(host=host) for host, record in self._hosts.items()]

    def robots(self, origin: str) -> RobotsRecord | None:
        """The robots.txt kept for an origin."""
        return self._robots.get(origin)

    def counts(self) -> Counts:
        """Exact totals."""
        return Counts(
            queued=len(self._queued) + len(self._waiting),
            waiting=len(self._waiting),
            fetched=len(self._pages),
            failed=self._failed,
            lists=len(self._fetched) - len(self._pages),
            skipped=len(self._skipped),
            outgoing=sum(len(letter) for _, letter in self._outbox),
            hosts=len(self._hosts),
        )

    def pages(self, *, after: int = 0) -> Iterator[tuple[int, PageRecord]]:
        """Page records in the order they were committed, each once, with their positions."""
        position = after
        while position < len(self._pages):
            position += 1
            yield position, self._pages[position - 1]

    def skipped(self) -> Iterator[Skipped]:
        """Every URL that will not be fetched, in the order of arrival."""
        for seq in sorted(self._skipped):
            yield self._skipped[seq]

    def find(self, url: str) -> Entry | PageRecord | Skipped | None:
        """Where a URL of this shard stands; None if it is unknown."""
        seq = self._seen.get(url, 0)
        if record := self._fetched.get(seq):
            return record
        return self._queued.get(seq) or self._waiting.get(seq) or self._skipped.get(seq)

    def urls(self) -> Iterator[str]:
        """Every URL known to the shard, each once."""
        yield from list(self._seen)

    def forget_robots(self, origin: str) -> None:
        """Have an origin's robots.txt fetched anew."""
        self._robots.pop(origin, None)

    def close(self) -> None:
        """Nothing is held that others could want."""

    def _take(self, entry: Entry) -> bool:
        """Remove an entry from the queue, unless it has left already."""
        if self._queued.pop(entry.seq, None) is None:
            return False
        queue = self._queues[entry.host]
        del queue[entry.seq]
        if not queue:
            del self._queues[entry.host]
        return True

    def _enqueue(self, entry: Entry) -> None:
        self._queued[entry.seq] = entry
        self._queues[entry.host][entry.seq] = entry

    def _arrive(self, candidates: list[Candidate]) -> Committed:
        new: list[Entry] = []
        waiting = 0
        for url, host, depth, priority, parent, hops, kind in candidates:
            if seq := self._number(url):
                entry = Entry(seq, url, host, depth, priority, parent, hops, kind)
                self._hosts.setdefault(host, None)
                if self._waiting or len(self._queued) >= self._frontier_limit:
                    self._waiting[seq] = entry
                    waiting += 1
                else:
                    self._enqueue(entry)
                    new.append(entry)
        return Committed(new, waiting)

    def _send(self, outgoing: list[tuple[int, Candidate]]) -> None:
        """A letter to every shard that is named."""
        letters: defaultdict[int, list[Candidate]] = defaultdict(list)
        for shard, candidate in outgoing:
            letters[shard].append(candidate)
        self._outbox += letters.items()

    def _number(self, url: str) -> int:
        """The number of a new URL; 0 if it is known."""
        if url in self._seen:
            return 0
        seq = self._next_seq
        self._next_seq += 1
        self._seen[url] = seq
        return seq
