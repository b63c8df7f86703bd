"""Totals of a crawl so far, small enough to send every quarter second; they can be added up.

Nothing here is kept in the store, whose own counts are the exact ones. Single hosts are kept only
for the summary, and only a few hundred of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from math import frexp
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.web.caches import CacheState

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from mannerly.crawler import events as crawl_events
    from mannerly.crawler.host_view import HostStatus, HostView
    from mannerly.crawler.store.fleet import FleetFigures

# Hosts whose refusals and latency are counted for the summary; patterns that are held back.
REMARKABLE = 200
NOT_MODIFIED = 304  # the answer for a page that is as its record says
_STEPS = 8  # of latencies, between one power of two and the next
OTHER_SECTIONS = "other sections"  # of a site, for all that are beyond REMARKABLE


@dataclass(slots=True)
class HostTally:
    """The counts of one host, for the summary."""

    fetched: int = 0
    refused: int = 0
    latency_s: float = 0.0  # summed
    smallest_gap_s: float = float("inf")
    asked_gap_s: float = 0.0  # the gap in force at the smallest gap
    early: int = 0  # requests that were sent too early; must stay 0

    def add(self, other: HostTally) -> None:
        """Add another process's counts."""
        _add_counts(self, other)
        self.latency_s += other.latency_s
        if other.smallest_gap_s < self.smallest_gap_s:
            self.smallest_gap_s = other.smallest_gap_s
            self.asked_gap_s = other.asked_gap_s


FETCHING_BY = ("ready", "pace", "busy", "other")  # the counts of hosts that are fetching


@dataclass(slots=True)
class Waits:
    """The number of hosts that have something queued, by what they wait for."""

    ready: int = 0
    pace: int = 0
    busy: int = 0  # as many requests under way as the host takes
    other: int = 0  # for their robots.txt, or for a place in the scheduler
    states: Counter[HostStatus] = field(default_factory=Counter)  # of those that are not fetching
    next_in_s: float | None = None

    @property
    def fetching(self) -> int:
        """Return how many hosts are asked as often as their pace allows."""
        return self.ready + self.pace + self.busy + self.other

    @property
    def active(self) -> int:
        """Return how many hosts these are."""
        return self.fetching + self.states.total()

    def add(self, other: Waits) -> None:
        """Add another shard's counts; the next instant is the earlier one."""
        _add_counts(self, other)
        dues = [due for due in (self.next_in_s, other.next_in_s) if due is not None]
        self.next_in_s = min(dues) if dues else None


class Latencies(Counter[int]):
    """Response times in steps of about an eighth: a number a step, whatever their number."""

    def note(self, latency_s: float, times: int = 1) -> None:
        """Count one response, or several of the same time."""
        mantissa, exponent = frexp(latency_s)
        self[_STEPS * exponent + int(2 * _STEPS * mantissa) - _STEPS] += times

    def within(self, share: float) -> float:
        """Return the seconds within which this share of all responses came; 0 if there are none."""
        left = share * self.total()
        step = 0
        for step in sorted(self):
            left -= self[step]
            if left <= 0:
                break
        else:
            return 0.0
        return self.seconds(step)

    @staticmethod
    def seconds(step: int) -> float:
        """Return the middle of a step."""
        exponent, part = divmod(step, _STEPS)
        return float((0.5 + (part + 0.5) / (2 * _STEPS)) * 2.0**exponent)


@dataclass(slots=True)
class Warmth:
    """The visits to some pages: how many of them the cache had, before and after."""

    pages: int = 0  # each variant of a page counts
    hits_before: int = 0  # at the first visit
    hits_after: int = 0  # at the last one
    uncacheable: int = 0
    unknown: int = 0  # no cache has named itself
    failed: int = 0
    before: Latencies = field(default_factory=Latencies)  # to the first byte
    after: Latencies = field(default_factory=Latencies)

    def add(self, other: Warmth) -> None:
        """Add the visits to other pages."""
        _add_counts(self, other)

    @property
    def cacheable(self) -> int:
        """Return the number of pages that a cache can have."""
        return self.pages - self.uncacheable - self.unknown - self.failed

    def visit(self, event: crawl_events.PageVisited) -> None:
        """Add one visit."""
        is_first, is_hit = event.number == 1, event.state is CacheState.HIT
        self.pages += is_first
        self.hits_before += is_first and is_hit
        self.hits_after += is_hit
        self.uncacheable += event.state is CacheState.UNCACHEABLE
        self.unknown += event.state is CacheState.UNKNOWN
        self.failed += event.state is None
        if event.latency_s > 0.0 and event.state is not None:
            if is_first:
                self.before.note(event.latency_s)
            if is_hit or not is_first:
                self.after.note(event.latency_s)


