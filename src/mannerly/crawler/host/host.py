"""One host: everything that a shard knows of it, as one object.

    queue       its URLs, in memory and on disk (`queue`), and its place in the scheduler
    budget      what it shares with the hosts of its politeness key (`budget`); None: unknown
    counts      its stored record and what was counted since; None: nothing
    under way   its requests from the grant of a slot until they have a result

Words for how much of a host is in memory:

    met         it has an object: a URL of it is queued, or it was asked about
    visited     met only to be looked at: dropped after the next commit, unless it is needed then
    recalled    its record was read from the store, at its first turn in this run
    known       it has a budget: from its first turn until the politeness core forgets its key

Most hosts have one URL, no sitemap and have never been silent, so what few of them have is None for
the others.

Each field has one writer; any module may read it:

    its queue                            `queue`
    place, reason, connections           `frontier.places`: the states of a host in the scheduler
    due                                  `frontier.heap`
    awaits_robots, has_gap, on_wire      `frontier.core`
    budget, is_paused, silence           `hosts`
    under_way, pages, sitemaps           here: `begin`, `end`
    counts                               here: `own_counts`; its fields by its methods

**Given up.** `given_up` is the reason in the record of the host, and the only place where that is
kept. The politeness core decides it (`HostGate.give_up`); `shard.given_up` hears of it, has it
written and drops the URLs; a record of an earlier run says it, too.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.kinds import KINDS, Limit
from mannerly.crawler.model import HostRecord
from mannerly.politeness.model import NEVER

from .queue import HostQueue

if TYPE_CHECKING:
    from mannerly.crawler.kinds import Kind
    from mannerly.politeness.model import Instant, Reason

    from .budget import Budget


EMPTY_RECORD = HostRecord("")  # most hosts have counts and nothing else


class HostCounts:
    """A host's stored record, and what was counted since it was made. Only its methods write it."""

    __slots__ = (
        *("failed", "failures_in_a_row", "fetched", "record", "refused", "requests"),
        *("doing", "is_changed", "inspect_at", "retry_at", "updated_at"),
    )

    def __init__(self) -> None:
        self.record: HostRecord | None = None
        self.fetched = self.failed = self.refused = self.failures_in_a_row = self.requests = 0
        self.updated_at = 0.0
        self.doing = b""  # as `HostRecord` has it
        self.inspect_at = NEVER  # when to see anew what the host does
        self.retry_at = NEVER  # when the URL that was put back last is due
        self.is_changed = False  # the next commit writes it

    def put(self, record: HostRecord) -> None:
        """Take a record in place of what is known."""
        self.record = record
        self.fetched = record.fetched
        self.failed = record.failed
        self.failures_in_a_row = record.failures_in_a_row
        self.refused = record.refused
        self.requests = record.requests
        self.updated_at = record.updated_at
        self.doing = record.doing

    def answered(
        self, wall: float, *, fetched: int, failed: int, refused: int, is_failure: bool
    ) -> None:
        """Count an answer; `is_failure` tells whether the host was in trouble."""
        self.fetched += fetched
        self.failed += failed
        self.refused += refused
        self.updated_at = wall
        if refused or is_failure:
            self.inspect_at = NEVER
        if is_failure:
            self.failures_in_a_row += 1
        elif fetched:
            self.failures_in_a_row = 0

    def asked(self) -> None:
        """Count a request that has left."""
        self.requests += 1

    def came_back(self, failed: int, lost: int, wall: float) -> None:
        """Count no more what is queued again: pages that had failed, or whose record is lost."""
        self.failed = max(0, self.failed - failed)
        self.fetched = max(0, self.fetched - lost)
        self.updated_at = wall

    def put_back(self, due: Instant) -> None:
        """Note that a URL is asked for again at an instant."""
        self.retry_at = due

    def saw(self, doing: bytes, inspect_at: Instant) -> None:
        """Take what the host does, and when that has to be seen anew."""
        self.doing = doing
        self.inspect_at = inspect_at

    def inspect(self) -> None:
        """Have it seen anew what the host does."""
        self.inspect_at = NEVER

    def change(self) -> bool:
        """Have it written by the next commit; return False if that was known."""
        was_changed, self.is_changed = self.is_changed, True
        return not was_changed

    def committed(self) -> None:
        """It is in the store."""
        self.is_changed = False

    def complete(self, host: str) -> HostRecord:
        """Return the up-to-date record. Pages are counted more often than records are written."""
        make = HostRecord if self.record is None else self.record._replace
        return make(
            host=host,
            fetched=self.fetched,
            refused=self.refused,
            failed=self.failed,
            failures_in_a_row=self.failures_in_a_row,
            requests=self.requests,
            updated_at=self.updated_at,
            doing=self.doing,
        )


_PAGES, _SITEMAPS = Limit.PAGES, Limit.SITEMAPS


