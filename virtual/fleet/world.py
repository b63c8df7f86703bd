"""A fleet in virtual time: members, one modelled server, a web, faults, and the judge.

    World ─► SimulatedMember ─► FleetMember ─► Engine ─► Shard ─► FakeFetcher ─► the web's servers
                          └─► ValkeyCrawl ─► ModelLink ─► ModelServer (the real scripts)

One clock moves from event to event: the member that is due next has its turn, which takes no time.
One to which the server does not answer does nothing until its timeout is over; one to which it
answers slowly waits in the middle of its turn, while others have theirs (`aside`). Records go to
real files, in a folder for each member. The same seed gives the same run.

What can happen (`plan.Fault`): a member is killed, or stopped for a while and woken; its link is
cut in one direction or both, slow, or breaks in the middle of exchanges; a member joins; the server
is restarted, with or without its last second, is away for a while, or is lost and replaced by its
replica. Wall clocks of members are wrong by hours; the clock of the server is set and drifts.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import lru_cache, partial
from heapq import heappop, heappush
from itertools import chain, count
from math import inf
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch
from uuid import UUID

import msgspec

from mannerly.crawler.runtime.beginning import new_manifest
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store.base import Heartbeat
from mannerly.crawler.store.fleet import CrawlGone
from mannerly.crawler.store.valkey import heartbeats, leases
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.crawler.store.valkey.home import MEMBER_FILE, MemberFile
from mannerly.crawler.web.choices import ScopeMode
from mannerly.database.address import parse
from mannerly.database.ages import Ages
from virtual.fetcher import VirtualClock
from virtual.servers import Faults, Servers
from virtual.web import GeneratedWeb, place_of

from .aside import Aside
from .calm import Calm, on_grid
from .faults import FleetFaults
from .judge import FleetJudge
from .link import ModelLink
from .members import LOCATION, MachineClocks, SimulatedMember
from .plan import FleetOutcome
from .server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.crawler.model import Request
    from virtual.fetcher import FakeReply

    from .plan import Fault, Plan

CRAWL = "simulated"  # the id of the crawl
SKEW_S = 7200.0
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a new directory of its own is made there
SOON_S = 0.01  # between two turns of a member in a large world, at least
_HEARTBEATS = 10_000  # that are kept as they were read: every member reads those of all others
AIM_S = 1.0  # after a request: its answer, its commit and the links that follow


class _Arrived(NamedTuple):
    """A machine on which a member is about to begin."""

    number: int
    store: ValkeyCrawl
    clocks: MachineClocks


class World:
    """A fleet and everything around it."""

    def __init__(
        self, plan: Plan, *, seed: int, folder: Path, edits: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._plan = plan
        self._rng = random.Random(f"fleet {seed}")
        self._folder = folder
        self.clock = VirtualClock()
        self.server = ModelServer(self.clock, edits)
        self._seed = seed
        self.web = GeneratedWeb(
            hosts=plan.hosts,
            pages=plan.pages,
            crawl_delays_s=plan.crawl_delays_s,
            others=plan.others,
            host_fan_out=plan.host_fan_out,
            seed_hosts=plan.seed_hosts,
            seed=seed,
        )
        base = CrawlSettings()
        self._settings = replace(
            base,
            scope=ScopeMode.ANY,
            seeding="none",
            memory="none",
            text_digest="none",
            robots_limit=max(base.robots_limit, plan.hosts),
            politeness=replace(base.politeness, seed=seed, strategy="fixed", delay_s=plan.delay_s),
            governor=False,
        )
        politeness = self._settings.politeness
        self._servers = Servers(
            self.web,
            self.clock,
            politeness,
            faults=Faults(refusal=plan.refusals, retry_after_s=plan.retry_after_s),
            latency_s=0.15,
            step_s=0.0,
            seed=seed,
        )
        self.members: list[SimulatedMember] = []
        self._faults = FleetFaults(
            self.members,
            self.server,
            self.clock,
            self._rng,
            slow_s=plan.slow_s,
            at=self.at,
            join=self._join,
        )
        self.judge = FleetJudge(
            self.web,
            politeness.floor_s,
            was_heard=self._faults.was_heard,
            was_told=self._faults.was_told,
            was_lost=self._faults.was_lost,
        )
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._aimed: list[tuple[float, Fault]] = []  # for the next request after an instant
        self._order = count()
        self._numbers = count()
        self._boots = count()
        self._wiped: list[str] = []  # keys, or what they begin with
        self._create()
        self._calm: Calm | None = None
        if plan.is_calm:
            store = ValkeyCrawl.open(LOCATION, self._link(MachineClocks(self.clock, 0.0)))
            self._calm = self._faults.calm = Calm(
                self.members, self.server, self.clock, store, turn=self._turn_at, at=self.at
            )

    def run(self) -> FleetOutcome:
        """Run until every member has ended, or the time is over."""
        if self._plan.is_calm:
            self._join_all()
        else:
            for _ in range(self._plan.members):
                self._join()
        for number in range(self._plan.faults):
            at = self._rng.uniform(1.0, self._plan.busy_s)
            fault = self._rng.choice(self._plan.kinds)
            if self._plan.is_calm and number % 2:
                self._aimed.append((at, fault))
            else:
                self.at(at, partial(self._faults.happen, fault))
        self._aimed.sort(key=itemgetter(0), reverse=True)
        if self._plan.wiped_at is not None:
            self.at(self._plan.wiped_at, self._wipe)
        while self._events and self.clock.now < self._plan.duration_s:
            at, _, act = heappop(self._events)
            self.clock.now = max(self.clock.now, at)
            act()
        return self._outcome()

    # ------------------------------------------------------------------ members

    def _create(self) -> None:
        manifest = new_manifest(self._settings, list(self.web.seeds()), shards=self._plan.shards)
        manifest = replace(manifest, id=CRAWL)
        ValkeyCrawl.create(LOCATION, manifest, self._link(MachineClocks(self.clock, 0.0))).close()
        self.server.replicate()  # else a failover in the first seconds could lose the whole crawl

    def _link(self, clocks: MachineClocks) -> ModelLink:
        boot = next(self._boots)
        return ModelLink(
            self.server,
            parse(LOCATION),
            mono=clocks.now,
            wall=clocks.wall,
            ages=Ages(f"boot-{boot}", origin_s=1000.0 * boot),
            at=self.at,
            seed=f"{self._seed} {len(self.members)}",
        )

    def _join(self) -> None:
        if not self.server.is_up:
            self.at(self.clock.now + 5.0, self._join)
            return
        if self._wiped:
            return  # there is no crawl to join
        if self._calm is not None:
            self._calm.catch_up()
        self._begin(self._arrive())

    def _join_all(self) -> None:
        """Have the first members join, each of which knows of all others from the beginning."""
        arrived = [self._arrive() for _ in range(self._plan.members)]
        for number, store, clocks in arrived:
            heartbeat = Heartbeat(f"w{number}", "", 0, [], 0, clocks.wall(), None)
            store.server.call(*store.heartbeat_call(heartbeat.id, heartbeat))
        for each in arrived:
            self._begin(each)

    def _arrive(self) -> _Arrived:
        """Make the machine of a member, and open the crawl there."""
        number = next(self._numbers)
        clocks = MachineClocks(self.clock, self._rng.uniform(-SKEW_S, SKEW_S))
        home = self._home_of(number)
        home.mkdir()
        # A member's name decides which shards it takes: it is random unless it has one already.
        member = MemberFile(CRAWL, f"w{number}", LOCATION)
        (home / MEMBER_FILE).write_bytes(msgspec.json.encode(member))
        store = ValkeyCrawl.open(LOCATION, self._link(clocks))
        store.fleet.join(home)
        return _Arrived(number, store, clocks)

    def _begin(self, arrived: _Arrived) -> None:
        number, store, clocks = arrived
        assert isinstance(store.server, ModelLink)
        member = SimulatedMember(
            number,
            self._home_of(number),
            store,
            store.server,
            clocks,
            self._settings,
            lambda request: self._answer(number, request),
            self.clock,
        )
        self.members.append(member)
        self._faults.joined(member)
        if self._calm is not None:
            self._calm.joined(member)
        self._turn_at(member, self.clock.now)

    def _home_of(self, number: int) -> Path:
        return self._folder / f"member-{number}"

    def _turn_at(self, member: SimulatedMember, at: float) -> None:
        """Let a member have its next turn at an instant; one that is planned sooner stays."""
        if member.turn_at <= at and member.turn_at > self.clock.now:
            return
        member.turn_at = at
        member.ticket += 1
        self.at(at, partial(self._turn, member, member.ticket))

    def _turn(self, member: SimulatedMember, ticket: int) -> None:
        if not member.is_alive or ticket != member.ticket or member.link.aside is not None:
            return
        member.turn_at = -inf
        if (at := max(member.stopped_until, member.link.busy_until)) > self.clock.now:
            self._turn_at(member, at)
            return
        if self._calm is not None:
            self._calm.before_turn(member)
        lost = member.lost
        if member.link.is_slow:
            member.link.aside = Aside(member.turn)
            self._go_on(member, member.link.aside, lost)
        else:
            member.turn()
            self._turned(member, lost)

    def _go_on(self, member: SimulatedMember, aside: Aside, lost: int) -> None:
        """Go on with a turn that may wait for its server."""
        if member.link.aside is not aside:
            return  # it was killed
        at: float | None = member.stopped_until
        if member.stopped_until <= self.clock.now:
            at = aside.go()
        if at is not None:
            self.at(at, partial(self._go_on, member, aside, lost))
        else:
            member.link.aside = None
            self._turned(member, lost)

    def _turned(self, member: SimulatedMember, lost: int) -> None:
        """Note what a member has done in its turn; it had lost so many shards before."""
        if member.lost > lost:
            member.let_go.append(self.clock.now)
        if self._calm is not None:
            self._calm.after_turn(member)
        self._plan_turn(member)

    def _plan_turn(self, member: SimulatedMember) -> None:
        if member.is_alive and (at := member.wake_at()) < inf:
            at = max(at, self.clock.now + (SOON_S if self._calm else 1e-6))
            if self._calm is not None:
                at = on_grid(at, member.number if member.is_watchful else 0)
            self._turn_at(member, at)

    def _answer(self, member: int, request: Request) -> FakeReply:
        now = self.clock.now
        if self._aimed and now >= self._aimed[-1][0]:
            _, fault = self._aimed.pop()
            self.at(
                now + self._rng.uniform(0.0, AIM_S), partial(self._faults.happen, fault, member)
            )
        self.judge.sent(member, request, now)
        reply = self._servers.answer(request)
        self.judge.answered(member, request, reply, now)
        return reply

    def at(self, at: float, act: Callable[[], None]) -> None:
        """Have something done at an instant."""
        heappush(self._events, (at, next(self._order), act))

    def _wipe(self) -> None:
        """Wipe the crawl, as an operator does who was told that nobody works on it.

        The connection is lost after every second shard: nothing of these may be made again.
        """
        if not self.server.is_up:
            self.at(self.clock.now + 5.0, self._wipe)
            return
        store = ValkeyCrawl.open(LOCATION, self._link(MachineClocks(self.clock, 0.0)))
        wiped = range(0, self._plan.shards, 2)
        store.server.change("DEL", *store.keys.of_crawl)
        store.wipe_shards(wiped)
        keys = [key for key in store.keys.of_crawl if key != store.keys.arrivals]  # of all shards
        self._wiped = [*keys, *(store.keys.of_shard(shard, "") for shard in wiped)]
        self.server.replicate()

    # ------------------------------------------------------------------ the end

    def _outcome(self) -> FleetOutcome:
        return self._outcome_of_wiped() if self._wiped else self._outcome_of_crawl()

    def _outcome_of_wiped(self) -> FleetOutcome:
        """Return the figures of a crawl that was wiped: its members should have noticed."""
        errors = [member.error or "" for member in self.members]
        return FleetOutcome(
            is_finished=not any(member.is_alive for member in self.members),
            virtual_s=self.clock.now,
            requests=self._servers.seen.requests,
            records=0,
            lost=0,
            duplicates=0,
            missing=0,
            excused=self.judge.excused,
            refused_writes=sum(member.coordinator.lost for member in self.members),
            calls=self.server.calls,
            fingerprint=self._servers.seen.fingerprint,
            broken=self.judge.broken,
            errors=[error for error in errors if error and CrawlGone.__name__ not in error],
            remade=self.server.count(self._wiped),
        )

    def _outcome_of_crawl(self) -> FleetOutcome:
        store = ValkeyCrawl.open(LOCATION, self._link(MachineClocks(self.clock, 0.0)))
        store.read_from([member.home for member in self.members])
        recorded: Counter[str] = Counter()
        known: set[str] = set()
        missing = 0
        for shard in range(self._plan.shards):
            with store.read(shard) as reader:
                recorded.update(record.url for _, record in reader.pages())
                known.update(each.url for each in (*reader.skipped(), *reader.given_up()))
                missing += reader.missing
        store.close()
        expected = self._expected(recorded)
        return FleetOutcome(
            is_finished=any(member.is_finished for member in self.members),
            virtual_s=self.clock.now,
            requests=self._servers.seen.requests,
            records=sum(recorded.values()),
            lost=len(expected - recorded.keys() - known),
            duplicates=sum(recorded.values()) - len(recorded),
            missing=missing,
            excused=self.judge.excused,
            refused_writes=sum(member.coordinator.lost for member in self.members),
            calls=self.server.calls,
            fingerprint=self._servers.seen.fingerprint,
            broken=self.judge.broken + Counter(takeover=self._faults.late_takeovers),
            errors=[member.error for member in self.members if member.error],
        )

    def _expected(self, recorded: Counter[str]) -> set[str]:
        """Return the seeds, and the links of recorded pages."""
        links = (self.web.links(*place_of(url)) for url in recorded)
        return {*self.web.seeds(), *chain.from_iterable(links)}


def _in_memory() -> str | None:
    """Return a directory whose files are in memory, if the system has one."""
    return str(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None


def _tokens(seed: int) -> Callable[[], UUID]:
    """Return what draws the tokens of claims, so that a seed repeats a run."""
    rng = random.Random(f"tokens {seed}")
    return lambda: UUID(int=rng.getrandbits(128), version=4)


def simulate_fleet(plan: Plan, *, seed: int, edits: Sequence[tuple[str, str]] = ()) -> FleetOutcome:
    """Run a fleet in virtual time, and return its figures.

    Args:
        plan: the size of the fleet, and how much goes wrong.
        seed: of the web, of the faults and of the instants at which they happen.
        edits: errors to plant in the scripts (`server`).

    Raises:
        ValueError: no script contains the text of an edit.
    """
    with (
        TemporaryDirectory(prefix="mannerly-fleet-", dir=_in_memory()) as folder,
        patch.object(leases, "uuid4", _tokens(seed)),
        patch.object(
            heartbeats, "_read_heartbeat", lru_cache(_HEARTBEATS)(heartbeats._read_heartbeat)
        ),
    ):
        world = World(plan, seed=seed, folder=Path(folder), edits=edits)
        try:
            outcome = world.run()
        finally:
            for member in world.members:
                if member.is_alive or member.link.aside is not None:
                    member.kill()
    if unused := [old for old, scripts in world.server.planted.items() if not scripts]:
        raise ValueError(f"no script contains what was to be edited: {unused[0]!r}")
    return outcome
