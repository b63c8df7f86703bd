"""Every change of mind about a host, as a frozen value.

The core hands each one to the function it was given; logs, counters and metrics are folds over
this stream, made at the edge (`drivers.observe`). An event says what changed and when, in the
caller's own time scale; it never carries crawled text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .model import Instant


@dataclass(frozen=True, slots=True)
class Slowed:
    """The gap grew, because the server refused, failed or became slow."""

    host: str
    at: Instant
    delay_s: float
    error_streak: int


@dataclass(frozen=True, slots=True)
class SpedUp:
    """The gap shrank: the host has shown that it can take more."""

    host: str
    at: Instant
    delay_s: float


@dataclass(frozen=True, slots=True)
class Probing:
    """A rate above the known-good one is being tried."""

    host: str
    at: Instant
    delay_s: float


@dataclass(frozen=True, slots=True)
class Throttled:
    """The server refused a request and means our pace (429, or a refusal with Retry-After)."""

    host: str
    at: Instant
    status: int | None
    retry_after_s: float | None


@dataclass(frozen=True, slots=True)
class Recovered:
    """The first success after a run of refusals: the host takes requests again."""

    host: str
    at: Instant
    delay_s: float


@dataclass(frozen=True, slots=True)
class Parked:
    """The server asked for a longer pause than anyone should wait for; it is honoured."""

    host: str
    at: Instant
    until: Instant


@dataclass(frozen=True, slots=True)
class Opened:
    """The breaker opened: no request until `until`. `times` counts openings in a row."""

    host: str
    at: Instant
    until: Instant
    times: int


@dataclass(frozen=True, slots=True)
class HalfOpened:
    """The breaker lets a single probe through."""

    host: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Closed:
    """The probes succeeded: the breaker is closed again."""

    host: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Stalled:
    """The host refuses and refuses: whoever owns the job may want to give it up."""

    host: str
    at: Instant
    throttles: int


@dataclass(frozen=True, slots=True)
class Retired:
    """The host is not contacted any more, until somebody revives it."""

    host: str
    at: Instant
    reason: str


@dataclass(frozen=True, slots=True)
class Revived:
    """A retired host is taken up again."""

    host: str
    at: Instant


@dataclass(frozen=True, slots=True)
class ConcurrencyChanged:
    """The number of requests that may be under way at the host changed."""

    host: str
    at: Instant
    concurrency: int
    previous: int


@dataclass(frozen=True, slots=True)
class Retried:
    """A request will be tried again at `due`."""

    host: str
    at: Instant
    due: Instant
    attempt: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A permit was given back unused."""

    host: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Evicted:
    """An idle host's state was dropped; what it had learned goes to the memory first."""

    host: str
    at: Instant


Event: TypeAlias = (
    Slowed
    | SpedUp
    | Probing
    | Throttled
    | Recovered
    | Parked
    | Opened
    | HalfOpened
    | Closed
    | Stalled
    | Retired
    | Revived
    | ConcurrencyChanged
    | Retried
    | Cancelled
    | Evicted
)


def ignore(event: Event) -> None:
    """Drop the event: what the core does when nobody listens."""
