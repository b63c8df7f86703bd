"""The hosts of a shard that other crawls may want, too: claimed, held in turns, handed over.

    met ─► claimed ─► HELD ──another crawl wants it, the turn is over──► no request starts
             │  ▲                                                             │ all are answered
             ▼  │ granted, with pace, next instant and pauses                 ▼
            AWAY ◄──────────────────────────────────────── released, with the same

A host that is AWAY is lent in the politeness core, so no request of any kind starts; its queue
waits for the reason SHARED. It is asked for again as long as something is queued. A host that the
politeness core forgets is given back, so memory is bounded by the core's registry.

**Turns.** While others wait, a turn lasts 10 s, or less if many wait, so that each gets the host
within a minute. It is not over before a request was sent, unless none can be (a long pause). A
crawl that has nothing to send, or is paused, hands over at once.

**Written when?** Lessons with the next sign of life; a pause in the turn of the loop in which it
came in, as for the crawl's own commit; a long gap within a tick, which is before the next request.
A host that no other crawl wants costs its part of one claim, which it shares with many hosts.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.host.budget import Away, Turn
from mannerly.hosts.base import (
    NOTHING_KNOWN,
    Granted,
    HostBudget,
    InUse,
    usable,
)
from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.model import NEVER, Reason
from mannerly.politeness.pace import Lesson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mannerly.crawler.frontier.core import Frontier
    from mannerly.crawler.host.budget import Budget
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.host.hosts import Hosts
    from mannerly.crawler.model import Now
    from mannerly.hosts.base import Holder
    from mannerly.hosts.leases import Leases
    from mannerly.politeness import Politeness
    from mannerly.politeness.model import Instant

LONGEST_ROUND = 2.0  # times a round: then turns end, also if nothing could be sent
ASK_AGAIN_S = 0.25
ASKED_AT_ONCE = 2000  # hosts; others are asked for a moment later
LONG_GAP_S = 3.0  # a shorter gap has passed before a dead holder's hosts can be taken over
_NO_LESSON = Lesson()
_RESTING = (Reason.PAUSED, Reason.RETIRED)


class _Grant(NamedTuple):
    """A budget of another holder, with waits that count from an instant at which it was known."""

    budget: HostBudget
    at: Instant


class ShardLeases:
    """The leases of one shard's hosts. What is held or away is in each `Budget`."""

    def __init__(
        self,
        leases: Leases,
        politeness: Politeness,
        frontier: Frontier,
        hosts: Hosts,
    ) -> None:
        self._leases = leases
        self._politeness = politeness
        self._frontier = frontier
        self._hosts = hosts
        self._granted: dict[Budget, _Grant] = {}  # of hosts that are about to be recalled
        self._away: dict[Budget, None] = {}  # not held, in the order in which they are asked for
        self._ending: set[Budget] = set()  # held; their turn is over
        self._forgotten: set[Budget] = set()  # evicted by politeness; to be given back
        self._learned: dict[Budget, Remembered] = {}  # what is new and not written, in order
        self.is_urgent = False  # a pause is not written yet
        self._is_long = False  # a long gap is not
        leases.add(self)

    @property
    def sure_until(self) -> Instant:
        """Nothing may be sent from this instant on: another crawl may have taken over."""
        return self._leases.sure_until

    def holder_of(self, host: Host) -> str:
        """Return the name of the crawl that a host is away to; "" if it is not."""
        lease = None if host.budget is None else host.budget.lease
        return lease.by.name if isinstance(lease, Away) and lease.by is not None else ""

    def claim(self, hosts: Iterable[str], now: Now) -> None:
        """Ask for hosts that are about to be met for the first time."""
        find, start_s = self._hosts.budget_of, self._politeness.start_delay_s
        keys = map(self._hosts.key, hosts) if self._hosts.is_grouped else hosts
        known = ((key, find(key)) for key in keys)
        gaps = {key: start_s for key, each in known if each is None or each.lease is None}
        answers, at = self._leases.claim(gaps, now) if gaps else ({}, now.mono)
        turn = Turn(now.mono, 0)  # one for the many hosts of which nothing is known
        for key in gaps:
            budget, answer = self._hosts.budget(key), answers.get(key)
            if answer is NOTHING_KNOWN:
                budget.lease = turn
            elif answer is None or isinstance(answer, InUse):
                self._refused(budget, None if answer is None else answer.by, now)
            else:
                budget.lease = turn
                if answer.budget is not None:
                    self._granted[budget] = _Grant(answer.budget, at)

    def met(self, budget: Budget, own_at: float, now: Now) -> None:
        """A host is recalled: go on where the last crawl stopped, or wait for the host.

        `own_at` is the wall time of what this crawl's own record knows of its pace; 0: nothing.
        """
        self._forgotten.discard(budget)
        if isinstance(budget.lease, Turn):
            granted = self._granted.pop(budget, None)
            if granted is not None:
                self._apply(budget, granted, own_at, now)
        else:
            if budget.lease is None:
                self._send_away(budget, Away(now.mono))
            self._politeness.lend(budget.key, now=now.mono)
            self._hosts.touch(budget.members)

    def learned(self, lesson: Remembered) -> None:
        """The politeness core has learned of a host: it is written with the next sign of life."""
        budget = self._hosts.budget_of(lesson.host)
        if budget is None:
            return  # it has no lease
        if lesson.lesson != _NO_LESSON or lesson.crawl_delay_s or lesson.failing_since:
            self._learned[budget] = lesson
            state = self._politeness.state(lesson.host)
            self._is_long |= state is not None and state.delay_s > LONG_GAP_S

    def evicted(self, key: str) -> None:
        """The politeness core has no state of a host any more: give it back with the next tick."""
        budget = self._hosts.budget_of(key)
        if budget is not None and budget.lease is not None:
            self._forgotten.add(budget)

    def forget(self, budget: Budget, now: Now) -> None:
        """Forget what was learned of a host, for all crawls; what it asked for stays."""
        self._learned.pop(budget, None)
        self._leases.forget(budget.key, now)

    def flush(self, now: Now) -> None:
        """Write what another crawl must know before it sends, if there is anything."""
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
            budget = self._hosts.budget_of(told.host)
            if budget is not None:
                self._learned.pop(budget, None)
        self.is_urgent = self._is_long = False

    def last_words(self, now: Now, *, all_of_them: bool = False) -> list[HostBudget]:
        """Return what the next holders must know, because this process ends.

        Hosts that need not be waited for are left out, unless `all_of_them` are asked for.
        """
        not_before = self._politeness.not_before
        held = [each for each in self._hosts.budgets if _is_held(each)]
        waiting = [each for each in held if all_of_them or not_before(each.key) > now.mono]
        return [self._told(each, now) for each in {**self._learned, **dict.fromkeys(waiting)}]

    def lose_all(self, now: Now) -> None:
        """Another crawl may have taken over every host."""
        for budget in self._hosts.budgets:
            if _is_held(budget):
                self._politeness.lend(budget.key, now=now.mono)
                self._send_away(budget, Away(now.mono))
        self._ending.clear()
        self._granted.clear()

    def leave(self, now: Now) -> None:
        """Give all hosts back: this process does not own the shard any more."""
        self._leases.remove(self, now)

    # ------------------------------------------------------------------ turns

    def look(self, wanted: Mapping[str, int], now: Now) -> None:
        """Start no more requests to hosts that others wait for, when their turn is over."""
        for key, waiting in wanted.items():
            budget = self._hosts.budget_of(key)
            turn = None if budget is None else budget.lease
            if budget is None or not isinstance(turn, Turn):
                continue
            if self._is_over(budget, turn, waiting, now.mono):
                self._politeness.lend(key, now=now.mono)
                self._ending.add(budget)

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
        """Assert that budgets and lists agree."""
        assert set(self._away) == {
            each for each in self._hosts.budgets if isinstance(each.lease, Away)
        }
        assert all(_is_held(each) for each in self._ending | self._granted.keys())
        assert all(each.lease is not None and not each.members for each in self._forgotten)

    def _is_over(self, budget: Budget, turn: Turn, waiting: int, now: Instant) -> bool:
        if not self._has_work(budget):
            return True
        held_s, times = now - turn.began, self._leases.times
        share_s = times.round_s / (waiting + 1)
        if held_s < min(times.turn_s, share_s):
            return False
        state = self._politeness.state(budget.key)
        has_sent = state is None or state.requests > turn.requests
        return has_sent or held_s >= LONGEST_ROUND * share_s

    def _hand_over(self, now: Now) -> None:
        done = [each for each in self._ending if self._in_flight(each) == 0]
        if done and self._leases.release([self._told(each, now) for each in done], now):
            for budget in done:
                self._ending.discard(budget)
                self._learned.pop(budget, None)
                self._send_away(budget, Away(now.mono))

    def _give_back(self, now: Now) -> None:
        """Give up the leases of hosts, and the requests for them, that the core has forgotten."""
        budgets = list(islice(self._forgotten, ASKED_AT_ONCE))
        held = [each for each in budgets if _is_held(each)]
        awaited = [each.key for each in budgets if _is_awaited(each)]
        if held and not self._leases.release([self._told(each, now) for each in held], now):
            return
        if awaited and not self._leases.withdraw(awaited, now):
            return
        for budget in budgets:
            budget.lease = None
            self._away.pop(budget, None)
            self._granted.pop(budget, None)
            self._learned.pop(budget, None)
            self._ending.discard(budget)
            self._forgotten.discard(budget)
            self._hosts.drop(budget)

    def _ask_again(self, now: Now) -> None:
        due = [each for each in self._away if _is_due(each, now.mono)]
        wanted = [each for each in due if self._has_work(each)]
        unwanted = {each for each in due if _is_awaited(each)}.difference(wanted)
        if unwanted and self._leases.withdraw([each.key for each in unwanted], now):
            for budget in unwanted:
                budget.lease = Away(now.mono)
        if wanted:
            self._ask(wanted[:ASKED_AT_ONCE], now)

    def _ask(self, budgets: list[Budget], now: Now) -> None:
        gaps = {each.key: self._politeness.delay_s(each.key) for each in budgets}
        answers, at = self._leases.claim(gaps, now)
        for budget in budgets:
            answer = answers.get(budget.key)
            if isinstance(answer, Granted):
                self._grant(budget, answer.budget and _Grant(answer.budget, at), now)
            else:
                self._refused(budget, None if answer is None else answer.by, now)

    def _refused(self, budget: Budget, by: Holder | None, now: Now) -> None:
        before = budget.lease
        is_new = not isinstance(before, Away) or before.by != by
        budget.lease = Away(now.mono + ASK_AGAIN_S, by)
        self._away[budget] = None
        if is_new:
            self._hosts.touch(budget.members)

    def _send_away(self, budget: Budget, away: Away) -> None:
        budget.lease = away
        self._away[budget] = None
        self._hosts.touch(budget.members)

    def _grant(self, budget: Budget, granted: _Grant | None, now: Now) -> None:
        state = self._politeness.state(budget.key)
        budget.lease = Turn(now.mono, 0 if state is None else state.requests)
        del self._away[budget]
        if granted is not None:
            self._apply(budget, granted, 0.0, now)
        self._politeness.regain(budget.key)
        for host in budget.members:
            self._frontier.wake(host, now=now.mono)
        self._hosts.touch(budget.members)

    def _has_work(self, budget: Budget) -> bool:
        state = self._politeness.state(budget.key)
        if state is not None and state.in_flight:
            return True
        if self._leases.is_resting or (state is not None and state.gate in _RESTING):
            return False
        return any(host.queued for host in budget.members)

    def _in_flight(self, budget: Budget) -> int:
        state = self._politeness.state(budget.key)
        return 0 if state is None else state.in_flight

    # ------------------------------------------------------------------ budgets

    def _apply(self, budget: Budget, granted: _Grant, own_at: float, now: Now) -> None:
        """Go on with a host as its last holder left it."""
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
                budget.blocked(until)

    def _told(self, budget: Budget, now: Now, known: Remembered | None = None) -> HostBudget:
        """Return what the next holder of a host must know; `known`: what was just learned."""
        politeness, key = self._politeness, budget.key
        state = politeness.state(key)
        if state is None:  # evicted: when it was asked last is not known, so it counts from now
            new = known or self._learned.get(budget)
            lesson = None if new is None or new.lesson == _NO_LESSON else new.lesson
            crawl_delay_s = 0.0 if new is None else new.crawl_delay_s
            return HostBudget(key, lesson, crawl_delay_s, sent_s_ago=0.0)
        known = known or politeness.remembered(key, now=now.mono, wall=now.wall)
        assert known is not None
        is_new = budget in self._learned and known.lesson != _NO_LESSON
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


def _is_held(budget: Budget) -> bool:
    return isinstance(budget.lease, Turn)


def _is_awaited(budget: Budget) -> bool:
    return isinstance(budget.lease, Away) and budget.lease.by is not None


def _is_due(budget: Budget, now: Instant) -> bool:
    return isinstance(budget.lease, Away) and budget.lease.ask_at <= now


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
