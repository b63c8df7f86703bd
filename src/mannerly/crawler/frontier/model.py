"""The values that the frontier and the engine exchange.

    Entry or Errand ─► judge ─► GO | Drop(reason) | First(errand) | Later(until)
    take            ─► Start(item, permit)     to be fetched now, then `done`
    needs_refill    ─► Refill                  to be read from the store, then `refill`

An errand is a request that no store knows (robots.txt, a hop of its redirects): it takes a slot
like any other, it dies with the process, and whoever needed it asks anew. This file knows no host
state and no time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from mannerly.crawler.model import Entry, InFlight, Judgement, RobotsRequest

if TYPE_CHECKING:
    from mannerly.politeness.model import Decision, Instant, Reason
    from mannerly.politeness.snapshot import HostSnapshot


Judge: TypeAlias = Callable[[Entry], Judgement]


class Taken(NamedTuple):
    """What one `take` decided."""

    starts: list[InFlight]
    dropped: list[tuple[Entry, str]]


class Refill(NamedTuple):
    """A wish to the store: up to `limit` of the host's entries past `after`."""

    host: str
    after: tuple[int, int]
    limit: int


class Dropped(NamedTuple):
    """What a retired host leaves behind: URLs in the store, and errands that somebody waits for."""

    entries: int
    errands: list[RobotsRequest]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierSnapshot:
    """Where every host is, and how much is left. `ready` is counted up to ten thousand."""

    active: int  # hosts in the scheduler
    inactive: int  # hosts that wait for a place in it
    heaped: int  # in the heap: they wait for an instant
    ready: int  # of these: could be asked now
    waiting: Mapping[Reason, int]  # of these: what the host answered when it was last asked
    busy: int  # as many requests under way as the host takes
    hungry: int  # wait for a read of the store
    errand_line: int  # wait until fewer errands are under way
    asleep: int  # paused, retired, or waiting for an errand elsewhere
    in_flight: int
    errands: int  # of these
    queued: int
    in_memory: int  # of these
    retries: int  # of these
    next_due: Instant | None


class Pacing(Protocol):
    """As much of the politeness core as the frontier asks."""

    def reserve(self, host: str, *, now: Instant) -> Decision: ...

    def ready_at(self, host: str, *, now: Instant) -> Instant: ...

    def host(self, host: str) -> HostSnapshot | None: ...
