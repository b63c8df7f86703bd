"""Calm members: those whose looks at the store would find nothing do not look.

A member looks at the store twice a second for links and once a second for other members, and
renews its leases every five seconds. In a day of 200 members that is a hundred million calls, and
nearly all of them find nothing. A member is calm when a look has found nothing to do. From then on
the world stands in for its looks:

    renewals    every RENEW_S its leases are prolonged and its heartbeat is renewed in the server.
                They are written when they can be seen: before a member that is not calm has
                a turn, before a fault and before a survey (`catch_up`)
    links       half a second after some were added to a shard, its owner has a turn
    members     for ALERT_S after faults, heartbeats and leases are compared: who has more
                shards than its part looks for itself, and who has fewer, if one can be claimed;
                all do, every RENEW_S, if one stays free
    the end     when every member rests, all of them look

A member that a fault meets is not calm, and looks, renews and claims with its own code. A restart
of the server or its absence meets all members, at the time of the next renewal.

Turns are on a grid of GRID_S, later than something is due and never sooner: one turn does what a
busy machine would do in one turn of its loop. Each member that is not calm has another grid, so
that they do not act at the same instants.
"""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING

from mannerly.crawler.store.fleet_times import RENEW_S, SILENT_S

from .server import SAVED_EVERY_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
    from virtual.fetcher import VirtualClock

    from .members import SimulatedMember
    from .server import ModelServer

ALERT_S = 40.0  # a lease, and the time to claim what it held
LINKS_S = 0.5  # until links are looked for
SURVEY_S = 1.0
GRID_S = 0.25
SHIFTS = 64  # grids; their instants are whole numbers of 1/256 s, so sums of them are exact


