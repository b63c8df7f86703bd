"""The values of the core's interface: responses, permits, decisions and outcomes.

Instants are float seconds on any monotonic scale, chosen by the caller; durations end in `_s`.
Types that are created for every request are plain slotted classes (`Permit`, `Grant`, `Sample`) or
named tuples (`Response`, `Wait`, `Refuse`): creating one takes less than half the time of a frozen
dataclass. This module knows no host, strategy or clock.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from .host import HostState

Instant: TypeAlias = float


class Now(NamedTuple):
    """One moment on both scales."""

    mono: Instant
    wall: float


NEVER: Instant = -inf  # one shared object: `-inf` in an expression creates a new one each time

NO_HEADERS: Mapping[str, str] = {}


class ErrorKind(StrEnum):
    """Kind of failure that left a request without an HTTP status."""

    TIMEOUT = "timeout"
    CONNECT = "connect"
    DNS = "dns"
    TLS = "tls"
    RESET = "reset"
    PROTOCOL = "protocol"
    TOO_LARGE = "too_large"


class Response(NamedTuple):
    """The result of a request: an HTTP status, or the kind of error if there was none.

    Header names are case-insensitive; lower-case names are found fastest. `received_at` is wall
    time (seconds since 1970). It is used only for a date in Retry-After or X-RateLimit-Reset, and
    only if the response has no valid `Date` header. With `is_from_cache` the latency is left out of
    the statistics: it says nothing about the load of the server behind the cache.

    `url` and `body_digest` (any hashable value that is equal for equal bodies; None for an empty
    body) help to tell refusals from the answers of single pages (`doubts`): give them if you can.
    """

    status: int | None = None
    latency_s: float = 0.0
    headers: Mapping[str, str] = NO_HEADERS
    error: ErrorKind | str | None = None
    bytes: int = 0
    received_at: float | None = None
    is_from_cache: bool = False
    url: str | None = None
    body_digest: Hashable = None


class Outcome(Enum):
    """The class of a response, by what it says about the request rate."""

    OK = "ok"
    THROTTLE = "throttle"  # slow down: 429, or 5xx/403 with Retry-After
    OVERLOAD = "overload"  # the server has problems: 5xx, timeout, connect, TLS, DNS, reset
    NEUTRAL = "neutral"  # says nothing about load: 3xx, 4xx. A fast error page is no success
    UNDECIDED = "undecided"  # its page's own, or a refusal: ask again later, that decides


# Module constants, because Python 3.11 takes 50 ns to look up an enum member, ten times a request.
OK, THROTTLE, OVERLOAD, NEUTRAL, UNDECIDED = Outcome


class Reason(StrEnum):
    """The limit because of which a request has to wait or is refused."""

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
    SHARED = "shared"  # another crawl is sending to the host
    ROBOTS = "robots"  # its robots.txt is unreachable, and is asked for again


class Permit:
    """The right to start one request. Report or cancel it exactly once."""

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
        self.in_flight = in_flight  # requests in flight to the host, this one included
        self.generation = generation  # the breaker's generation when the permit was granted
        self.previous_base = previous_base  # the host's `base_at` before; `cancel` restores it
        self.is_probe = is_probe  # holds the only lease of a half-open breaker
        self.is_settled = False
        self.is_abandoned = False  # the lease expired: a late report teaches nothing

    def __repr__(self) -> str:
        state = "settled" if self.is_settled else "open"
        return f"<Permit {self.host.key} sent_at={self.sent_at:.3f} {state}>"


class Grant:
    """The request may start now."""

    __slots__ = ("permit",)
    __match_args__ = ("permit",)

    def __init__(self, permit: Permit) -> None:
        self.permit = permit

    def __repr__(self) -> str:
        return f"Grant({self.permit!r})"


class Wait(NamedTuple):
    """Not yet: ask again at `until`. None: ask again after the next report or cancel."""

    until: Instant | None
    reason: Reason


class Refuse(NamedTuple):
    """Not allowed: the breaker is open, or the host is parked, paused or retired.

    `until` is the instant at which to ask again; None: not before `revive`.
    """

    until: Instant | None
    reason: Reason


Decision: TypeAlias = Grant | Wait | Refuse


class Sample:
    """One finished request, as a strategy gets it."""

    __slots__ = (
        "done_at",
        "in_flight",
        "latency_s",
        "outcome",
        "retry_after_s",
        "sent_at",
        "status",
    )

    def __init__(
        self,
        outcome: Outcome,
        sent_at: Instant,
        done_at: Instant,
        latency_s: float,
        in_flight: int,
        retry_after_s: float | None = None,
        status: int | None = None,
    ) -> None:
        self.outcome = outcome
        self.status = status
        self.sent_at = sent_at
        self.done_at = done_at
        self.latency_s = latency_s
        self.in_flight = in_flight  # when it was sent, this request included
        self.retry_after_s = retry_after_s