class OldestRequest(NamedTuple):
    """The request that has waited for its answer for longest."""

    waited_s: float
    timeout_s: float
    attempt: int  # the first is 1
    attempts: int  # at most


@dataclass(slots=True)
class Present:
    """The state of a run at one moment. Nothing of it is left when the run has ended."""

    in_flight: int = 0
    undelivered: int = 0  # pages that wait for the program that iterates over the crawl
    queued: int = 0
    hosts: int = 0  # with something queued
    scheduled: int = 0  # hosts in the heap
    robots_in_flight: int = 0
    parsing: int = 0  # big pages that wait for a parse helper, or are read by one
    body_bytes: int = 0  # memory that bodies take
    waits: Waits = field(default_factory=Waits)
    host_views: list[HostView] = field(default_factory=list)  # of a few hosts, while watched
    oldest: OldestRequest | None = None  # of the requests in flight
    latest_url: str = ""  # of the requests that were started
    trouble: str | None = None  # why the crawl waits, if the operator has to act
    idle_reason: str | None = None  # why a worker of a shared crawl has nothing to fetch
    is_paused: bool = False
    grace_s: float | None = None  # left for the requests under way: the crawl was stopped

    def add(self, other: Present) -> None:
        """Add the state of another process."""
        _add_counts(self, other)
        self.waits.add(other.waits)
        self.host_views += other.host_views
        self.trouble = self.trouble or other.trouble
        self.idle_reason = self.idle_reason or other.idle_reason
        self.is_paused |= other.is_paused
        self.latest_url = other.latest_url or self.latest_url
        if self.oldest is None or (other.oldest is not None and other.oldest > self.oldest):
            self.oldest = other.oldest


@dataclass(slots=True)
class RequestCounts:
    """Requests that were refused, waited, came again, were called off, or were sent too early."""

    throttles: int = 0
    retry_afters: int = 0  # refusals that said for how long to wait
    retries: int = 0
    cancellations: int = 0  # requests that were granted and not sent
    concurrency_changes: int = 0  # of the maximum of requests in flight to a host
    audited: int = 0  # requests that were compared with the gap in force (`host.audit`)
    too_early: int = 0  # of these: sent before it was over; must stay 0
    blocked: dict[str, Latencies] = field(default_factory=dict)  # waits of hosts, by reason

    def add(self, other: RequestCounts) -> None:
        """Add another process's counts."""
        _add_counts(self, other)
        for reason, waits in other.blocked.items():
            self.blocked.setdefault(reason, Latencies()).update(waits)


@dataclass(slots=True)
class Extracted:
    """The results of the extract function."""

    items: int = 0
    errors: int = 0  # pages on which it failed
    first_error: str | None = None
    lacking: Counter[str] = field(default_factory=Counter)  # pages without a handler, by label

    def add(self, other: Extracted) -> None:
        """Add another process's results."""
        _add_counts(self, other)
        self.first_error = self.first_error or other.first_error


@dataclass(slots=True)
class LoopTimes:
    """The time that loops took for what is not fetching."""

    commits: Latencies = field(default_factory=Latencies)
    commit_s: float = 0.0  # the latest commit
    stalls: int = 0  # times that a loop did not poll its sockets for a second or more

    def add(self, other: LoopTimes) -> None:
        """Add another process's times."""
        _add_counts(self, other)
        self.commit_s = max(self.commit_s, other.commit_s)


