"""The standing of a host: what it is doing, or what it waits for and until when.

The live view, `hosts` and `watch` show the same values. A running crawl makes them from memory
(`shard.looks`), a stored one from the records of its hosts (`inspection.hosts`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from mannerly.politeness.model import Reason

ASKED = (Reason.RETRY_AFTER, Reason.PARKED)
BACKING_OFF = (Reason.BACKOFF, Reason.TRIAL, Reason.BREAKER_OPEN, Reason.HALF_OPEN)

NO_ROBOTS = "robots.txt cannot be had"  # a problem of a host: nothing is fetched before it is known


class HostStatus(StrEnum):
    """The state of a host."""

    FETCHING = "fetching"  # it is asked as often as its pace allows
    ASKED_TO_WAIT = "asked_to_wait"  # by Retry-After
    BACKING_OFF = "backing_off"  # after refusals or failures
    SHARED = "shared"  # another crawl is sending to it; it waits for its turn
    PAUSED = "paused"  # by the operator
    GIVEN_UP = "given_up"
    DONE = "done"  # nothing is queued


class LimitedBy(StrEnum):
    """The limit that a host's pace comes from."""

    UNKNOWN = ""  # it is still being learned
    LEARNED = "learned"  # the lowest rate that the host refused
    ROBOTS = "robots"  # Crawl-delay
    MAX_RATE = "max"  # the operator's maximum


class HostStanding(NamedTuple):
    """The standing of one host at one moment."""

    host: str
    state: HostStatus
    queued: int
    delay_s: float = 0.0  # between two requests; 0: not known
    next_in_s: float | None = None  # until it may be asked; None: not known, or never
    limited_by: LimitedBy = LimitedBy.UNKNOWN
    limit: float = 0.0  # requests a second, if it was learned
    problem: str = ""  # the latest refusal or failure: a status or an error
    times: int = 0  # such answers in a row
    retry_after_s: float | None = None  # what the latest one asked for
    failing_s: float = 0.0  # since the first of them
    fetched: int = 0
    refused: int = 0
    held_by: str = ""  # the name of the crawl that is sending to it
    p95_latency_s: float = 0.0  # of its latest answers; 0: not known
    error_rate: float = 0.0  # share of failures among them
    tokens: float = 0.0  # requests that could start at once
    success_streak: int = 0  # answers since the latest refusal or failure
    error_streak: int = 0  # refusals since the latest success

    @property
    def needs_s(self) -> float:
        """Return the least time until its queue is empty: queue x pace, or until it comes back."""
        return max(self.queue_s, self.next_in_s or 0.0)

    @property
    def queue_s(self) -> float:
        """Return how long its queue takes at its pace."""
        return self.queued * self.delay_s


def limited_by(
    delay_s: float, *, crawl_delay_s: float, least_gap_s: float, floor_s: float
) -> LimitedBy:
    """Return which limit a delay comes from."""
    if delay_s <= crawl_delay_s:
        return LimitedBy.ROBOTS
    if delay_s <= least_gap_s * 1.001:
        return LimitedBy.MAX_RATE
    return LimitedBy.LEARNED if floor_s else LimitedBy.UNKNOWN
