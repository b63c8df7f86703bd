"""A world for frontiers: a store in a dict, politeness on a string, and an engine's manners.

`World` does for a frontier exactly what the engine owes it, writes down what happened, and holds
the frontier to its promises at every step: nothing is handed out twice, everything in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.frontier.core import Frontier
from mannerly.crawler.model import Entry, First, InFlight, Judgement, Later, RobotsRequest, Ruling
from mannerly.politeness.model import Grant, Reason, Refuse, Response, Wait

if TYPE_CHECKING:
    from collections.abc import Callable

OK = Response(200, 0.01)


@dataclass(eq=False)
class FakeHost:
    """A budget: `gap_s` between starts, `limit` under way."""

    key: str
    gap_s: float = 1.0
    limit: int = 1
    not_before: float = -inf
    in_flight: int = 0
    is_paused: bool = False


@dataclass(eq=False)
class FakePermit:
    host: FakeHost
    is_settled: bool = False


@dataclass
class FakePoliteness:
    """Spacing and a limit a group, and nothing else. Groups: the part of a host after its dot."""

    gap_s: float = 1.0
    limit: int = 1
    is_grouped: bool = False
    groups: dict[str, FakeHost] = field(default_factory=dict)

    def group(self, host: str) -> FakeHost:
        key = host.partition(".")[2] if self.is_grouped else host
        return self.groups.setdefault(key, FakeHost(key, self.gap_s, self.limit))

    def reserve(self, host: str, *, now: float) -> Grant | Wait | Refuse:
        group = self.group(host)
        if group.is_paused:
            return Refuse(None, Reason.PAUSED)
        if now < group.not_before:
            return Wait(group.not_before, Reason.PACE)
        if group.in_flight >= group.limit:
            return Wait(None, Reason.IN_FLIGHT)
        group.in_flight += 1
        group.not_before = now + group.gap_s
        return Grant(FakePermit(group))

    def ready_at(self, host: str, *, now: float) -> float:
        group = self.group(host)
        if group.is_paused or group.in_flight >= group.limit:
            return inf
        return max(now, group.not_before)

    def host(self, host: str) -> FakeSnapshot:
        return FakeSnapshot(self.group(host).key)

    def report(self, permit: FakePermit, response: Response, *, now: float) -> None:
        assert not permit.is_settled
        permit.is_settled = True
        permit.host.in_flight -= 1


@dataclass
class FakeSnapshot:
    host: str


class DictStore:
    """The store's contract as far as windows need it."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[int, Entry]] = {}
        self.seqs = count(1)
        self.reads = 0

    def offer(self, host: str, *priorities: int) -> list[Entry]:
        new = []
        for priority in priorities:
            seq = next(self.seqs)
            url = f"https://{host}/{seq}"
            new.append(Entry(seq, url, host, 1, priority, None, 0, 0))
        self.entries.setdefault(host, {}).update({entry.seq: entry for entry in new})
        return new

    def queued(self, host: str, *, after: tuple[int, int], limit: int) -> list[Entry]:
        self.reads += 1
        past = [entry for entry in self.entries.get(host, {}).values() if key(entry) > after]
        return sorted(past, key=key)[:limit]

    def remove(self, entries: list[Entry]) -> None:
        for entry in entries:
            del self.entries[entry.host][entry.seq]

    def __len__(self) -> int:
        return sum(map(len, self.entries.values()))


def key(entry: Entry) -> tuple[int, int]:
    return entry.priority, entry.seq