@dataclass(slots=True)
class Stats:
    """Totals of one process, or of all."""

    fetched: int = 0  # pages with a response, whatever the status
    bytes: int = 0
    statuses: Counter[int] = field(default_factory=Counter)  # of pages
    # Answers to all other requests (robots.txt, lists, requisites, tries that are repeated); 0: no
    # answer.
    other_statuses: Counter[int] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)  # pages without a response, by error
    # URLs of pages that failed (`model.is_failed`), by error or status
    failures: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)  # by reason
    # queued in this run, to be fetched after others: by host and pattern (`web.patterns`)
    held_back: Counter[str] = field(default_factory=Counter)
    # Most URLs in a row, in one process, that ended in an error or an answer of 400 or above, or
    # whose host was given up.
    longest_failures: int = 0
    crashed: int = 0  # pages that ended the processes that read them: their links are missing
    robots: int = 0  # robots.txt and lists (sitemaps, public indexes) fetched
    requisites: int = 0  # answered, which pages need to be shown or have asked for in a browser
    requisites_failed: int = 0  # of these: without an answer, or with a status of 400 or above
    rendered: int = 0  # pages that a browser has shown
    render_errors: Counter[str] = field(default_factory=Counter)  # of these, by error
    shells: Counter[str] = field(default_factory=Counter)  # pages that seem to need it, by host
    found: int = 0  # new URLs
    hosts_known: int = 0  # that the crawl has met, done and given up included
    hosts_given_up: int = 0
    latencies: Latencies = field(default_factory=Latencies)
    tallies: dict[str, HostTally] = field(default_factory=dict)
    warmth: dict[str, Warmth] = field(default_factory=dict)  # of pages, by section
    variants: dict[str, Warmth] = field(default_factory=dict)  # the same, by variant
    fleet: FleetFigures | None = None  # of a crawl that several runs share, while it is watched
    shards_lost: int = 0  # that another run has taken over, or that were given back unwritten
    mended: list[str] = field(default_factory=list)  # what was wrong in the store, in words
    now: Present = field(default_factory=Present)
    requests: RequestCounts = field(default_factory=RequestCounts)
    extracted: Extracted = field(default_factory=Extracted)
    loop: LoopTimes = field(default_factory=LoopTimes)

    @property
    def is_left_to_others(self) -> bool:
        """Return whether other workers of a shared crawl have all that is left to fetch."""
        now = self.now
        return now.idle_reason is not None and not (now.queued or now.in_flight)

    @property
    def pages(self) -> int:
        """Return the number of page records: answered or failed, as the store counts them."""
        return self.fetched + sum(self.failed.values())

    def add(self, other: Stats) -> None:
        """Add another process's totals to these."""
        longest = max(self.longest_failures, other.longest_failures)
        _add_counts(self, other)
        self.longest_failures = longest
        self.now.add(other.now)
        self.requests.add(other.requests)
        self.extracted.add(other.extracted)
        self.loop.add(other.loop)
        self.mended += other.mended
        for mine, others in ((self.warmth, other.warmth), (self.variants, other.variants)):
            for name, warmth in others.items():
                mine.setdefault(name, Warmth()).add(warmth)
        for host, tally in other.tallies.items():
            self.tallies.setdefault(host, HostTally()).add(tally)
        if other.fleet is not None:
            self.fleet = other.fleet if self.fleet is None else self.fleet.plus(other.fleet)

    def ended(self) -> Stats:
        """Return what stays of these totals when their run has ended: the counts."""
        return replace(self, now=Present())

    def tally(self, host: str) -> HostTally | None:
        """Return the host's line in the summary; None when there are enough of them."""
        tally = self.tallies.get(host)
        if tally is None and len(self.tallies) < REMARKABLE:
            tally = self.tallies[host] = HostTally()
        return tally


def _add_counts(mine: DataclassInstance, other: DataclassInstance) -> None:
    """Add the whole numbers and counters of another value of the same class."""
    for each in fields(mine):
        count = getattr(mine, each.name)
        if isinstance(count, Counter):
            count.update(getattr(other, each.name))
        elif type(count) is int:
            setattr(mine, each.name, count + getattr(other, each.name))
