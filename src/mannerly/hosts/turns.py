"""Hosts that other processes may want, too: claimed, held in turns, handed over.

    met ─► claimed ─► HELD ──another crawl wants it, the turn is over──► no request starts
             │  ▲                                                             │ all are answered
             ▼  │ granted, with pace, next instant and pauses                 ▼
            AWAY ◄──────────────────────────────────────── released, with the same

A host that is AWAY is suspended in the politeness core, so no request starts; callers and
queues wait for the reason SHARED. It is asked for again as long as it is wanted. A host that
the politeness core forgets is given back, so memory is bounded by the core's registry.

**Turns.** While others wait, a turn lasts 10 s, or less if many wait, so that each gets the host
within a minute. It is not over before a request was sent, unless none can be (a long pause). A
holder that has nothing to send, or is paused, hands over at once.

**Written when?** Lessons with the next sign of life; a pause at once (`is_urgent`); a long gap
within a tick, which is before the next request.

A shard of a crawl (`crawler.shard.host_leases`) and a program with a client of its own (`programs`)
are the two kinds of holders. They say who wants a host and who must hear of a change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.model import NEVER, Reason
from mannerly.politeness.pace import Lesson

from .base import Granted, Holder, HostBudget, usable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mannerly.politeness import Politeness
    from mannerly.politeness.model import Instant, Now

    from .leases import Leases

LONGEST_ROUND = 2.0  # times a round: then turns end, also if nothing could be sent
ASK_AGAIN_S = 0.25
ASKED_AT_ONCE = 2000  # hosts; others are asked for a moment later
LONG_GAP_S = 3.0  # a shorter gap has passed before a dead holder's hosts can be taken over
_NO_LESSON = Lesson()
_RESTING = (Reason.PAUSED, Reason.RETIRED)


class Turn(NamedTuple):
    """Its lease is held since `began`; so many requests had been made then."""

    began: Instant
    requests: int


class Away(NamedTuple):
    """Its lease is not held."""

    ask_at: Instant
    by: Holder | None = None  # who holds it, if it was asked for


class Leased(Protocol):
    """A host, or a group of hosts with one pace, that can be leased."""

    @property
    def key(self) -> str: ...

    lease: Turn | Away | None  # None: it was not asked for. Only `HostTurns` writes it


H = TypeVar("H", bound=Leased)


class HandedOver(NamedTuple):
    """A budget of another holder, with waits that count from an instant at which it was known."""

    budget: HostBudget
    at: Instant


class HostTurns(ABC, Generic[H]):
    """The hosts of one part of a process. What is held or away is in each host's `lease`."""

    def __init__(self, leases: Leases, politeness: Politeness) -> None:
        self._leases = leases
        self._politeness = politeness
        self._granted: dict[H, HandedOver] = {}  # of hosts that are about to be recalled
        self._away: dict[H, None] = {}  # not held, in the order in which they are asked for
        self._ending: set[H] = set()  # held; their turn is over
        self._forgotten: set[H] = set()  # evicted by politeness; to be given back
        self._learned: dict[H, Remembered] = {}  # what is new and not written, in order
        self.is_urgent = False  # a pause is not written yet
        self._is_long = False  # a long gap is not
        leases.add(self)

    # ------------------------------------------------------------------ implemented by holders

    @abstractmethod
    def _find(self, key: str) -> H | None:
        """Return a known host by its key."""

    @abstractmethod
    def _all(self) -> Iterable[H]:
        """Return all known hosts."""

    @abstractmethod
    def _is_wanted(self, host: H) -> bool:
        """Return whether this process wants to send to a host."""

    @abstractmethod
    def _changed(self, host: H) -> None:
        """A host went away, or has another holder."""

    @abstractmethod
    def _is_back(self, host: H, now: Now) -> None:
        """A host may be asked again."""

    @abstractmethod
    def _drop(self, host: H) -> None:
        """A host was given back, because the politeness core has forgotten it."""

    def _blocked(self, host: H, until: Instant) -> None:
        """The last holder was asked to wait."""

    # ------------------------------------------------------------------ what is told

    @property
    def sure_until(self) -> Instant:
        """Nothing may be sent from this instant on: another process may have taken over."""
        return self._leases.sure_until

    def learned(self, lesson: Remembered) -> None:
        """The politeness core has learned of a host: it is written with the next sign of life."""
        host = self._find(lesson.host)
        if host is None:
            return  # it has no lease
        if lesson.lesson != _NO_LESSON or lesson.crawl_delay_s or lesson.failing_since:
            self._learned[host] = lesson
            state = self._politeness.state(lesson.host)
            self._is_long |= state is not None and state.delay_s > LONG_GAP_S

    def evicted(self, key: str) -> None:
        """The politeness core has no state of a host any more: give it back with the next tick."""
        host = self._find(key)
        if host is not None and host.lease is not None:
            self._forgotten.add(host)

    def hurry(self) -> None:
        """A host asked for a pause: have it written with the next `flush`."""
        self.is_urgent = True

    def flush(self, now: Now) -> None:
        """Write what another holder must know before it sends, if there is anything."""
        if self.is_urgent:
            budgets = self.unwritten(now)
            self.is_urgent = not self._leases.write(budgets, now)
            if not self.is_urgent:
                self.written(budgets)

    def unwritten(self, now: Now) -> list[HostBudget]:
        """Return what was learned since the last time."""
        learned = self._learned.items()
        return [self._told(each, now, new) for each, new in learned if _is_held(each)]

    def written(self, budgets: list[HostBudget]) -> None:
        """These have been written."""
        for told in budgets:
            host = self._find(told.host)
            if host is not None:
                self._learned.pop(host, None)
        self.is_urgent = self._is_long = False

    def last_words(self, now: Now, *, all_of_them: bool = False) -> list[HostBudget]:
        """Return what the next holders must know, because this process ends.

        Hosts that need not be waited for are left out, unless `all_of_them` are asked for.
        """
        not_before = self._politeness.not_before
        held = [each for each in self._all() if _is_held(each)]
        waiting = [each for each in held if all_of_them or not_before(each.key) > now.mono]
        return [self._told(each, now) for each in {**self._learned, **dict.fromkeys(waiting)}]

    def lose_all(self, now: Now) -> None:
        """Another process may have taken over every host."""
        for host in self._all():
            if _is_held(host):
                self._politeness.suspend(host.key, now=now.mono)
                self._send_away(host, Away(now.mono))
        self._ending.clear()
        self._granted.clear()

    # ------------------------------------------------------------------ turns

    def look(self, wanted: Mapping[str, int], now: Now) -> None:
        """Start no more requests to hosts that others wait for, when their turn is over."""
        for key, waiting in wanted.items():
            host = self._find(key)
            turn = None if host is None else host.lease
            if host is None or not isinstance(turn, Turn):
                continue
            if self._is_over(host, turn, waiting, now.mono):
                self._politeness.suspend(key, now=now.mono)
                self._ending.add(host)

    def tick(self, now: Now) -> None:
        """Write long gaps, hand over what is ready for it, and ask again for what is away."""
        self.is_urgent |= self._is_long
        self.flush(now)
        if self._forgotten:
            self._give_back(now)
        if self._ending:
            self._hand_over(now)
        if self._away:
            self._ask_again(now)

    def check(self) -> None:
        """Assert that hosts and lists agree."""
        assert set(self._away) == {each for each in self._all() if isinstance(each.lease, Away)}
        assert all(_is_held(each) for each in self._ending | self._granted.keys())
        assert all(each.lease is not None for each in self._forgotten)

    def _is_over(self, host: H, turn: Turn, waiting: int, now: Instant) -> bool:
        if not self._has_work(host):
            return True
        held_s, times = now - turn.began, self._leases.times
        share_s = times.round_s / (waiting + 1)
        if held_s < min(times.turn_s, share_s):
            return False
        state = self._politeness.state(host.key)
        has_sent = state is None or state.requests > turn.requests
        return has_sent or held_s >= LONGEST_ROUND * share_s

    def _hand_over(self, now: Now) -> None:
        done = [each for each in self._ending if self._in_flight(each) == 0]
        if done and self._leases.release([self._told(each, now) for each in done], now):
            for host in done:
                self._ending.discard(host)
                self._learned.pop(host, None)
                self._send_away(host, Away(now.mono))

    def _give_back(self, now: Now) -> None:
        """Give up the leases of hosts, and the requests for them, that the core has forgotten."""
        hosts = list(islice(self._forgotten, ASKED_AT_ONCE))
        held = [each for each in hosts if _is_held(each)]
        awaited = [each.key for each in hosts if is_awaited(each)]
        if held and not self._leases.release([self._told(each, now) for each in held], now):
            return
        if awaited and not self._leases.withdraw(awaited, now):
            return
        for host in hosts:
            host.lease = None
            self._away.pop(host, None)
            self._granted.pop(host, None)
            self._learned.pop(host, None)
            self._ending.discard(host)
            self._forgotten.discard(host)
            self._drop(host)

    def _ask_again(self, now: Now) -> None:
        due = [each for each in self._away if _is_due(each, now.mono)]
        wanted = [each for each in due if self._has_work(each)]
        unwanted = {each for each in due if is_awaited(each)}.difference(wanted)
        if unwanted and self._leases.withdraw([each.key for each in unwanted], now):
            for host in unwanted:
                host.lease = Away(now.mono)
        if wanted:
            self._ask(wanted[:ASKED_AT_ONCE], now)

    def _ask(self, hosts: list[H], now: Now) -> None:
        gaps = {each.key: self._politeness.delay_s(each.key) for each in hosts}
        answers, at = self._leases.claim(gaps, now)
        for host in hosts:
            answer = answers.get(host.key)
            if isinstance(answer, Granted):
                self._grant(host, answer.budget and HandedOver(answer.budget, at), now)
            else:
                self._refused(host, None if answer is None else answer.by, now)

    def _refused(self, host: H, by: Holder | None, now: Now) -> None:
        before = host.lease
        is_new = not isinstance(before, Away) or before.by != by
        host.lease = Away(now.mono + ASK_AGAIN_S, by)
        self._away[host] = None
        if is_new:
            self._changed(host)

    def _hold(self, host: H, turn: Turn) -> None:
        host.lease = turn

    def _send_away(self, host: H, away: Away) -> None:
        host.lease = away
        self._away[host] = None
        self._changed(host)

    def _grant(self, host: H, granted: HandedOver | None, now: Now) -> None:
        state = self._politeness.state(host.key)
        self._hold(host, Turn(now.mono, 0 if state is None else state.requests))
        del self._away[host]
        if granted is not None:
            self._apply(host, granted, 0.0, now)
        self._politeness.resume(host.key)
        self._is_back(host, now)

    def _has_work(self, host: H) -> bool:
        state = self._politeness.state(host.key)
        if state is not None and state.in_flight:
            return True
        if self._leases.is_resting or (state is not None and state.gate in _RESTING):
            return False
        return self._is_wanted(host)

    def _in_flight(self, host: H) -> int:
        state = self._politeness.state(host.key)
        return 0 if state is None else state.in_flight

    # ------------------------------------------------------------------ budgets

    def _apply(self, host: H, granted: HandedOver, own_at: float, now: Now) -> None:
        """Go on with a host as its last holder left it.

        `own_at` is the wall time of what is known of its pace already; 0: nothing.
        """
        told, politeness = usable(granted.budget), self._politeness
        key, mono = told.host, now.mono
        learned_at = now.wall - told.learned_s_ago
        if told.lesson is not None and learned_at > own_at:
            politeness.recall(_remembered(told, learned_at, now.wall), now=mono, wall=now.wall)
        if told.sent_s_ago is not None:
            politeness.contacted(key, now=granted.at - told.sent_s_ago)
        until = granted.at + told.next_in_s
        if told.next_in_s > 0.0 and until > politeness.not_before(key):
            is_gap = told.next_in_s <= told.gap_s
            politeness.block(key, until, Reason.PACE if is_gap else Reason.RETRY_AFTER, now=mono)
            if not is_gap:
                self._blocked(host, until)

    def _told(self, host: H, now: Now, known: Remembered | None = None) -> HostBudget:
        """Return what the next holder of a host must know; `known`: what was just learned."""
        politeness, key = self._politeness, host.key
        state = politeness.state(key)
        if state is None:  # evicted: when it was asked last is not known, so it counts from now
            new = known or self._learned.get(host)
            lesson = None if new is None or new.lesson == _NO_LESSON else new.lesson
            crawl_delay_s = 0.0 if new is None else new.crawl_delay_s
            return HostBudget(key, lesson, crawl_delay_s, sent_s_ago=0.0)
        known = known or politeness.remembered(key, now=now.mono, wall=now.wall)
        assert known is not None
        is_new = host in self._learned and known.lesson != _NO_LESSON
        sent_at = max(state.base_at, state.left_at)
        return HostBudget(
            key,
            known.lesson if is_new else None,
            known.crawl_delay_s,
            state.delay_s,
            None if sent_at == NEVER else max(0.0, now.mono - sent_at),
            max(0.0, state.allowed_at - now.mono),
            known.updated_at - known.failing_since if known.failing_since else None,
            known.failures_in_a_row,
            known.breaker_opens,
            max(0.0, known.breaker_until - now.wall) if known.breaker_until else None,
        )


def is_awaited(host: Leased) -> bool:
    """Return whether a host was asked for, and another holder has it."""
    return isinstance(host.lease, Away) and host.lease.by is not None


def _is_held(host: Leased) -> bool:
    return isinstance(host.lease, Turn)


def _is_due(host: Leased, now: Instant) -> bool:
    return isinstance(host.lease, Away) and host.lease.ask_at <= now


def _remembered(budget: HostBudget, learned_at: float, wall: float) -> Remembered:
    failing_s, open_s = budget.failing_s, budget.breaker_in_s
    return Remembered(
        host=budget.host,
        lesson=budget.lesson or _NO_LESSON,
        crawl_delay_s=budget.crawl_delay_s,
        updated_at=learned_at,
        failing_since=0.0 if failing_s is None else learned_at - failing_s,
        failures_in_a_row=budget.failures_in_a_row,
        breaker_opens=budget.breaker_opens,
        breaker_until=0.0 if open_s is None else wall + open_s,
    )
