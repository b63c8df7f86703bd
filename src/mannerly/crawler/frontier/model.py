"""The values that the frontier and the shard exchange.

    take ─► Taken(starts, dropped, unknown, refills)
            starts    to be fetched now, then `done`
            dropped   will never be fetched, with the reason
            unknown   hosts whose entries cannot be judged yet: `wake` them when they can be
            refills   to be read from the store, then `refill`

This file knows no host state and no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mannerly.crawler.host.inflight import InFlight
    from mannerly.crawler.model import Entry, Judgement, RobotsRequest
    from mannerly.politeness.model import Decision, Instant, Reason
    from mannerly.politeness.snapshot import HostSnapshot

Judge: TypeAlias = "Callable[[Entry, Instant], Judgement]"
"""Returns whether an entry may be fetched. It changes nothing and makes no callback."""


class Need(NamedTuple):
    """A host whose entries cannot be judged: its record or an origin's rules are not in memory."""

    host: str
    origin: str


class Refill(NamedTuple):
    """A read of the store: up to `limit` of the host's entries past `after`."""

    host: str
    after: tuple[int, int]
    limit: int


class Taken(NamedTuple):
    """The result of one `take`."""

    starts: list[InFlight]
    dropped: list[tuple[Entry, str]]
    unknown: list[Need]
    refills: list[Refill]


class Dropped(NamedTuple):
    """The queues of hosts that were given up: URLs in the store, and requests for robots.txt."""

    entries: int
    requests: list[RobotsRequest]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierSnapshot:
    """The number of hosts in each place, and of queued URLs. `ready` is at most ten thousand."""

    active: int  # hosts in the scheduler
    inactive: int  # hosts that wait for a place in it
    heaped: int  # in the heap: they wait for an instant
    ready: int  # of these: could be asked now
    waiting: Mapping[Reason, int]  # of these: what the host answered when it was last asked
    busy: int  # as many requests under way as the host takes
    need_refill: int  # wait for a read of the store
    robots_line: int  # wait until fewer robots.txt are being fetched
    asleep: int  # paused, given up, or waiting for a robots.txt
    queued: int
    in_memory: int  # of these
    retries: int  # of these
    next_due: Instant | None


class Pacing(Protocol):
    """As much of the politeness core as the frontier asks."""

    def reserve(self, host: str, *, now: Instant) -> Decision: ...

    def ready_at(self, host: str, *, now: Instant) -> Instant: ...

    def host(self, host: str) -> HostSnapshot | None: ...
