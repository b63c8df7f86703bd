"""The judge of a fleet: it sees every request with the member that sent it, and every answer.

A broken promise counts for every member that sends, with exceptions that no fleet can avoid:

- What a member was told while the server could not hear it (its link was cut, or it was stopped)
  binds that member alone, until the member and the one that asks could tell and hear it. What it
  was told before it died without a commit binds no other.
- What the server forgot binds all members, because the one that was told it tells the server again;
  unless that one was disturbed before it could, or the answer was under way when it let go of the
  shard.
- A page may be fetched again if its first answer went to a member that was disturbed before it
  could commit it, or if the server forgot that commit. Every other repetition is counted.

    gap           two requests to a host closer than the minimum delay, or than its Crawl-delay
    retry_after   a request before the end of a Retry-After
    repeated      a page that was delivered before, without a reason

This module knows no store, no lease and no member's code.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from mannerly.simulation.audit import TOLERANCE_S, asked_wait_s
from virtual.web import ROBOTS, place_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.model import Request
    from virtual.fetcher import FakeReply
    from virtual.web import GeneratedWeb


class ToldMember(NamedTuple):
    """Something that a member was told: it sent the request and got the answer at these times."""

    member: int
    sent_at: float
    at: float


class _Host:
    """A host as the judge sees it: its last request, and what it asked of which member."""

    __slots__ = ("asked", "last_start", "rules")

    def __init__(self) -> None:
        self.last_start = -inf
        self.asked: list[tuple[ToldMember, float]] = []  # and silent until
        self.rules: list[ToldMember] = []


class FleetJudge:
    """Counts broken promises.

    `was_heard(member, instant)` says whether what a member learned at an instant came to be known
    to the others for good, `was_told(what, asker, instant)` whether another member must know of a
    wait: it is told late or again if the server could not hear it or has forgotten it.
    `was_lost(what)` says whether it could not be told again.
    """

    def __init__(
        self,
        web: GeneratedWeb,
        least_gap_s: float,
        *,
        was_heard: Callable[[int, float], bool],
        was_told: Callable[[ToldMember, int, float], bool],
        was_lost: Callable[[ToldMember], bool],
    ) -> None:
        self.broken: Counter[str] = Counter()
        self.excused = 0  # pages that were fetched again with a reason
        self._web = web
        self._least_gap_s = least_gap_s
        self._was_heard = was_heard
        self._was_told = was_told
        self._was_lost = was_lost
        self._hosts: dict[int, _Host] = {}
        self._delivered: dict[tuple[int, int], tuple[int, float]] = {}

    def sent(self, member: int, request: Request, now: float) -> None:
        """Judge a request that arrives now."""
        number, _ = place_of(request.url)
        host = self._hosts.setdefault(number, _Host())
        gap_s = self._least_gap_s
        if any(self._binds(member, told, now) for told in host.rules):
            gap_s = max(gap_s, self._web.limit_and_delay(number)[1])
        if now - host.last_start < gap_s - TOLERANCE_S:
            self.broken["gap"] += 1
        host.last_start = now
        host.asked = [each for each in host.asked if each[1] > now]
        if any(
            self._binds(member, told, now) and now < until - TOLERANCE_S
            for told, until in host.asked
        ):
            self.broken["retry_after"] += 1

    def answered(self, member: int, request: Request, reply: FakeReply, now: float) -> None:
        """Note the answer to a request that arrived now; it is received after its latency."""
        number, page = place_of(request.url)
        host, at = self._hosts[number], now + reply.latency_s
        if reply.error is not None or reply.latency_s > request.timeout_s:
            return
        if wait_s := asked_wait_s(reply.headers) if reply.status != 200 else 0.0:
            host.asked.append((ToldMember(member, now, at), at + wait_s))
        elif reply.status == 200 and page == ROBOTS:
            host.rules.append(ToldMember(member, now, at))
        elif reply.status == 200:
            self._deliver((number, page), member, at)

    def _deliver(self, page: tuple[int, int], member: int, at: float) -> None:
        first = self._delivered.get(page)
        if first is not None and self._was_heard(*first):
            self.broken["repeated"] += 1
        elif first is not None:
            self.excused += 1
        self._delivered[page] = member, at

    def _binds(self, asker: int, told: ToldMember, now: float) -> bool:
        """Return whether something that a member was told holds for the one that asks now."""
        if told.at > now:
            return False
        if asker == told.member:
            return not self._was_lost(told)
        return self._was_told(told, asker, now)
