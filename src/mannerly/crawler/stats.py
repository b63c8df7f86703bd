"""What happened so far: a fold over what the shards did, small enough to send every quarter second.

Every process folds its own and sends it to the parent, which adds them up; nothing here is kept in
the store, whose own counts are the exact ones. Hosts are kept only where they are remarkable.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mannerly.politeness.model import Reason

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant

    from .frontier.model import FrontierSnapshot

# Whoever is full, paused or retired waits for no instant, so it is not in the heap.
PACED = (
    *(Reason.PACE, Reason.CRAWL_DELAY, Reason.MIN_DELAY, Reason.BANDWIDTH),
    *(Reason.RATE_LIMIT_HEADER, Reason.DURATION_FACTOR),
)
HELD = (Reason.RETRY_AFTER, Reason.BACKOFF, Reason.PARKED, Reason.TRIAL)
BROKEN = (Reason.BREAKER_OPEN, Reason.HALF_OPEN)
REMARKABLE = 200  # hosts whose refusals and latency are told in the summary


@dataclass(slots=True)
class HostTally:
    """One host, for the summary."""

    fetched: int = 0
    refused: int = 0
    latency_s: float = 0.0  # summed
    smallest_gap_s: float = float("inf")
    asked_gap_s: float = 0.0  # at the smallest gap: what was in force

    def add(self, other: HostTally) -> None:
        """Take another process's counts over."""
        self.fetched += other.fetched
        self.refused += other.refused
        self.latency_s += other.latency_s
        if other.smallest_gap_s < self.smallest_gap_s:
            self.smallest_gap_s = other.smallest_gap_s
            self.asked_gap_s = other.asked_gap_s


@dataclass(slots=True)
class Waits:
    """Where the hosts are: the answer to "stuck, or just polite?"."""

    ready: int = 0
    pace: int = 0
    retry_after: int = 0
    breaker: int = 0
    busy: int = 0
    other: int = 0
    next_in_s: float | None = None


@dataclass(slots=True)
class Stats:
    """Totals of one process, or of all."""

    fetched: int = 0  # pages with an answer, whatever the status
    bytes: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)  # by reason
    skipped: Counter[str] = field(default_factory=Counter)  # by reason
    throttles: int = 0
    retries: int = 0
    robots: int = 0  # robots.txt and sitemaps fetched
    in_flight: int = 0
    queued: int = 0
    hosts: int = 0
    found: int = 0  # new URLs
    waits: Waits = field(default_factory=Waits)
    tallies: dict[str, HostTally] = field(default_factory=dict)
    commit_s: float = 0.0  # the latest commit
    trouble: str | None = None  # what the crawl waits for, and somebody should see to
    too_early: int = 0  # our own verdict: starts closer than the operator's floor; must stay 0

    def add(self, other: Stats) -> None:
        """Add another process's totals to these."""
        for name in ("fetched", "bytes", "throttles", "retries", "robots", "in_flight", "queued"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.hosts += other.hosts
        self.found += other.found
        self.too_early += other.too_early
        self.commit_s = max(self.commit_s, other.commit_s)
        self.trouble = self.trouble or other.trouble
        self.statuses.update(other.statuses)
        self.failed.update(other.failed)
        self.skipped.update(other.skipped)
        for host, tally in other.tallies.items():
            self.tallies.setdefault(host, HostTally()).add(tally)
        self._add_waits(other.waits)

    def _add_waits(self, other: Waits) -> None:
        waits = self.waits
        for name in ("ready", "pace", "retry_after", "breaker", "busy", "other"):
            setattr(waits, name, getattr(waits, name) + getattr(other, name))
        dues = [due for due in (waits.next_in_s, other.next_in_s) if due is not None]
        waits.next_in_s = min(dues) if dues else None


def waits_of(seen: FrontierSnapshot, now: Instant) -> Waits:
    """Where the hosts are, from the frontier's own account."""
    waiting = seen.waiting
    # A host says why it waits only when it is asked too early; the others wait on their pace.
    paced = seen.heaped - seen.ready - sum(waiting.values())
    paced += sum(waiting.get(reason, 0) for reason in PACED)
    return Waits(
        ready=seen.ready,
        pace=max(0, paced),
        retry_after=sum(waiting.get(reason, 0) for reason in HELD),
        breaker=sum(waiting.get(reason, 0) for reason in BROKEN),
        busy=seen.busy,
        other=seen.hungry + seen.errand_line + seen.asleep,
        next_in_s=None if seen.next_due is None else max(0.0, seen.next_due - now),
    )