class Calm:
    """Stands in for the looks of calm members.

    `turn` gives a member a turn at an instant, `at` has something done at an instant.
    """

    def __init__(
        self,
        members: Sequence[SimulatedMember],
        server: ModelServer,
        clock: VirtualClock,
        store: ValkeyCrawl,
        *,
        turn: Callable[[SimulatedMember, float], None],
        at: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._members = members
        self._server = server
        self._clock = clock
        self._store = store
        self._turn = turn
        self._at = at
        self._alert_until = clock.now + ALERT_S
        self._is_surveying = False
        self._all_look_at = clock.now  # if a shard is free
        self._renewed_at = 0.0  # of calm members, as the server has it
        self._working: set[int] = set()  # members that have something to do, or look for it
        self._is_ending = False
        self._survey_until_calm()

    # ------------------------------------------------------------------ what the world tells

    def joined(self, member: SimulatedMember) -> None:
        """A member is there, and looks."""
        self._working.add(member.number)

    def before_turn(self, member: SimulatedMember) -> None:
        """Bring up to date what a member will see."""
        if member.is_watchful:
            self.catch_up()
        else:
            member.coordinator.renewed(self._last_renewal)

    def after_turn(self, member: SimulatedMember) -> None:
        """Note what a member has done, and whether it is calm."""
        is_calm = self._may_be_calm(member)
        if not is_calm and not member.is_watchful:
            self.catch_up()  # its own renewals, too
        member.is_watchful = not is_calm
        if self._server.linked:
            for state in sorted(self._server.linked):
                owner = self._server.owner_of(state)
                if owner:
                    self._look_for_links(self._members[int(owner[1:])])
            self._server.linked.clear()
        if self._clock.now >= member.links_at and member.has_links:
            self._look_for_links(member)
        if member.is_alive and (member.is_watchful or not member.worker.engine.is_idle):
            self._working.add(member.number)
        else:
            self._leave(member)

    def disturbed(self, members: Iterable[SimulatedMember], until: float) -> None:
        """A fault has met these members, and lasts until an instant."""
        now = self._clock.now
        met = list(members)
        for member in met:
            if not member.is_alive:
                self._leave(member)
            elif member.is_watchful:
                member.has_looked = False
            else:
                later_s = RENEW_S * (member.number % 50) / 50 if len(met) > 1 else 0.0
                self._rouse(member, now + later_s)
        self._alert_until = max(self._alert_until, until + ALERT_S)
        self._survey_until_calm()

    def catch_up(self) -> None:
        """Write the renewals of calm members to the server that were due until now."""
        if self._last_renewal <= self._renewed_at or not self._server.is_up:
            return
        self._renewed_at = self._last_renewal
        names: list[str] = []
        shards: list[str | int] = []
        for member in self._members:
            if member.is_alive and not member.is_watchful:
                stamp = member.store.ages.stamp(self._renewed_at)
                names += [member.store.fleet.member, stamp]
                for store in member.store.fleet.claimed.values():
                    key = member.store.keys.shard(store.number)
                    shards += [key, stamp, store.clock.mark(self._renewed_at)["clock"]]
        self._server.prolong(self._renewed_at, names, shards, self._store.keys.heartbeats)

    # ------------------------------------------------------------------ what it stands in for

    @property
    def _last_renewal(self) -> float:
        """The last instant at which calm members renewed, if that is on the server's disk."""
        return floor((self._clock.now - SAVED_EVERY_S) / RENEW_S) * RENEW_S

    def _may_be_calm(self, member: SimulatedMember) -> bool:
        link = member.link
        return (
            link.is_sound
            and self._server.is_up
            and link.run == self._server.run_id
            and member.has_looked
            and member.coordinator.is_settled
        )

    def _look_for_links(self, member: SimulatedMember) -> None:
        now = self._clock.now
        if member.is_alive and not member.is_watchful and member.links_at <= now:
            member.links_at = on_grid(now + LINKS_S)
            self._turn(member, member.links_at)

    def _rouse(self, member: SimulatedMember, at: float) -> None:
        self.catch_up()
        self._working.add(member.number)
        member.is_watchful = True
        member.has_looked = False
        self._turn(member, at)

    def _leave(self, member: SimulatedMember) -> None:
        """A member has nothing to do; when no member has, all of them see whether it is the end."""
        self._working.discard(member.number)
        if not self._working and not self._is_ending:
            self._is_ending = True
            self._at(self._clock.now + RENEW_S, self._end)

    def _end(self) -> None:
        self._is_ending = False
        if not self._working:
            self.catch_up()
            for member in self._members:
                if member.is_alive:
                    self._rouse(member, self._clock.now)

    def _survey_until_calm(self) -> None:
        if not self._is_surveying:
            self._is_surveying = True
            self._at(self._clock.now + SURVEY_S, self._survey)

    def _survey(self) -> None:
        """Let those look who would find something."""
        self._is_surveying = False
        if self._clock.now < self._alert_until:
            self._survey_until_calm()
        if not self._server.is_up:
            return
        self.catch_up()
        states = [self._store.keys.shard(each) for each in range(self._store.manifest.shards)]
        is_free, is_claimable = self._server.claimable(states, self._store.ages)
        names = sorted(heartbeat.id for heartbeat in self._store.heartbeats.heard(SILENT_S))
        part, rest = divmod(self._store.manifest.shards, max(1, len(names)))
        parts = {name: part + (place < rest) for place, name in enumerate(names)}
        now = self._clock.now
        if not is_free:
            self._all_look_at = now + RENEW_S
        all_look = is_claimable and now >= self._all_look_at
        if all_look:
            self._all_look_at = now + RENEW_S
        for member in self._members:
            if not member.is_alive or member.is_watchful:
                continue
            more = len(member.owned) - parts.get(member.store.fleet.member, 0)
            if all_look or more > 0 or (more < 0 and is_claimable):
                self._rouse(member, now)


def on_grid(at: float, member: int = 0) -> float:
    """Return the first instant of a member's grid that is not before `at`."""
    shift_s = member % SHIFTS * GRID_S / SHIFTS
    return ceil((at - shift_s) / GRID_S) * GRID_S + shift_s
