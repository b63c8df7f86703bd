"""A fleet in virtual time: members, one modelled server, a web, faults, and the judge.

    World ─► SimulatedMember ─► FleetWorker ─► Engine ─► Shard ─► FakeFetcher ─► the web's servers
                          └─► ValkeyCrawl ─► ModelLink ─► ModelServer (the real scripts)

One clock moves from event to event: the member that is due next has its turn, which takes no time.
One to which the server does not answer does nothing until its timeout is over. Records go to real
files, in a folder for each member. The same seed gives the same run.

What can happen (`plan.Fault`): a member is killed, or stopped for a while and woken; its link is
cut in one direction or both; a member joins; the server is restarted, with or without its last
second, or is away for a while. Wall clocks of members are wrong by hours.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from itertools import chain, count
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.fetch.fake import VirtualClock
from mannerly.crawler.runtime.beginning import new_manifest
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store.fleet import LEASE_S, MARGIN_S, RENEW_S
from mannerly.crawler.store.valkey.address import parse
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.crawler.store.valkey.home import CARD, MemberCard
from mannerly.crawler.web.scope import ScopeMode
from mannerly.simulation.crawl_servers import Faults, Servers
from mannerly.simulation.crawl_web import GeneratedWeb, place_of

from .calm import SURVEY_S, Calm
from .judge import FleetJudge
from .link import Cut, ModelLink
from .members import LOCATION, MachineClocks, SimulatedMember
from .plan import Fault, FleetOutcome
from .server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.crawler.fetch.fake import FakeReply
    from mannerly.crawler.model import Request

    from .judge import ToldMember
    from .plan import Plan

CRAWL = "simulated"  # the id of the crawl
COMMIT_S = 1.0  # from an answer to its commit, at most
LEARN_S = RENEW_S + COMMIT_S  # until an owner that runs learns that the server has forgotten writes
SKEW_S = 7200.0


_OF_THE_SERVER = (Fault.RESTART, Fault.FORGET, Fault.AWAY, Fault.UNKNOWN_OWNER)


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
        self.judge = FleetJudge(
            self.web,
            politeness.floor_s,
            was_heard=self._was_heard,
            was_told=self._was_told,
            was_lost=self._was_lost,
        )
        self.members: list[SimulatedMember] = []
        self._unheard: list[tuple[float, float]] = []  # times in which the server hears no member
        self._forgotten: list[tuple[float, float]] = []  # times of which it may know nothing
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._numbers = count()
        self._create()
        self._calm: Calm | None = None
        if plan.is_calm:
            store = ValkeyCrawl.open(LOCATION, self._link(MachineClocks(self.clock, 0.0)))
            self._calm = Calm(self.members, self.server, self.clock, store, self._turn_at)
            self._at(SURVEY_S, self._beat)

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
        ValkeyCrawl.create(LOCATION, manifest, self._link(MachineClocks(self.clock, 0.0))).close()

    def _link(self, clocks: MachineClocks) -> ModelLink:
        return ModelLink(self.server, parse(LOCATION), mono=clocks.now, wall=clocks.wall)

    def _join(self) -> None:
        if not self.server.is_up:
            self._at(self.clock.now + 5.0, self._join)
            return
        number = next(self._numbers)
        clocks = MachineClocks(self.clock, self._rng.uniform(-SKEW_S, SKEW_S))
        home = self._folder / f"member-{number}"
        home.mkdir()
        # A member's name decides which shards it takes: it is random unless it has one already.
        card = MemberCard(CRAWL, f"w{number}", LOCATION)
        (home / CARD).write_bytes(msgspec.json.encode(card))
        member = SimulatedMember(
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

    def _turn_at(self, member: SimulatedMember, at: float) -> None:
        """Let a member have its next turn at an instant; one that is planned sooner stays."""
        if member.turn_at <= at and member.turn_at > self.clock.now:
            return
        member.turn_at = at
        member.ticket += 1
        self._at(at, partial(self._turn, member, member.ticket))

    def _beat(self) -> None:
        assert self._calm is not None
        self._calm.beat()
        if any(member.is_alive for member in self.members):
            self._at(self.clock.now + SURVEY_S, self._beat)

    def _turn(self, member: SimulatedMember, ticket: int) -> None:
        if not member.is_alive or ticket != member.ticket:
            return
        member.turn_at = -inf
        if (at := max(member.stopped_until, member.link.busy_until)) > self.clock.now:
            self._turn_at(member, at)
            return
        lost = member.lost
        member.turn()
        if member.lost > lost:
            member.let_go.append(self.clock.now)
        if self._calm is not None:
            self._calm.after_turn(member)
        self._plan_turn(member)

    def _plan_turn(self, member: SimulatedMember) -> None:
        if member.is_alive and (at := member.wake_at()) < inf:
            self._turn_at(member, max(at, self.clock.now + 1e-6))

    def _answer(self, member: int, request: Request) -> FakeReply:
        now = self.clock.now
        self.judge.sent(member, request, now)
        reply = self._servers.answer(request)
        self.judge.answered(member, request, reply, now)
        return reply

    def _was_heard(self, member: int, at: float) -> bool:
        """Return whether what a member was told at an instant was committed for good."""
        spans = chain(self.members[member].unheard, self._unheard)
        is_unheard = any(first <= at <= last for first, last in spans)
        return not is_unheard and not self._was_forgotten(member, at)

    def _was_told(self, told: ToldMember) -> bool:
        """Return whether a wait that a member was told came to be known to the others."""
        spans = chain(self.members[told.member].unheard, self._unheard)
        is_unheard = any(first <= told.at <= last for first, last in spans)
        return not is_unheard and not self._was_lost(told)

    def _was_lost(self, told: ToldMember) -> bool:
        """Return whether a wait was forgotten, and could not be told again."""
        member = self.members[told.member]
        if any(first <= told.at <= last for first, last in member.forgotten):
            return True  # it was stopped meanwhile
        for first, last in self._forgotten:
            if first <= told.at <= last:
                spans = chain(member.unheard, self._unheard)
                is_disturbed = any(begin <= last and first <= end for begin, end in spans)
                if is_disturbed or any(told.sent_at <= at <= told.at for at in member.let_go):
                    return True
        return False

    def _was_forgotten(self, member: int, at: float) -> bool:
        spans = chain(self.members[member].forgotten, self._forgotten)
        return any(first <= at <= last for first, last in spans)

    # ------------------------------------------------------------------ faults

    def _at(self, at: float, act: Callable[[], None]) -> None:
        heappush(self._events, (at, next(self._order), act))

    def _happen(self, fault: Fault) -> None:
        now, rng = self.clock.now, self._rng
        alive = [each for each in self.members if each.is_alive]
        if not alive:
            return
        member = rng.choice(alive)
        until = now
        match fault:
            case Fault.KILL if len(alive) > 1:
                member.unheard.append((now - COMMIT_S, inf))
                member.kill()
            case Fault.STOP:
                until = now + rng.uniform(1.0, 3 * LEASE_S)
                self._stop(member, until)
            case Fault.CUT:
                member.link.cut = rng.choice([Cut.THERE, Cut.BACK, Cut.BOTH])
                until = now + rng.uniform(1.0, 3 * LEASE_S)
                member.unheard.append((now - COMMIT_S, until + 2 * LEASE_S))
                self._at(until, lambda: self._mend(member))
            case Fault.JOIN:
                self._join()
            case Fault.RESTART:
                self.server.restart(loses_last_second=False)
            case Fault.FORGET:
                self._forget()
            case Fault.UNKNOWN_OWNER:
                self._join()
                self._at(now, partial(self._forget_claims_of, self.members[-1]))
            case Fault.AWAY:
                self.server.is_up = False
                until = now + rng.uniform(1.0, 2 * LEASE_S)
                self._unheard.append((now - COMMIT_S, until + LEASE_S))
                self._at(until, self._come_back)

        if self._calm is not None:
            is_for_all = fault in _OF_THE_SERVER
            self._calm.disturbed(alive if is_for_all else [member], until)

    def _stop(self, member: SimulatedMember, until: float) -> None:
        now = self.clock.now
        member.stopped_until = until
        member.unheard.append((now - COMMIT_S, until + COMMIT_S))
        if self._was_forgotten(member.number, now):  # it learns that when it is woken
            member.forgotten.append((now, until + LEARN_S))

    def _forget(self) -> None:
        now = self.clock.now
        self.server.restart(loses_last_second=True)
        self._forgotten.append((now - 2 * COMMIT_S, now + LEARN_S))
        for each in self.members:
            if each.stopped_until > now:  # it learns that when it is woken
                each.forgotten.append((now, each.stopped_until + LEARN_S))

    def _forget_claims_of(self, member: SimulatedMember) -> None:
        """Wait until a member has claimed a shard; then forget that, and stop it."""
        if member.is_alive and not member.owned:
            self._at(self.clock.now + 0.05, partial(self._forget_claims_of, member))
        elif member.is_alive and self.server.is_up:
            self._forget()
            self._stop(member, self.clock.now + self._rng.uniform(RENEW_S, LEASE_S - MARGIN_S))

    def _mend(self, member: SimulatedMember) -> None:
        if member.is_alive:
            member.link.cut = Cut.NONE

    def _come_back(self) -> None:
        self.server.is_up = True

    # ------------------------------------------------------------------ the end

    def _outcome(self) -> FleetOutcome:
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
