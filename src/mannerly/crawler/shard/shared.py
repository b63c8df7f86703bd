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

from mannerly.crawler.store.host_memory import (
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
    from mannerly.crawler.host.hosts import Hosts
    from mannerly.crawler.model import Now
    from mannerly.crawler.store.host_memory import Holder
    from mannerly.politeness import Politeness
    from mannerly.politeness.model import Instant

    from .leases import Leases

LONGEST_ROUND = 2.0  # times a round: then turns end, also if nothing could be sent
ASK_AGAIN_S = 0.25
ASKED_AT_ONCE = 2000  # hosts; others are asked for a moment later
LONG_GAP_S = 3.0  # a shorter gap has passed before a dead holder's hosts can be taken over
_NO_LESSON = Lesson()
_RESTING = (Reason.PAUSED, Reason.RETIRED)


class _Turn(NamedTuple):
    """A host is held since `began`; so many requests had been made then."""

    began: Instant
    requests: int


class _Grant(NamedTuple):
    """A budget of another holder, with waits that count from an instant at which it was known."""

    budget: HostBudget
    at: Instant


class _Away(NamedTuple):
    """A host that is not held."""

    ask_at: Instant
    by: Holder | None = None  # who holds it, if it was asked for


class SharedHosts:
    """The leases of one shard's hosts, by the key of their budget."""

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
        self._held: dict[str, _Turn] = {}
        self._granted: dict[str, _Grant] = {}  # of hosts that are about to be recalled
        self._away: dict[str, _Away] = {}
        self._ending: set[str] = set()  # held; their turn is over
        self._forgotten: set[str] = set()  # evicted by politeness; to be given back
        self._learned: dict[str, Remembered] = {}  # by key: what is new and not written, in order
        self.is_urgent = False  # a pause is not written yet
        self._is_long = False  # a long gap is not
        leases.add(self)

    @property
    def sure_until(self) -> Instant:
        """Nothing may be sent from this instant on: another crawl may have taken over."""
        return self._leases.sure_until

    def holder_of(self, host: str) -> str:
        """Return the name of the crawl that a host is away to; "" if it is not."""
        away = self._away.get(self._politeness.key(host)) if self._away else None
        return "" if away is None or away.by is None else away.by.name

    def claim(self, hosts: Iterable[str], now: Now) -> None:
        """Ask for hosts that are about to be met for the first time."""
        held, away = self._held, self._away
        keys = map(self._politeness.key, hosts) if self._hosts.is_grouped else hosts
        gaps = dict.fromkeys(keys, self._politeness.start_delay_s)
        if held or away:
            gaps = {key: gap for key, gap in gaps.items() if key not in held and key not in away}
        answers, at = self._leases.claim(gaps, now) if gaps else ({}, now.mono)
        # Written out for the many hosts of which nothing is known.
        held.update(dict.fromkeys(answers, _Turn(now.mono, 0)))
        if len(answers) < len(gaps):
            for key in gaps.keys() - answers.keys():
                self._refused(key, None, now)
        for key, answer in answers.items():
            if answer is NOTHING_KNOWN:
                continue
            if isinstance(answer, InUse):
                del held[key]
                self._refused(key, answer.by, now)
            elif answer.budget is not None:
                self._granted[key] = _Grant(answer.budget, at)

    def met(self, key: str, own_at: float, now: Now) -> None:
        """A host is recalled: go on where the last crawl stopped, or wait for the host.

        `own_at` is the wall time of what this crawl's own record knows of its pace; 0: nothing.
        """
        self._forgotten.discard(key)
        if key in self._held:
            granted = self._granted.pop(key, None)
            if granted is not None:
                self._apply(granted, own_at, now)
        else:
            self._away.setdefault(key, _Away(now.mono))
            self._politeness.lend(key, now=now.mono)
            self._hosts.touch(self._hosts.of_key(key))

    def learned(self, lesson: Remembered) -> None:
        """The politeness core has learned of a host: it is written with the next sign of life."""
        if lesson.lesson != _NO_LESSON or lesson.crawl_delay_s or lesson.failing_since:
            self._learned[lesson.host] = lesson
            state = self._politeness.state(lesson.host)
            self._is_long |= state is not None and state.delay_s > LONG_GAP_S

    def evicted(self, key: str) -> None:
        """The politeness core has no state of a host any more: give it back with the next tick."""
        if key in self._held or key in self._away:
            self._forgotten.add(key)

    def forget(self, key: str, now: Now) -> None:
        """Forget what was learned of a host, for all crawls; what it asked for stays."""
        self._learned.pop(key, None)
        self._leases.forget(key, now)

    def flush(self, now: Now) -> None:
        """Write what another crawl must know before it sends, if there is anything."""
        if self.is_urgent:
            budgets = self.unwritten(now)
            self.is_urgent = not self._leases.write(budgets, now)
            if not self.is_urgent:
                self.written(budgets)

    def unwritten(self, now: Now) -> list[HostBudget]:
        """Return what was learned since the last time."""
        held = self._held
        return [self._budget(key, now, new) for key, new in self._learned.items() if key in held]

    def written(self, budgets: list[HostBudget]) -> None:
        """These have been written."""
        for budget in budgets:
            self._learned.pop(budget.host, None)
        self.is_urgent = self._is_long = False

    def last_words(self, now: Now, *, all_of_them: bool = False) -> list[HostBudget]:
        """Return what the next holders must know, because this process ends.

        Hosts that need not be waited for are left out, unless `all_of_them` are asked for.
        """
        not_before = self._politeness.not_before
        waiting = [key for key in self._held if all_of_them or not_before(key) > now.mono]
        return [self._budget(key, now) for key in {**self._learned, **dict.fromkeys(waiting)}]

    def lose_all(self, now: Now) -> None:
        """Another crawl may have taken over every host."""
        for key in self._held:
            self._politeness.lend(key, now=now.mono)
            self._away[key] = _Away(now.mono)
            self._hosts.touch(self._hosts.of_key(key))
        self._held.clear()
        self._ending.clear()
        self._granted.clear()

    def leave(self, now: Now) -> None:
        """Give all hosts back: this process does not own the shard any more."""
        self._leases.remove(self, now)

    # ------------------------------------------------------------------ turns

    def look(self, wanted: Mapping[str, int], now: Now) -> None:
        """Start no more requests to hosts that others wait for, when their turn is over."""
        for key, waiting in wanted.items():
            turn = self._held.get(key)
            if turn is not None and self._is_over(key, turn, waiting, now.mono):
                self._politeness.lend(key, now=now.mono)
                self._ending.add(key)

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

    def _is_over(self, key: str, turn: _Turn, waiting: int, now: Instant) -> bool:
        if not self._has_work(key):
            return True
        held_s, times = now - turn.began, self._leases.times
        share_s = times.round_s / (waiting + 1)
        if held_s < min(times.turn_s, share_s):
            return False
        state = self._politeness.state(key)
        has_sent = state is None or state.requests > turn.requests
        return has_sent or held_s >= LONGEST_ROUND * share_s

    def _hand_over(self, now: Now) -> None:
        done = [key for key in self._ending if self._in_flight(key) == 0]
        if done and self._leases.release([self._budget(key, now) for key in done], now):
            for key in done:
                self._ending.discard(key)
                self._learned.pop(key, None)
                del self._held[key]
                self._away[key] = _Away(now.mono)
                self._hosts.touch(self._hosts.of_key(key))

    def _give_back(self, now: Now) -> None:
        """Give up the leases of hosts, and the requests for them, that the core has forgotten."""
        keys = list(islice(self._forgotten, ASKED_AT_ONCE))
        held = [key for key in keys if key in self._held]
        awaited = [key for key in keys if key in self._away and self._away[key].by is not None]
        if held and not self._leases.release([self._budget(key, now) for key in held], now):
            return
        if awaited and not self._leases.withdraw(awaited, now):
            return
        for key in keys:
            self._held.pop(key, None)
            self._away.pop(key, None)
            self._granted.pop(key, None)
            self._learned.pop(key, None)
            self._ending.discard(key)
            self._forgotten.discard(key)

    def _ask_again(self, now: Now) -> None:
        due = [key for key, away in self._away.items() if away.ask_at <= now.mono]
        wanted = [key for key in due if self._has_work(key)]
        unwanted = {key for key in due if self._away[key].by is not None}.difference(wanted)
        if unwanted and self._leases.withdraw(list(unwanted), now):
            self._away.update(dict.fromkeys(unwanted, _Away(now.mono)))
        if wanted:
            self._ask(wanted[:ASKED_AT_ONCE], now)

    def _ask(self, keys: list[str], now: Now) -> None:
        gaps = {key: self._politeness.delay_s(key) for key in keys}
        answers, at = self._leases.claim(gaps, now)
        for key in keys:
            answer = answers.get(key)
            if isinstance(answer, Granted):
                self._grant(key, answer.budget and _Grant(answer.budget, at), now)
            else:
                self._refused(key, None if answer is None else answer.by, now)

    def _refused(self, key: str, by: Holder | None, now: Now) -> None:
        before = self._away.get(key)
        self._away[key] = _Away(now.mono + ASK_AGAIN_S, by)
        if before is None or before.by != by:
            self._hosts.touch(self._hosts.of_key(key))

    def _grant(self, key: str, granted: _Grant | None, now: Now) -> None:
        state = self._politeness.state(key)
        self._held[key] = _Turn(now.mono, 0 if state is None else state.requests)
        del self._away[key]
        if granted is not None:
            self._apply(granted, 0.0, now)
        self._politeness.regain(key)
        for host in self._hosts.of_key(key):
            self._frontier.wake(host, now=now.mono)
        self._hosts.touch(self._hosts.of_key(key))

    def _has_work(self, key: str) -> bool:
        state = self._politeness.state(key)
        if state is not None and state.in_flight:
            return True
        if self._leases.is_resting or (state is not None and state.gate in _RESTING):
            return False
        return any(host.queued for host in self._hosts.of_key(key))

    def _in_flight(self, key: str) -> int:
        state = self._politeness.state(key)
        return 0 if state is None else state.in_flight

    # ------------------------------------------------------------------ budgets

    def _apply(self, granted: _Grant, own_at: float, now: Now) -> None:
        """Go on with a host as its last holder left it."""
        budget, politeness = usable(granted.budget), self._politeness
        key, mono = budget.host, now.mono
        learned_at = now.wall - budget.learned_s_ago
        if budget.lesson is not None and learned_at > own_at:
            politeness.recall(_remembered(budget, learned_at, now.wall), now=mono, wall=now.wall)
        if budget.sent_s_ago is not None:
            politeness.contacted(key, now=granted.at - budget.sent_s_ago)
        until = granted.at + budget.next_in_s
        if budget.next_in_s > 0.0 and until > politeness.not_before(key):
            is_gap = budget.next_in_s <= budget.gap_s
            politeness.block(key, until, Reason.PACE if is_gap else Reason.RETRY_AFTER, now=mono)
            if not is_gap:
                self._hosts.budget(key).blocked(until)

    def _budget(self, key: str, now: Now, known: Remembered | None = None) -> HostBudget:
        """Return what the next holder of a host must know; `known`: what was just learned."""
        politeness = self._politeness
        state = politeness.state(key)
        if state is None:  # evicted: when it was asked last is not known, so it counts from now
            new = known or self._learned.get(key)
            lesson = None if new is None or new.lesson == _NO_LESSON else new.lesson
            crawl_delay_s = 0.0 if new is None else new.crawl_delay_s
            return HostBudget(key, lesson, crawl_delay_s, sent_s_ago=0.0)
        known = known or politeness.remembered(key, now=now.mono, wall=now.wall)
        assert known is not None
        is_new = key in self._learned and known.lesson != _NO_LESSON
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
