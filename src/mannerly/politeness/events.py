"""The events of the politeness core, as frozen values.

The core passes each event to its `on_event` callback; logs, counters and metrics are built from
them (`drivers.observe`). An event says what changed and when (`at`, in the time scale of the
caller); it never contains crawled text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .model import Instant


@dataclass(frozen=True, slots=True)
class Slowed:
    """The delay grew, because the server refused, failed or became slow."""

    host: str
    at: Instant
    delay_s: float
    error_streak: int


@dataclass(frozen=True, slots=True)
class SpedUp:
    """The delay shrank, because the server accepted the present rate."""

    host: str
    at: Instant
    delay_s: float


@dataclass(frozen=True, slots=True)
class Probing:
    """A rate above the known limit is being tried."""

    host: str
    at: Instant
    delay_s: float


@dataclass(frozen=True, slots=True)
class Throttled:
    """The server asked for fewer requests: 429, or a refusal with Retry-After or found to be one.

    `wait_s` is the wait in force then: until the next request, at least the delay between two.
    """

    host: str
    at: Instant
    status: int | None
    retry_after_s: float | None
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Recovered:
    """The first success after one or more refusals."""

    host: str
    at: Instant
    delay_s: float


@dataclass(frozen=True, slots=True)
class Parked:
    """The server asked for a pause beyond `max_retry_after_s`: requests are refused until then."""

    host: str
    at: Instant
    until: Instant


@dataclass(frozen=True, slots=True)
class LongCrawlDelay:
    """robots.txt asks for a delay beyond `max_crawl_delay_s`; `delay_s` is the one that is kept."""

    host: str
    at: Instant
    asked_s: float
    delay_s: float


@dataclass(frozen=True, slots=True)
class Opened:
    """The breaker opened: no request until `until`. `times` counts consecutive openings."""

    host: str
    at: Instant
    until: Instant
    times: int


@dataclass(frozen=True, slots=True)
class HalfOpened:
    """The breaker is half-open: it lets one probe through at a time."""

    host: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Closed:
    """The probes succeeded: the breaker is closed again."""

    host: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Stalled:
    """The host has not answered with a success for long: consider giving it up."""

    host: str
    at: Instant
    throttles: int


@dataclass(frozen=True, slots=True)
class Retired:
    """The host is not contacted any more until it is revived."""

    host: str
    at: Instant
    reason: str


@dataclass(frozen=True, slots=True)
class Revived:
    """A retired or paused host is contacted again."""

    host: str
    at: Instant


@dataclass(frozen=True, slots=True)
class ConcurrencyChanged:
    """The strategy changed the maximum number of requests in flight."""

    host: str
    at: Instant
    concurrency: int
    previous: int


@dataclass(frozen=True, slots=True)
class Retried:
    """A request will be repeated at `due`."""

    host: str
    at: Instant
    due: Instant
    attempt: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A permit was given back without a report."""

    host: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Evicted:
    """The state of an idle host was dropped; what was learned is still returned by `drain`."""

    host: str
    at: Instant


Event: TypeAlias = (
    Slowed
    | SpedUp
    | Probing
    | Throttled
    | Recovered
    | Parked
    | LongCrawlDelay
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
    """Ignore the event: the default of `on_event`."""
