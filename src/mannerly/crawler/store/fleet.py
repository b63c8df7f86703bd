"""The contract of a crawl that several runs share, on one machine or on many.

A store that can be shared has a `Fleet` (`CrawlStore.fleet`); one run at a time works on any other.
A run joins the crawl and becomes one *member* or several of them, a process each. Members claim and
release single shards while the crawl runs; nothing else of a run knows of the others.

**Leases.** A claim holds for `LEASE_S`, and is prolonged by `renew`. An owner that cannot be heard
any more loses its shards when that time is over, as other members count it, and one of them may
claim them. So that there are never two senders, `ShardStore.sure_until` is an instant on the
owner's monotonic clock, `MARGIN_S` before the lease could end, counted from before the message that
prolonged it was sent: nothing is sent to a host of the shard after it. The next owner gets
the records of its hosts, with instants that hold on the new owner's clocks; the gap in force of
each host counts from the claim.

**Fencing.** Every claim has a new random token. What an owner writes is applied only while its
token is the shard's, all of it or nothing; otherwise `LeaseLost` is raised, and the owner forgets
the shard: whatever it had not committed is fetched again by the next owner.

**An answer that is lost** leaves open whether a commit was applied. The same batch is offered again
(`StoreAway` says so), and a store recognises one that it has applied.

**Finished** is agreed from what each shard says of itself. `rest` notes that the owner has nothing
to do or under way in a shard, if the store sees nothing queued and no order that was not acted on.
Whatever reaches the shard afterwards ends its rest. The crawl is finished when all shards rest at
one instant.

**Rhythm.** An exchange with the store costs the same for one page and for a hundred, so a member
writes seldom: `Fleet.rhythm` says how often. A shard whose hosts have run dry waits for the links
in its own batch, so a member commits earlier when many of its shards do (`Rhythm.early_s`). Pages
that wait for a commit take no places of requests (`concurrency`): half a second of a fast crawl
would take them all. They have a limit of their own (`Rhythm.uncommitted`), which calls for a
commit.

**Pages** of `--max-urls` are granted to members in chunks. What a member that died had not used is
lost to the crawl's limit, never granted twice.

Times are seconds. `now` is an instant of this process's monotonic clock.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mannerly.database.errors import StoreAway as StoreAway  # noqa: PLC0414 - see `base`

from .base import StoreError
from .exchange import StoreExchange

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mannerly.politeness.model import Instant

    from .base import Heartbeat


class Rhythm(NamedTuple):
    """The times between two commits, and between two looks for links of other shards.

    The defaults are those of a store on a disk of this machine.
    """

    tick_s: float = 0.25
    commit_after_s: float = 0.02  # the work a crash may cost; more while commits are slow
    commit_within_s: float = inf  # whatever share of the time commits take
    early_s: float = 0.0  # between commits if nothing can be started before the next; 0: at once
    uncommitted: int = 0  # pages that may wait for a commit; 0: they count for `concurrency`


# A page is committed within a second of its last byte, the commit's own time included.
SHARED = Rhythm(tick_s=0.5, commit_after_s=0.5, commit_within_s=0.7, early_s=0.05, uncommitted=1024)


class Unclaimed(NamedTuple):
    """Shards that have no owner."""

    released: list[int]  # or never claimed
    lapsed: list[int]  # their lease has ended; the owner may renew it until another one claims them
    withheld: list[int]  # after a restart of the store: a claim would fail for some time


class FleetFigures(NamedTuple):
    """The store of a crawl as one process sees it: plain values for metrics."""

    leases: int = 0  # shards that it owns
    takeovers: int = 0  # shards that it claimed after their owner was lost, so far
    commits: int = 0  # writes to its shards, so far
    refused: int = 0  # writes that came too late, so far: another owner was there
    waited_s: float = 0.0  # for answers of the server, so far
    memory_bytes: int = 0  # of the server
    memory_limit_bytes: int = 0  # 0: none

    def plus(self, other: FleetFigures) -> FleetFigures:
        """Return the figures of two processes that use one server."""
        return FleetFigures(
            leases=self.leases + other.leases,
            takeovers=self.takeovers + other.takeovers,
            commits=self.commits + other.commits,
            refused=self.refused + other.refused,
            waited_s=self.waited_s + other.waited_s,
            memory_bytes=max(self.memory_bytes, other.memory_bytes),
            memory_limit_bytes=max(self.memory_limit_bytes, other.memory_limit_bytes),
        )


class LeaseLost(StoreError):  # noqa: N818 - a state of the shard
    """The shard has another owner by now, or none: nothing was written."""


class CrawlGone(StoreError):  # noqa: N818 - a state of the server
    """The crawl is not in the store any more: it was wiped, or the server lost its data."""


class Fleet(StoreExchange, Protocol):
    """The members of a crawl and its shards, for one run."""

    member: str  # the name of this run among all runs on all machines; "" before `join`
    rhythm: Rhythm  # in which a member writes to the store
    # When leases can be prolonged that have ended, and that the store withholds after a restart.
    withheld_until: Instant | None

    def join(self, home: Path, segments: Path | None = None) -> str:
        """Work on the crawl with `home` as the data directory of this run; return its name.

        The directory keeps the name, so that a run that is started again is the same member, and
        the segments, unless `segments` names another place. One process at a time has it.

        Raises:
            StoreInUse: another process has the directory.
            CrawlGone: the directory belongs to a crawl that the store does not have.
            StoreError: it belongs to another crawl or holds something else.
        """

    def heard(self, within_s: float) -> list[Heartbeat]:
        """Return the heartbeats that were renewed lately, by what this process can know."""

    def unclaimed(self, among: Sequence[int] | None = None) -> Unclaimed:
        """Return the shards that have no owner now, of all shards or among these."""

    def renew(self, heartbeat: Heartbeat, *, now: Instant) -> list[int]:
        """Prolong the claims of this process and show its heartbeat; return the shards it has lost.

        Raises:
            StoreAway: nothing was prolonged, as far as is known.
        """

    def rest(self, shards: Sequence[int]) -> set[int]:
        """Note that there is nothing to do in shards of this process; return where that holds.

        Call it only while no request of these shards is under way and nothing is uncommitted. One
        that has another owner by now is not among the answer.
        """

    def finished(self) -> bool:
        """Return whether every shard rests: the crawl is finished. Once it is, it stays so until
        seeds are added or URLs are brought back.
        """

    def take_pages(self, wanted: int) -> int:
        """Return how many of `wanted` pages may be started: less if `--max-urls` is near."""

    def recall(self, host: str | None) -> int:
        """Leave URLs whose record cannot be found from here to the owners of their shards.

        They are fetched again at the next `RetryUrls` with `lost`. `host`: only those of one host.
        Returns how many pages are among them.

        Raises:
            StoreError: it is not known where records are.
        """

    def figures(self) -> FleetFigures:
        """Return what this process knows of the store. Asks the server once."""

    def return_pages(self, pages: int) -> None:
        """Give back pages that were taken and not started."""
