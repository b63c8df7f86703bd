"""A fleet in virtual time: members, one modelled server, a web, faults, and the judge.

    World ─► Member ─► FleetWorker ─► Engine ─► Shard ─► FakeFetcher ─► servers of the web
                          └─► ValkeyCrawl ─► Link ─► ModelServer (the real scripts)

One clock moves from event to event: the member that is due next has its turn, which takes no time.
One that waits for the server's answer in vain does nothing until its timeout is over. Records go to
real files, in a folder for each member. The same seed gives the same run.

What can happen (`Fault`): a member is killed, or stopped for a while and woken; its link is cut in
one direction or both; a member joins; the server is restarted, with or without its last second, or
is away for a while. Wall clocks of members are wrong by hours.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from heapq import heappop, heappush
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.crawler.fetch.fake import FakeFetcher, VirtualClock
from mannerly.crawler.runtime.beginning import new_manifest
from mannerly.crawler.runtime.fleet_worker import FleetWorker
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store.base import StoreError
from mannerly.crawler.store.fleet import LEASE_S, RENEW_S, CrawlGone, StoreAway
from mannerly.crawler.store.valkey.address import parse
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.crawler.store.valkey.home import CARD, MemberCard
from mannerly.crawler.web.scope import ScopeMode
from mannerly.simulation.crawl_servers import Faults, Servers
from mannerly.simulation.crawl_web import GeneratedWeb, place_of

from .judge import FleetJudge
from .link import Cut, Link
from .server import EPOCH_S, ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.crawler.fetch.body_memory import BodyMemory
    from mannerly.crawler.fetch.fake import FakeReply
    from mannerly.crawler.model import Request

CRAWL = "simulated"  # the id of the crawl
LOCATION = "redis://127.0.0.1:6379/0#simulated"
LOOK_S = 1.0  # between two looks of a member at the store
COMMIT_S = 1.0  # from an answer to its commit, at most
SKEW_S = 7200.0
DAY_S = 86_400.0


class Fault(Enum):
    """Something that goes wrong in a fleet."""

    KILL = "kill"
    STOP = "stop"  # SIGSTOP, for up to three leases
    CUT = "cut"  # the link of a member, in one direction or both
    JOIN = "join"
    RESTART = "restart"  # of the server, with everything it had
    FORGET = "forget"  # a restart that lost the last second
    AWAY = "away"  # the server, for some seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The size of a simulated fleet, and how much goes wrong."""

    members: int = 4
    hosts: int = 24
    pages: int = 12
    shards: int = 12
    faults: int = 6  # at random instants of the first `busy_s` seconds
    kinds: tuple[Fault, ...] = tuple(Fault)
    busy_s: float = 120.0
    delay_s: float = 2.0
    crawl_delays_s: tuple[float, ...] = (0.0, 0.0, 5.0, 25.0)
    retry_after_s: int = 40
    refusals: float = 0.03
    duration_s: float = DAY_S


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
    broken: Counter[str]
    errors: list[str]  # of members that ended with one

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
        )


class Clocks:
    """The clocks of one machine: its monotonic clock began at 0, its wall clock may be wrong."""

    def __init__(self, clock: VirtualClock, skew_s: float) -> None:
        self._clock = clock
        self._skew_s = skew_s

    def now(self) -> float:
        """Return the monotonic time."""
        return self._clock.now

    def wall(self) -> float:
        """Return what this machine takes for the time of day."""
        return EPOCH_S + self._clock.now + self._skew_s


class _VirtualWorker(FleetWorker):
    """A member's worker, with a clock and a fetcher in virtual time."""

    def __init__(
        self, store: ValkeyCrawl, settings: CrawlSettings, clocks: Clocks, fetcher: FakeFetcher
    ) -> None:
        self._clocks = clocks
        self._fake = fetcher
        super().__init__(store, settings, patience_s=DAY_S)

    def _make_clock(self) -> Clocks:
        return self._clocks

    def _make_fetcher(self, _workers: int, _memory: BodyMemory) -> FakeFetcher:
        return self._fake


