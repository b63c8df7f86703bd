"""The plan of a simulated fleet, what goes wrong in it, and the figures of a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from .members import DAY_S

if TYPE_CHECKING:
    from collections import Counter


class Fault(Enum):
    """Something that goes wrong in a fleet."""

    KILL = "kill"
    STOP = "stop"  # SIGSTOP, for up to three leases
    CUT = "cut"  # the link of a member, in one direction or both
    JOIN = "join"
    RESTART = "restart"  # of the server, with everything it had
    FORGET = "forget"  # a restart that lost the last second
    AWAY = "away"  # the server, for some seconds
    # The server is lost, and its replica takes its place after some seconds: it lacks the last
    # ones. Some members reach one that is read-only before they find it.
    FAILOVER = "failover"
    SLOW = "slow"  # a call takes seconds, of one member or of all (`link`)
    BREAK = "break"  # connections are lost in the middle of exchanges, of one member or of all
    # A member joins and claims; the server forgets that, and the member is stopped before it learns
    # so: it takes itself for the owner.
    UNKNOWN_OWNER = "unknown owner"
    CLOCK = "clock"  # of the server: it is set ahead or back by a minute or an hour
    DRIFT = "drift"  # of the server's clock: it gains or loses 5 % from now on


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The size of a simulated fleet, and how much goes wrong."""

    members: int = 4
    hosts: int = 24
    pages: int = 12
    shards: int = 12
    faults: int = 6  # at random instants of the first `busy_s` seconds
    kinds: tuple[Fault, ...] = tuple(Fault)
    # Of slow calls: up to more than the client's timeout, the margin of a lease, and the lease.
    slow_s: tuple[float, float] = (0.05, 25.0)
    busy_s: float = 120.0
    delay_s: float = 2.0
    others: int = 2  # links of each page to random pages
    host_fan_out: int | None = None  # hosts that a home page leads to, besides; None: 4
    seed_hosts: int = 1  # hosts whose home page is a seed
    crawl_delays_s: tuple[float, ...] = (0.0, 0.0, 5.0, 25.0)
    retry_after_s: int = 40
    refusals: float = 0.03
    duration_s: float = DAY_S
    # When the crawl is wiped while members work on it; the wipe ends half-way.
    wiped_at: float | None = None
    is_calm: bool = False  # whether members whose looks would find nothing do not look (`calm`)


class FleetOutcome(NamedTuple):
    """The figures of one run."""

    is_finished: bool
    virtual_s: float
    requests: int
    records: int
    lost: int  # URLs that should be known, and are not recorded, skipped or given up
    duplicates: int  # URLs with more than one record
    missing: int  # records that no folder has
    excused: int  # pages that were fetched again because of a fault
    refused_writes: int  # shards that a member lost
    calls: int  # commands that the server answered
    fingerprint: int  # hash over all requests and their instants: equal for equal seeds
    broken: Counter[str]
    errors: list[str]  # of members that ended with one
    remade: int = 0  # keys of a wiped crawl that members made again

    @property
    def is_sound(self) -> bool:
        """Return whether no promise was broken."""
        return (
            self.is_finished
            and not self.lost
            and not self.duplicates
            and not self.missing
            and not self.broken
            and not self.errors
            and not self.remade
        )