class World:
    """An engine that only moves when told to."""

    def __init__(
        self, politeness=None, judge: Callable[[Entry], Judgement] | None = None, **limits
    ):
        self.politeness = politeness if politeness is not None else FakePoliteness()
        self.frontier = Frontier(self.politeness, **limits)
        self.store = DictStore()
        self.now = 0.0
        self.judge = judge or (lambda entry: Ruling.GO)
        self.under_way: list[InFlight] = []
        self.finished: list[Entry] = []
        self.out: set[int] = set()  # in flight, put back, or finished and not committed
        self.retries: set[int] = set()
        self.log: list[str] = []

    # --- what happens

    def offer(self, host: str, *priorities: int) -> None:
        self.frontier.add(self.store.offer(host, *(priorities or (5,))), now=self.now)

    def take(self) -> list[InFlight]:
        """One turn of the loop: reads until nobody is hungry, then everything that may start."""
        started: list[InFlight] = []
        while True:
            for wish in self.frontier.needs_refill():
                entries = self.store.queued(wish.host, after=wish.after, limit=wish.limit)
                self.frontier.refill(wish, entries, now=self.now)
            starts, dropped = self.frontier.take(self.now, self.judge)
            for entry, _ in dropped:
                self._hand_out(entry)
                self.finished.append(entry)
                self.log.append(f"D{self.now:g}:{entry.host}/{entry.seq}")
            for start in starts:
                self._allow(start)
                name = start.item.url.partition("//")[2]
                self.log.append(
                    f"{'G' if isinstance(start.item, Entry) else 'E'}{self.now:g}:{name}"
                )
                self.under_way.append(start)
            started += starts
            assert len(self.under_way) == self.frontier.in_flight
            if not dropped and not self.frontier.needs_refill():
                return started

    def finish(self, start: InFlight, response: Response = OK) -> None:
        self.under_way.remove(start)
        self.politeness.report(start.permit, response, now=self.now)
        if isinstance(start.item, Entry):
            self.finished.append(start.item)
        self.frontier.done(start, now=self.now)

    def retry(self, start: InFlight, due: float) -> None:
        assert isinstance(start.item, Entry)
        self.under_way.remove(start)
        self.politeness.report(start.permit, Response(503, 0.01), now=self.now)
        self.frontier.put_back(start.item, due)
        self.retries.add(start.item.seq)
        self.frontier.done(start, now=self.now)

    def commit(self) -> None:
        self.store.remove(self.finished)
        self.frontier.committed(self.finished)
        self.out -= {entry.seq for entry in self.finished}
        self.finished.clear()

    def run(self, until: float = inf, latency_s: float = 0.0) -> str:
        """Time goes by; every request takes `latency_s`. Returns the log of all that started."""
        answers: list[tuple[float, InFlight]] = []
        while True:
            answers += [(self.now + latency_s, start) for start in self.take()]
            self.frontier.check()
            due = self.frontier.next_due(self.now)
            then = min([at for at, _ in answers] + ([due] if due is not None else []), default=inf)
            if then > until or then == inf:
                self.now = until if until < inf else self.now
                self.commit()
                return " ".join(self.log)
            self.now = max(self.now, then)
            for at, start in [answer for answer in answers if answer[0] <= self.now]:
                answers.remove((at, start))
                self.finish(start)
            self.commit()

    # --- what is promised

    def _allow(self, start: InFlight) -> None:
        """While an errand holds a host nothing else of it is sent."""
        held = [other.item.host for other in self.under_way if other.holds_host]
        assert start.item.host not in held, f"{start.item.url} was sent too early"
        if isinstance(start.item, Entry):
            self._hand_out(start.item)

    def _hand_out(self, entry: Entry) -> None:
        """Every entry that leaves was queued, is not out already, and is the first in order."""
        assert self.store.entries[entry.host][entry.seq].url == entry.url
        if entry.seq in self.retries:
            self.retries.remove(entry.seq)
            return
        assert entry.seq not in self.out, f"{entry.url} was handed out twice"
        self.out.add(entry.seq)
        waiting = [
            other
            for other in self.store.entries[entry.host].values()
            if other.seq not in self.out and not isinstance(self.judge(other), Later)
        ]
        assert all(key(entry) < key(other) for other in waiting), f"{entry.url} is out of order"


def robots_errand(entry: Entry) -> First:
    return First(
        RobotsRequest(f"https://{entry.host}/robots.txt", entry.host, f"https://{entry.host}")
    )
