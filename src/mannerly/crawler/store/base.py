"""What a shard's store promises. SQLite keeps it today; Redis will, without the engine noticing.

A store belongs to one shard and has one owner. It holds three sets of URLs, and every URL of the
shard that was ever offered is in exactly one of them:

    queued      waiting to be fetched, in order of (priority, seq) within a host
    fetched     has a page record
    skipped     has a reason

and, beside them, links that belong to other shards and wait to be handed over (*outgoing*), one
record per host (learned pace, robots.txt, counts) and the crawl's settings.

**One transaction.** `commit(batch)` applies everything that a batch of finished pages brought:
page records, new URLs, dropped ones, outbox, host records, robots.txt files. All of it or nothing.
After a crash the store is as it was after some earlier commit, and what was rolled back is simply
fetched again: the URL is still queued, so its links will be found again. Nothing else is written
while fetching: being in flight is no state of the store. An entry that has left the queue cannot be
recorded or dropped again, so a batch whose commit failed may be offered once more.

**New or known is decided here.** `commit` reports which candidates were new. A filter in front of
the store may save it the question, but never answers it: offering a known URL changes nothing,
whichever of the three sets it is in (an earlier arrival keeps its depth and priority).

**Windows.** `queued(host, after, limit)` reads a host's next entries without removing them; they
leave the queue when a commit records or drops them. So memory holds a window of each active host,
and the rest of the frontier costs nothing.

**Letters between shards.** A link to another shard is committed to the outbox together with its
page, in one letter with the others of the batch. `deliver` copies letters to the owner's inbox, and
removes them only when that is safe; the owner's `receive` moves their links into its own queue in
one transaction. Both may be repeated after a crash at any point: at least once, deduplicated on
arrival, so none is lost. The sender keeps no list of what it sent: a link that it meets again after
a long while is sent again, and is known by then.

**Limits.** Beyond `frontier_limit` queued URLs new ones are kept in arrival order in a waiting
room (still "queued" in the sense above, but in no host's window) and let in as room appears:
back-pressure without loss. `counts().waiting` tells how many.

**Damage.** A store that is not ours, is newer than us, or is damaged refuses to open with a
`StoreError` that says so; it never starts empty in its place. Everything here is called from one
thread. Times are wall time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mannerly.crawler.model import (
        Candidate,
        Entry,
        HostRecord,
        PageRecord,
        RobotsRecord,
        Skipped,
    )


class StoreError(Exception):
    """The state cannot be used: locked, damaged, foreign or too new. Exit code 4."""


class StoreFull(StoreError):  # noqa: N818 - a state of the disk
    """The disk is full or the file cannot grow: pause, tell, and go on when there is room."""


@dataclass(slots=True)
class Batch:
    """Everything that one commit applies."""

    pages: list[tuple[Entry, PageRecord]] = field(default_factory=list)
    found: list[Candidate] = field(default_factory=list)  # for this shard
    outgoing: list[tuple[int, Candidate]] = field(default_factory=list)  # (shard, candidate)
    dropped: list[tuple[Entry, str]] = field(default_factory=list)  # leave the queue, with a reason
    hosts: list[HostRecord] = field(default_factory=list)
    robots: dict[str, RobotsRecord] = field(default_factory=dict)  # by origin

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit changed: the candidates that were new, as entries of this shard's queue."""

    new: list[Entry]  # without those that wait: `admit_waiting` returns them when they are let in
    waiting: int  # new ones that went to the waiting room


@dataclass(frozen=True, slots=True)
class Counts:
    """Exact totals, from the store itself."""

    queued: int  # the waiting room included
    waiting: int  # of these, in the waiting room
    fetched: int  # pages
    failed: int  # of the fetched: with an error instead of a status
    lists: int  # sitemaps and public indexes that were read
    skipped: int
    outgoing: int
    hosts: int


class ShardStore(Protocol):
    """One shard's durable state."""

    def commit(self, batch: Batch) -> Committed: ...

    def queued(self, host: str, *, after: tuple[int, int], limit: int) -> list[Entry]:
        """A host's next entries in order, past (priority, seq); (−1, −1) is the beginning."""

    def queued_hosts(self) -> Iterator[tuple[str, int]]:
        """Every host with URLs in its window, and how many; the waiting room is not counted."""

    def known(self, urls: Sequence[str]) -> set[str]:
        """Which of these the store already has, in any of the three sets."""

    def admit_waiting(self, room: int) -> list[Entry]:
        """Move up to `room` URLs from the waiting room into the queue, never past the limit."""

    def deliver(self) -> int:
        """Hand outgoing links over to their shards; returns how many were handed over."""

    def receive(self, limit: int) -> Committed:
        """Take over what is in the inbox, a letter at a time until `limit` is reached."""

    def host(self, host: str) -> HostRecord | None:
        """What is kept of a host; None if no URL and no record of it was ever committed."""

    def hosts(self) -> Iterator[HostRecord]: ...

    def robots(self, origin: str) -> RobotsRecord | None: ...

    def counts(self) -> Counts: ...

    def pages(self, *, after: int = 0) -> Iterator[tuple[int, PageRecord]]:
        """Page records in the order they were committed, each once, with their positions."""

    def skipped(self) -> Iterator[Skipped]: ...

    def find(self, url: str) -> Entry | PageRecord | Skipped | None:
        """Where a URL of this shard stands; None if it is unknown."""

    def urls(self) -> Iterator[str]:
        """Every URL known to the shard: to fill the filter after a restart."""

    def forget_robots(self, origin: str) -> None: ...

    def close(self) -> None: ...
