"""The values that cross the core's border: what was asked, what was decided, what came back.

Instants are float seconds on any monotonic scale, chosen by the caller; durations end in `_s`.
The types that are made for every request (`Permit`, `Grant`, `Sample`) are plain slotted classes,
the other frequent ones (`Response`, `Wait`, `Refuse`) named tuples: both are made in less than half
the time that a frozen `Value` takes.
This file knows no host, no strategy and no clock.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .host import HostState

Instant: TypeAlias = float

NEVER: Instant = -inf  # one object for all: `-inf` in an expression makes a new one each time

NO_HEADERS: Mapping[str, str] = {}


class ErrorKind(StrEnum):
    """Why there was no HTTP status. The kind decides; the message of an error never does."""

    TIMEOUT = "timeout"
    CONNECT = "connect"
    DNS = "dns"
    TLS = "tls"
    RESET = "reset"
    PROTOCOL = "protocol"
    TOO_LARGE = "too_large"


class Response(NamedTuple):
    """What came back for a permit: a status, or the kind of error that stood in its place.

    Header names are case-insensitive; lower-case ones are found fastest. `received_at` is wall
    time (seconds since 1970) and only serves a Retry-After date in a response without `Date`.
    """

    status: int | None = None
    latency_s: float = 0.0
    headers: Mapping[str, str] = NO_HEADERS
    error: ErrorKind | str | None = None
    bytes: int = 0
    received_at: float | None = None


class Outcome(Enum):
    """What a response says about our pace. A cheap error page is not good news: NEUTRAL."""

    OK = "ok"
    THROTTLE = "throttle"  # the server said "slower": 429, or 503/403 with Retry-After
    OVERLOAD = "overload"  # the server is in trouble: 5xx, timeout, connect, TLS, DNS, reset
    NEUTRAL = "neutral"  # it answered, but says nothing about load: 3xx, 4xx


# Python 3.11 takes 50 ns to look up a member of an enum, ten times per request.
OK, THROTTLE, OVERLOAD, NEUTRAL = Outcome


class Reason(StrEnum):
    """Why a request has to wait, or is refused. One clock or counter each."""

    PACE = "pace"
    CRAWL_DELAY = "crawl_delay"
    MIN_DELAY = "min_delay"
    RATE_LIMIT_HEADER = "rate_limit_header"
    BANDWIDTH = "bandwidth"
    DURATION_FACTOR = "duration_factor"
    RETRY_AFTER = "retry_after"
    BACKOFF = "backoff"
    IN_FLIGHT = "in_flight"
    TRIAL = "trial"
    BREAKER_OPEN = "breaker_open"
    HALF_OPEN = "half_open"
    PARKED = "parked"
    PAUSED = "paused"
    RETIRED = "retired"


class Permit:
    """The right to start one request. It is reported or cancelled exactly once."""

    __slots__ = (
        "generation",
        "host",
        "in_flight",
        "is_abandoned",
        "is_probe",
        "is_settled",
        "previous_base",
        "sent_at",
    )

    def __init__(
        self,
        host: HostState,
        sent_at: Instant,
        in_flight: int,
        generation: int,
        previous_base: Instant,
        is_probe: bool,  # noqa: FBT001
    ) -> None:
        self.host = host
        self.sent_at = sent_at
        self.in_flight = in_flight  # requests to the host under way, this one included
        self.generation = generation  # of the breaker, when the permit was given
        self.previous_base = previous_base  # where the pacing clock stood: cancelling restores it
        self.is_probe = is_probe  # holds the half-open breaker's only lease
        self.is_settled = False
        self.is_abandoned = False  # its lease ran out: a late report is void

    def __repr__(self) -> str:
        state = "settled" if self.is_settled else "open"
        return f"<Permit {self.host.key} sent_at={self.sent_at:.3f} {state}>"


class Grant:
    """Start the request now."""

    __slots__ = ("permit",)
    __match_args__ = ("permit",)

    def __init__(self, permit: Permit) -> None:
        self.permit = permit

    def __repr__(self) -> str:
        return f"Grant({self.permit!r})"


class Wait(NamedTuple):
    """Not yet: ask again at `until`. None means that only a report or cancel can free a place."""

    until: Instant | None
    reason: Reason


class Refuse(NamedTuple):
    """Not here, not soon: the breaker is open, or the host is parked, paused or retired."""

    until: Instant | None
    reason: Reason


Decision: TypeAlias = Grant | Wait | Refuse


class Sample:
    """One finished request, as a strategy sees it."""

    __slots__ = ("done_at", "in_flight", "latency_s", "outcome", "retry_after_s", "sent_at")

    def __init__(
        self,
        outcome: Outcome,
        sent_at: Instant,
        done_at: Instant,
        latency_s: float,
        in_flight: int,
        retry_after_s: float | None = None,
    ) -> None:
        self.outcome = outcome
        self.sent_at = sent_at
        self.done_at = done_at
        self.latency_s = latency_s
        self.in_flight = in_flight  # at the moment of sending, this request included
        self.retry_after_s = retry_after_s
