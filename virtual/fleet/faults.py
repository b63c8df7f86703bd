"""The faults of a fleet, and what they excuse: times in which it is open what a member knows.

`FleetFaults.happen` makes one fault happen. The judge asks `was_heard`, `was_told` and `was_lost`
about what a member was told: what the server could not hear binds that member alone.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from math import exp, inf, log
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.store.fleet_times import LEASE_S, MARGIN_S, RENEW_S, REPLICA_LAG_S

from .link import Cut
from .plan import Fault

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from virtual.fetcher import VirtualClock

    from .calm import Calm
    from .judge import ToldMember
    from .members import SimulatedMember
    from .server import ModelServer

COMMIT_S = 1.0  # from an answer to its commit, at most
LEARN_S = RENEW_S + COMMIT_S  # until an owner that runs learns that the server has forgotten writes
TELL_S = 2 * LEARN_S  # from the end of a disturbance until a wait is told and heard
_OF_THE_SERVER = (Fault.RESTART, Fault.FORGET, Fault.AWAY, Fault.UNKNOWN_OWNER, Fault.FAILOVER)
_OF_ITS_CLOCK = (Fault.CLOCK, Fault.DRIFT)
STEPS_S = (60.0, -60.0, 3600.0, -3600.0)
DRIFTS = (0.05, -0.05, 0.0)
TAKEOVER_S = 60.0  # after the death of a member, whatever the server's clock does
_OF_ALL = 0.3  # how often something that can happen to one link happens to all of them
_REPLICA_S = 8.0  # that a member reaches a read-only replica after a failover, at most


class _Spoiled(NamedTuple):
    """Links that are slow, by so many seconds, or break, so often, until an instant."""

    fault: Fault
    amount: float
    until: float


class FleetFaults:
    """Makes faults happen to members and their server.

    `at` has something done at an instant, `join` lets a member join.
    """

    def __init__(
        self,
        members: Sequence[SimulatedMember],
        server: ModelServer,
        clock: VirtualClock,
        rng: random.Random,
        *,
        slow_s: tuple[float, float],
        at: Callable[[float, Callable[[], None]], None],
        join: Callable[[], None],
    ) -> None:
        self.calm: Calm | None = None
        self._members = members
        self._server = server
        self._clock = clock
        self._rng = rng
        self._slow_s = slow_s
        self._at = at
        self._join = join
        self._unheard: list[tuple[float, float]] = []  # times in which the server hears no member
        self._forgotten: list[tuple[float, float]] = []  # times of which it may know nothing
        self._spoiled: list[_Spoiled] = []  # of all links
        self._restarts: list[float] = []
        self.late_takeovers = 0  # members that were lost and whose shards were left alone

    # ------------------------------------------------------------------ what they excuse

    def was_heard(self, member: int, at: float) -> bool:
        """Return whether what a member was told at an instant was committed for good."""
        spans = chain(self._members[member].unheard, self._unheard)
        is_unheard = any(first <= at <= last for first, last in spans)
        return not is_unheard and not self._was_forgotten(member, at)

    def was_told(self, told: ToldMember, asker: int, now: float) -> bool:
        """Return whether one that asks now must know of a wait that another member was told.

        What could not be heard is told when the link is back, and the present owner hears it then.
        """
        if self.was_lost(told):
            return False
        both = (self._members[told.member].unheard, self._members[asker].unheard)
        known_at = told.at
        for first, last in sorted(chain(*both, self._unheard)):
            if first <= known_at <= last:
                known_at = last + TELL_S
        forgotten = chain(self._members[told.member].forgotten, self._forgotten)
        if known_at > told.at and any(a <= known_at and told.at <= b for a, b in forgotten):
            return False  # the server may have forgotten what it was told
        return known_at <= now

    def was_lost(self, told: ToldMember) -> bool:
        """Return whether a wait was forgotten, and could not be told again."""
        member = self._members[told.member]
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
        """Return whether the server may know nothing of what a member was told at an instant."""
        spans = chain(self._members[member].forgotten, self._forgotten)
        return any(first <= at <= last for first, last in spans)

    # ------------------------------------------------------------------ what happens

    def happen(self, fault: Fault, number: int | None = None) -> None:
        """Make a fault happen; one of a single member meets the one with this number, if any."""
        if self.calm is not None:
            self.calm.catch_up()
        alive = self._alive
        if not alive:
            return
        member = self._rng.choice(alive) if number is None else self._members[number]
        if fault in _OF_THE_SERVER:
            self._meet_all(fault)
        elif fault in _OF_ITS_CLOCK:
            self._set_clock(fault)
        elif fault is Fault.JOIN:
            self._join()
            self._disturbed([member], self._clock.now)
        elif fault in (Fault.SLOW, Fault.BREAK):
            self._spoil(member, fault)
        elif member.is_alive and (fault is not Fault.KILL or len(alive) > 1):
            self._meet(member, fault)

    @property
    def _alive(self) -> list[SimulatedMember]:
        return [each for each in self._members if each.is_alive]

    def _disturbed(self, members: Sequence[SimulatedMember], until: float) -> None:
        if self.calm is not None:
            self.calm.disturbed(members, until)

    def _meet(self, member: SimulatedMember, fault: Fault) -> None:
        """Have something happen to one member."""
        now = self._clock.now
        match fault:
            case Fault.KILL:
                member.unheard.append((now - COMMIT_S, inf))
                self._expect_takeover(member)
                member.kill()
                self._disturbed([member], now)
            case Fault.STOP:
                self._stop(member, now + self._rng.uniform(1.0, 3 * LEASE_S))
            case Fault.CUT:
                member.link.cut = self._rng.choice([Cut.THERE, Cut.BACK, Cut.BOTH])
                until = now + self._rng.uniform(1.0, 3 * LEASE_S)
                member.unheard.append((now - COMMIT_S, until + 2 * LEASE_S))
                self._at(until, partial(self._mend, member))
                self._disturbed([member], until)

    def _meet_all(self, fault: Fault) -> None:
        """Have something happen to the server, and so to all members."""
        now = until = self._clock.now
        match fault:
            case Fault.RESTART:
                self._server.restart(loses_last_second=False)
                self._restarts.append(now)
            case Fault.FORGET:
                self._forget()
            case Fault.UNKNOWN_OWNER:
                self._join()
                self._at(now, partial(self._forget_claims_of, self._members[-1]))
            case Fault.AWAY:
                self._server.is_up = False
                until = now + self._rng.uniform(1.0, 2 * LEASE_S)
                self._unheard.append((now - COMMIT_S, until + LEASE_S))
                self._at(until, self._come_back)
            case Fault.FAILOVER:
                until = self._fail_over()
        self._disturbed(self._alive, until)

    def _set_clock(self, fault: Fault) -> None:
        """Set the clock of the server, or have it drift. No member is met, and nothing excused."""
        if fault is Fault.CLOCK:
            self._server.set_clock(self._rng.choice(STEPS_S))
        else:
            self._server.set_clock(0.0, self._rng.choice(DRIFTS))

    def _expect_takeover(self, member: SimulatedMember) -> None:
        """See to it that the shards of a member that is killed now have other owners soon."""
        states = {member.store.keys.shard(number) for number in member.owned}
        died_at, name = self._clock.now, member.store.fleet.member

        def look() -> None:
            is_late = any(self._server.owner_of(state) == name for state in states)
            if is_late and self._alive and not self._was_disturbed(died_at):
                self.late_takeovers += 1

        self._at(died_at + TAKEOVER_S, look)

    def _was_disturbed(self, since: float) -> bool:
        """Return whether the server, or every member, met a fault that delays a takeover."""
        spans = chain(self._unheard, self._forgotten, ((at, at) for at in self._restarts))
        return any(last >= since - TAKEOVER_S for _, last in spans) or all(
            any(last >= since for _, last in each.unheard) for each in self._alive
        )

    def _fail_over(self) -> float:
        """Lose the server, and have its replica take its place; return when all have found it."""
        rng, server, now = self._rng, self._server, self._clock.now
        lost_s = rng.choice([0.0, rng.uniform(0.0, REPLICA_LAG_S)])
        server.fail_over(lost_s)
        self._restarts.append(now)
        server.set_clock(rng.choice([0.0, rng.uniform(-3600.0, 3600.0)]))  # that of the replica
        server.is_up, server.is_refusing = False, rng.random() < 0.5
        back_at = now + rng.choice([rng.uniform(0.0, 1.0), rng.uniform(1.0, 2 * LEASE_S)])
        self._at(back_at, self._come_back)
        found_at = back_at
        for member in self._alive:
            if rng.random() < 0.3:
                until = back_at + rng.uniform(0.0, _REPLICA_S)
                member.link.reach_replica(until)
                found_at = max(found_at, until)
        self._forget_since(now - lost_s - 2 * COMMIT_S, found_at)
        return found_at

    def _spoil(self, member: SimulatedMember, fault: Fault) -> None:
        """Make links slow, or break them in the middle of exchanges: of a member or of all."""
        now, rng = self._clock.now, self._rng
        until = now + rng.uniform(1.0, 3 * LEASE_S)
        slow_s = exp(rng.uniform(*map(log, self._slow_s)))
        spoiled = _Spoiled(fault, slow_s if fault is Fault.SLOW else rng.uniform(0.0, 0.5), until)
        met = [member]
        if rng.random() < _OF_ALL:
            met = self._alive
            self._spoiled.append(spoiled)
        for each in met:
            self._spoil_link(each, spoiled)
        self._disturbed(met, until)

    def _spoil_link(self, member: SimulatedMember, spoiled: _Spoiled) -> None:
        fault, amount, until = spoiled
        if fault is Fault.SLOW:
            member.link.be_slow(amount, until)
        else:
            member.link.be_breaking(amount, until)
        member.unheard.append((self._clock.now - COMMIT_S, until + LEARN_S))

    def joined(self, member: SimulatedMember) -> None:
        """Have a member share what happens to the links of all."""
        for spoiled in self._spoiled:
            if spoiled.until > self._clock.now:
                self._spoil_link(member, spoiled)

    def _stop(self, member: SimulatedMember, until: float) -> None:
        now = self._clock.now
        member.stopped_until = until
        member.unheard.append((now - COMMIT_S, until + COMMIT_S))
        if self._was_forgotten(member.number, now):  # it learns that when it is woken
            member.forgotten.append((now, until + LEARN_S))
        self._disturbed([member], until)

    def _forget(self) -> None:
        now = self._clock.now
        if self.calm is not None:
            self.calm.catch_up()
        self._server.restart(loses_last_second=True)
        self._restarts.append(now)
        self._forget_since(now - 2 * COMMIT_S, now)
        self._disturbed(self._alive, now)

    def _forget_since(self, first: float, until: float) -> None:
        """Note that writes since an instant are forgotten, and when members can learn so."""
        now = self._clock.now
        self._forgotten.append((first, until + LEARN_S))
        for each in self._members:
            if each.stopped_until > until:  # it learns that when it is woken
                each.forgotten.append((now, each.stopped_until + LEARN_S))

    def _forget_claims_of(self, member: SimulatedMember) -> None:
        """Wait until a member has claimed a shard; then forget that, and stop it."""
        if member.is_alive and not member.owned:
            self._at(self._clock.now + 0.05, partial(self._forget_claims_of, member))
        elif member.is_alive and self._server.is_up:
            self._forget()
            self._stop(member, self._clock.now + self._rng.uniform(RENEW_S, LEASE_S - MARGIN_S))

    def _mend(self, member: SimulatedMember) -> None:
        if member.is_alive:
            member.link.cut = Cut.NONE

    def _come_back(self) -> None:
        self._server.is_up, self._server.is_refusing = True, False