class Place(Enum):
    """The place of a host in the scheduler. It is in exactly one."""

    UNSCHEDULED = "unscheduled"  # nothing of it is queued, or it waits in line for a place
    IDLE = "idle"  # it is being served; afterwards it is in another place
    HEAP = "heap"
    BUSY = "busy"  # in its group's line, until one of the group's requests is answered
    OCCUPIED = "occupied"  # its connections are in use; it gets another if there is time for that
    NEEDS_REFILL = "needs_refill"  # its turn came, its window is empty, and the store has more
    ROBOTS_LINE = "robots_line"  # its turn came for a robots.txt, and too many are being fetched
    ASLEEP = "asleep"  # until `wake`


_UNSCHEDULED = Place.UNSCHEDULED


class Silence(NamedTuple):
    """A host has not answered, not even for its robots.txt."""

    origin: str
    cause: str  # a reason code
    tries: int


class SitemapUse:
    """The sitemaps of one host in this run."""

    __slots__ = ("bytes", "fetched", "is_told", "taken", "under_way")

    def __init__(self) -> None:
        self.taken = 0  # queued, as far as this shard has found them
        self.under_way = 0
        self.fetched = 0
        self.bytes = 0
        self.is_told = False


class Host(HostQueue):
    """One host of a shard."""

    __slots__ = (
        "awaits_robots",
        "budget",
        "connections",
        "counts",
        "due",
        "has_gap",
        "is_paused",
        "on_wire",
        "pages",
        "place",
        "reason",
        "silence",
        "sitemaps",
        "under_way",
    )

    def __init__(self, name: str, on_disk: int = 0) -> None:
        super().__init__(name, on_disk)
        self.place = _UNSCHEDULED
        self.reason: Reason | None = None  # why it has to wait, while it is in the heap
        self.due: Instant | None = None  # its instant, while it is in the heap
        self.awaits_robots = False  # a request for its own robots.txt is under way
        self.is_paused = False  # by `host pause`
        self.budget: Budget | None = None
        self.counts: HostCounts | None = None
        self.has_gap = True  # between two requests, as far as is known
        self.under_way = 0  # requests without a result
        self.on_wire = 0  # of these, without an answer
        self.connections = 1  # it may use at once, while it has no gap
        self.pages = 0  # of these, for pages
        self.sitemaps: SitemapUse | None = None
        self.silence: Silence | None = None

    def __repr__(self) -> str:
        place, here, there = self.place.value, self.in_memory, self.on_disk
        return f"<Host {self.name} {place}, {here} here, {there} there>"

    @property
    def is_needed(self) -> bool:
        """Return whether there is anything that only this object knows."""
        return (
            self.place is not _UNSCHEDULED
            or self.budget is not None
            or self.counts is not None
            or self.under_way > 0
            or self.is_paused
        )

    @property
    def given_up(self) -> str | None:
        """Return why it was given up, in this run or an earlier one; None if it was not."""
        counts = self.counts
        return None if counts is None or counts.record is None else counts.record.retired

    @property
    def fetched(self) -> int:
        """Return how many pages it has given, as far as is known."""
        return 0 if self.counts is None else self.counts.fetched

    @property
    def own_counts(self) -> HostCounts:
        """Return its counts; they begin with the first use."""
        if self.counts is None:
            self.counts = HostCounts()
        return self.counts

    def forget(self, *, sitemaps: bool = False) -> None:
        """Drop counts that are in the store; of a host without requests the `sitemaps`, too."""
        if self.counts is not None and not self.counts.is_changed:
            self.counts = None
        if sitemaps and self.under_way == 0:
            self.sitemaps = None

    @property
    def sitemap_use(self) -> SitemapUse:
        """Return what is counted of its sitemaps."""
        if self.sitemaps is None:
            self.sitemaps = SitemapUse()
        return self.sitemaps

    def begin(self, kind: Kind) -> None:
        """A request to it was granted a slot."""
        limit = KINDS[kind].limit
        self.under_way += 1
        if limit is _PAGES:
            self.pages += 1
        elif limit is _SITEMAPS:
            self.sitemap_use.under_way += 1

    def end(self, kind: Kind) -> None:
        """A request has its result, or will have none."""
        limit = KINDS[kind].limit
        self.under_way -= 1
        if limit is _PAGES:
            self.pages -= 1
        elif limit is _SITEMAPS:
            self.sitemap_use.under_way -= 1

    def check(self) -> None:
        """Assert that its parts agree."""
        super().check()
        assert (self.due is not None) == (self.place is Place.HEAP), self
        assert self.reason is None or self.place is Place.HEAP, self
        assert self.place is not Place.IDLE, self
        assert self.place is not _UNSCHEDULED or self.is_spent, self
        assert 0 <= self.pages <= self.under_way, self
        assert self.on_wire >= (1 if self.place is Place.OCCUPIED else 0), self
        assert self.budget is None or self.counts is not None, self
        assert self.budget is None or self in self.budget.members, self
