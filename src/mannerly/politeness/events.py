"""Every change of mind about a host, as a frozen value.

The core hands each one to the function it was given; logs, counters and metrics are folds over
this stream, made at the edge (`drivers.observe`). An event says what changed and when, in the
caller's own time scale; it never carries crawled text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .value import Value

if TYPE_CHECKING:
    from .model import Instant


class Slowed(Value):
    """The gap grew, because the server refused, failed or became slow."""

    host: str
    at: Instant
    delay_s: float
    error_streak: int


class SpedUp(Value):
    """The gap shrank: the host has shown that it can take more."""

    host: str
    at: Instant
    delay_s: float


class Probing(Value):
    """A rate above the known-good one is being tried."""

    host: str
    at: Instant
    delay_s: float


class Throttled(Value):
    """The server refused a request and means our pace (429, or a refusal with Retry-After)."""

    host: str
    at: Instant
    status: int | None
    retry_after_s: float | None


class Recovered(Value):
    """The first success after a run of refusals: the host takes requests again."""

    host: str
    at: Instant
    delay_s: float


class Parked(Value):
    """The server asked for a longer pause than anyone should wait for; it is honoured."""

    host: str
    at: Instant
    until: Instant


class Opened(Value):
    """The breaker opened: no request until `until`. `times` counts openings in a row."""

    host: str
    at: Instant
    until: Instant
    times: int


class HalfOpened(Value):
    """The breaker lets a single probe through."""

    host: str
    at: Instant


class Closed(Value):
    """The probes succeeded: the breaker is closed again."""

    host: str
    at: Instant


class Stalled(Value):
    """The host refuses and refuses: whoever owns the job may want to give it up."""

    host: str
    at: Instant
    throttles: int


class Retired(Value):
    """The host is not contacted any more, until somebody revives it."""

    host: str
    at: Instant
    reason: str


class Revived(Value):
    """A retired host is taken up again."""

    host: str
    at: Instant


class ConcurrencyChanged(Value):
    """The number of requests that may be under way at the host changed."""

    host: str
    at: Instant
    concurrency: int
    previous: int


class Retried(Value):
    """A request will be tried again at `due`."""

    host: str
    at: Instant
    due: Instant
    attempt: int


class Cancelled(Value):
    """A permit was given back unused."""

    host: str
    at: Instant


class Evicted(Value):
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