class Member:
    """One member: a real `FleetWorker` on a link of its own."""

    def __init__(
        self,
        number: int,
        home: Path,
        link: Link,
        clocks: Clocks,
        settings: CrawlSettings,
        answer: Callable[[Request], FakeReply],
        clock: VirtualClock,
    ) -> None:
        self.number = number
        self.home = home
        self.link = link
        self.is_alive = True
        self.is_finished = False
        self.error: str | None = None
        self.stopped_until = 0.0
        self.unheard: list[tuple[float, float]] = []  # times in which nobody can hear it
        self._clocks = clocks
        self._fetcher = FakeFetcher(clock, answer)
        self._next_look = clocks.now()
        store = ValkeyCrawl.open(LOCATION, link)
        store.fleet.join(home)
        self.store = store
        self.worker = _VirtualWorker(store, settings, clocks, self._fetcher)

    def turn(self) -> None:
        """Do what is due now."""
        worker, now = self.worker, self._clocks.now()
        try:
            worker.engine.turn(0.0)
            if now >= self._next_look:
                self._next_look = now + LOOK_S
                worker.look(now)
                if worker.is_idle:
                    self.is_finished = True
                    self.end()
                elif not worker.engine.in_flight and worker.is_hopeless:
                    worker.engine.give_up_hopeless()
        except (StoreAway, CrawlGone, StoreError) as error:
            self.error = f"member {self.number}: {type(error).__name__}: {error}"
            self.end()

    def wake_at(self) -> float:
        """Return when the next turn is due."""
        at = min(self._next_look, self._clocks.now() + self.worker.engine.due_in_s(LOOK_S))
        if (answer_at := self._fetcher.next_at) is not None:
            at = min(at, answer_at)
        return max(at, self.link.busy_until, self.stopped_until)

    def end(self) -> None:
        """End as a command does."""
        self.is_alive = False
        with suppress(StoreError):
            self.worker.close()
        self.store.close()

    def kill(self) -> None:
        """End without a word: the server hears nothing more of it."""
        self.is_alive = False
        self.link.cut = Cut.BOTH
        with suppress(StoreError):
            self.worker.abandon()  # its files are closed as they are
        self.store.close()


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
        self.web = GeneratedWeb(
            hosts=plan.hosts,
            pages=plan.pages,
            crawl_delays_s=plan.crawl_delays_s,
            others=2,
            seed=seed,
        )
        base = CrawlSettings()
        self._settings = replace(
            base,
            scope=ScopeMode.ANY,
            seeding="none",
            memory="none",
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
        self.judge = FleetJudge(self.web, politeness.floor_s, self._was_heard)
        self.members: list[Member] = []
        self._forgotten: list[tuple[float, float]] = []  # what came then may not be known
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._numbers = count()
        self._create()

    def run(self) -> FleetOutcome:
        """Run until every member has ended, or the time is over."""
        for _ in range(self._plan.members):
            self._join()
        for _ in range(self._plan.faults):
            at = self._rng.uniform(1.0, self._plan.busy_s)
            fault = self._rng.choice(self._plan.kinds)
            self._at(at, partial(self._happen, fault))
        while self._events and self.clock.now < self._plan.duration_s:
            at, _, act = heappop(self._events)
            self.clock.now = max(self.clock.now, at)
            act()
        return self._outcome()

    # ------------------------------------------------------------------ members

    def _create(self) -> None:
        manifest = new_manifest(self._settings, list(self.web.seeds()), shards=self._plan.shards)
        manifest = replace(manifest, id=CRAWL)
        ValkeyCrawl.create(LOCATION, manifest, self._link(Clocks(self.clock, 0.0))).close()

    def _link(self, clocks: Clocks) -> Link:
        return Link(self.server, parse(LOCATION), mono=clocks.now, wall=clocks.wall)

    def _join(self) -> None:
        if not self.server.is_up:
            self._at(self.clock.now + 5.0, self._join)
            return
        number = next(self._numbers)
        clocks = Clocks(self.clock, self._rng.uniform(-SKEW_S, SKEW_S))
        home = self._folder / f"member-{number}"
        home.mkdir()
        # A member's name decides which shards it takes: it is random unless it has one already.
        card = MemberCard(CRAWL, f"w{number}", LOCATION)
        (home / CARD).write_bytes(msgspec.json.encode(card))
        member = Member(
            number,
            home,
            self._link(clocks),
            clocks,
            self._settings,
            lambda request: self._answer(number, request),
            self.clock,
        )
        self.members.append(member)
        self._turn_at(member, self.clock.now)

    def _turn_at(self, member: Member, at: float) -> None:
        self._at(at, lambda: self._turn(member))

    def _turn(self, member: Member) -> None:
        if not member.is_alive:
            return
        if (at := max(member.stopped_until, member.link.busy_until)) > self.clock.now:
            self._turn_at(member, at)
            return
        member.turn()
        if member.is_alive:
            self._turn_at(member, max(member.wake_at(), self.clock.now + 1e-6))

    def _answer(self, member: int, request: Request) -> FakeReply:
        now = self.clock.now
        self.judge.sent(member, request, now)
        reply = self._servers.answer(request)
        self.judge.answered(member, request, reply, now)
        return reply

    def _was_heard(self, member: int, at: float) -> bool:
        """Return whether what a member was told at an instant was committed for good."""
        spans = [*self.members[member].unheard, *self._forgotten]
        return not any(first <= at <= last for first, last in spans)

    # ------------------------------------------------------------------ faults

    def _at(self, at: float, act: Callable[[], None]) -> None:
        heappush(self._events, (at, next(self._order), act))

    def _happen(self, fault: Fault) -> None:
        now, rng = self.clock.now, self._rng
        alive = [each for each in self.members if each.is_alive]
        if not alive:
            return
        member = rng.choice(alive)
        match fault:
            case Fault.KILL if len(alive) > 1:
                member.unheard.append((now - COMMIT_S, float("inf")))
                member.kill()
            case Fault.STOP:
                until = now + rng.uniform(1.0, 3 * LEASE_S)
                member.stopped_until = until
                member.unheard.append((now - COMMIT_S, until + COMMIT_S))
            case Fault.CUT:
                member.link.cut = rng.choice([Cut.THERE, Cut.BACK, Cut.BOTH])
                until = now + rng.uniform(1.0, 3 * LEASE_S)
                member.unheard.append((now - COMMIT_S, until + 2 * LEASE_S))
                self._at(until, lambda: self._mend(member))
            case Fault.JOIN:
                self._join()
            case Fault.RESTART | Fault.FORGET:
                self.server.restart(loses_last_second=fault is Fault.FORGET)
                if fault is Fault.FORGET:
                    # An owner learns from its next write that the server has forgotten some.
                    self._forgotten.append((now - 2 * COMMIT_S, now + RENEW_S + COMMIT_S))
            case Fault.AWAY:
                self.server.is_up = False
                until = now + rng.uniform(1.0, 2 * LEASE_S)
                self._forgotten.append((now - COMMIT_S, until + LEASE_S))
                self._at(until, self._come_back)

    def _mend(self, member: Member) -> None:
        if member.is_alive:
            member.link.cut = Cut.NONE

    def _come_back(self) -> None:
        self.server.is_up = True

    # ------------------------------------------------------------------ the end

    def _outcome(self) -> FleetOutcome:
        store = ValkeyCrawl.open(LOCATION, self._link(Clocks(self.clock, 0.0)))
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
            refused_writes=sum(member.worker.lost for member in self.members),
            calls=self.server.calls,
            broken=self.judge.broken,
            errors=[member.error for member in self.members if member.error],
        )

    def _expected(self, recorded: Counter[str]) -> set[str]:
        """Return the seeds, and the links of recorded pages."""
        links = (self.web.links(*place_of(url)) for url in recorded)
        return {*self.web.seeds(), *chain.from_iterable(links)}


def simulate_fleet(plan: Plan, *, seed: int, edits: Sequence[tuple[str, str]] = ()) -> FleetOutcome:
    """Run a fleet in virtual time, and return its figures.

    Args:
        plan: the size of the fleet, and how much goes wrong.
        seed: of the web, of the faults and of the instants at which they happen.
        edits: errors to plant in the scripts (`server`).

    Raises:
        ValueError: no script contains the text of an edit.
    """
    with TemporaryDirectory(prefix="mannerly-fleet-") as folder:
        world = World(plan, seed=seed, folder=Path(folder), edits=edits)
        try:
            outcome = world.run()
        finally:
            for member in world.members:
                if member.is_alive:
                    member.kill()
    if unused := [old for old, scripts in world.server.planted.items() if not scripts]:
        raise ValueError(f"no script contains what was to be edited: {unused[0]!r}")
    return outcome
