"""Calm members: those whose looks at the store would find nothing do not look.

A member looks at the store twice a second for letters and once a second for other members, and
renews its leases every five seconds. In a day of 200 members that is a hundred million calls, and
nearly all of them find nothing. A member is calm when a look has found nothing to do. From then on
the world stands in for its looks:

    renewals    every RENEW_S its leases are prolonged and its card is renewed in the server's data
    letters     half a second after one was posted for a shard, its owner has a turn
    members     every second for ALERT_S after a fault, cards and leases are compared: who has more
                or fewer shards than its part looks for itself; all do if a shard is free
    the end     when every member rests, all of them look

A member that a fault meets is not calm, and looks, renews and claims with its own code. A restart
of the server or its absence meets all members, at the time of the next renewal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.runtime.fleet_worker import SILENT_S
from mannerly.crawler.store.fleet import RENEW_S

from .link import Cut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.crawler.fetch.fake import VirtualClock
    from mannerly.crawler.store.valkey.crawl import ValkeyCrawl

    from .members import SimulatedMember
    from .server import ModelServer

ALERT_S = 40.0  # a lease, and the time to claim what it held
LETTER_S = 0.5  # until a letter is looked for
SURVEY_S = 1.0


class Calm:
    """Stands in for the looks of calm members; `turn` gives a member a turn at an instant."""

    def __init__(
        self,
        members: Sequence[SimulatedMember],
        server: ModelServer,
        clock: VirtualClock,
        store: ValkeyCrawl,
        turn: Callable[[SimulatedMember, float], None],
    ) -> None:
        self._members = members
        self._server = server
        self._clock = clock
        self._store = store
        self._turn = turn
        self._alert_until = clock.now + ALERT_S

    def after_turn(self, member: SimulatedMember) -> None:
        """Note what a member has done, and whether it is calm."""
        member.is_watchful = not self._may_be_calm(member)
        for state in self._server.mailed:
            owner = self._server.owner_of(state)
            if owner:
                self._look_for_letters(self._members[int(owner[1:])])
        self._server.mailed.clear()
        if self._clock.now >= member.mail_at and member.store.mail.depth():
            self._look_for_letters(member)

    def disturbed(self, members: Sequence[SimulatedMember], until: float) -> None:
        """A fault has met these members, and lasts until an instant."""
        now = self._clock.now
        is_one = len(members) == 1
        for member in members:
            if not member.is_watchful:
                self._rouse(member, now if is_one else now + RENEW_S * (member.number % 50) / 50)
        self._alert_until = max(self._alert_until, until + ALERT_S)

    def beat(self) -> None:
        """Do what is due every SURVEY_S: renewals every RENEW_S, and a survey in times of alert."""
        now = self._clock.now
        if not self._server.is_up:
            return
        if now % RENEW_S < SURVEY_S:
            self._renew()
        if now < self._alert_until:
            self._survey()

    # ------------------------------------------------------------------ what it stands in for

    def _may_be_calm(self, member: SimulatedMember) -> bool:
        link = member.link
        return (
            link.cut is Cut.NONE
            and self._server.is_up
            and link.run == self._server.run_id
            and member.has_looked
            and member.worker.is_settled
        )

    def _look_for_letters(self, member: SimulatedMember) -> None:
        now = self._clock.now
        if member.is_alive and not member.is_watchful and member.mail_at <= now:
            member.mail_at = now + LETTER_S
            self._turn(member, member.mail_at)

    def _rouse(self, member: SimulatedMember, at: float) -> None:
        member.is_watchful = True
        member.has_looked = False
        self._turn(member, at)

    def _renew(self) -> None:
        now = self._clock.now
        names, shards = [], []
        is_over = True
        for member in self._members:
            if not member.is_alive:
                continue
            is_over = is_over and not member.is_watchful and member.worker.engine.is_idle
            if member.is_watchful or member.stopped_until > now or member.link.cut is not Cut.NONE:
                continue
            member.renewed_at = now
            names.append(member.store.fleet.member)
            shards += [member.store.keys.shard(number) for number in member.owned]
        self._server.prolong(names, shards, self._store.keys.cards)
        if is_over:
            for member in self._members:
                if member.is_alive:
                    self._rouse(member, now)

    def _survey(self) -> None:
        """Let those look who would find something."""
        free = self._store.fleet.unclaimed()
        heard_since = self._store.wall() - SILENT_S
        names = sorted(card.id for card in self._store.workers() if card.seen_at > heard_since)
        part, rest = divmod(self._store.manifest.shards, max(1, len(names)))
        parts = {name: part + (place < rest) for place, name in enumerate(names)}
        for member in self._members:
            if not member.is_alive or member.is_watchful:
                continue
            if free or len(member.owned) != parts.get(member.store.fleet.member):
                self._rouse(member, self._clock.now)
