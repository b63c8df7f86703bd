"""A world for frontiers: a store in a dict, a simple politeness core, and the duties of a shard.

`World` does for a frontier exactly what the shard owes it, writes down what happened, and holds
the frontier to its promises at every step: nothing is taken twice, everything in order, no
page while its host's robots.txt is on its way, never more requests than there is room for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.frontier.core import Frontier
from mannerly.crawler.host.hosts import Hosts
from mannerly.crawler.model import (
    GO,
    Entry,
    Judgement,
    Later,
    RobotsRequest,
    Unknown,
)
from mannerly.crawler.web.urls import host_key_of
from mannerly.politeness.model import Grant, Reason, Refuse, Response, Wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.frontier.model import Judge, Need, Taken
    from mannerly.crawler.host.inflight import InFlight

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

    @property
    def delay_s(self) -> float:
        return self.gap_s


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
        """By the name of a host or of a group, as the politeness core does."""
        group = self.groups.get(host) or self.group(host)
        return FakeSnapshot(group.key, group.in_flight)

    def report(self, permit: FakePermit, response: Response, *, now: float) -> None:
        assert not permit.is_settled
        permit.is_settled = True
        permit.host.in_flight -= 1


@dataclass
class FakeSnapshot:
    host: str
    in_flight: int


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
            new.append(Entry(seq, url, host, 1, priority, None, 0))
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
    """A shard that only moves when told to.

    Args:
        judge: may answer `Unknown`: then the origin's robots.txt is asked for.
        load: returns whether an origin's rules come from the store, so that no request is needed.
        max_in_flight: requests under way.
        max_robots: of these, for a robots.txt.
    """

    def __init__(
        self,
        politeness=None,
        judge: Judge | None = None,
        *,
        load: Callable[[str], bool] = lambda origin: False,
        max_in_flight: int = 512,
        max_robots: int = 64,
        **limits,
    ):
        self.politeness = politeness if politeness is not None else FakePoliteness()
        self.hosts = Hosts()
        self.frontier = Frontier(self.politeness, self.hosts, **limits)
        self.store = DictStore()
        self.now = 0.0
        self.judge = judge or (lambda entry, now: GO)
        self.load = load
        self.max_in_flight = max_in_flight
        self.max_robots = max_robots
        self.widening = 1 << 30  # connections that a `take` may add to those of busy hosts
        self.under_way: list[InFlight] = []
        self.fetching: set[str] = set()  # origins whose robots.txt was asked for and has not come
        self.finished: list[Entry] = []
        self.out: set[int] = set()  # in flight, put back, or finished and not committed
        self.retries: set[int] = set()
        self.log: list[str] = []

    # --- what happens

    def offer(self, host: str, *priorities: int) -> None:
        self.frontier.add(self.store.offer(host, *(priorities or (5,))), now=self.now)

    def know(self, *hosts: str) -> None:
        """Count the requests of these hosts, as a shard does for all that it has recalled."""
        for host in hosts:
            assert self.hosts.meet(host).own_counts is not None

    @property
    def room(self) -> int:
        return self.max_in_flight - len(self.under_way)

    @property
    def robots_room(self) -> int:
        return self.max_robots - self.robots_under_way

    @property
    def robots_under_way(self) -> int:
        return sum(isinstance(start.item, RobotsRequest) for start in self.under_way)

    def take(self) -> list[InFlight]:
        """Start everything that may start: rules and queues are read in between."""
        started: list[InFlight] = []
        while True:
            taken = self._take()
            started += taken.starts
            for need in taken.unknown:
                self.provide(need)
            for wish in taken.refills:
                entries = self.store.queued(wish.host, after=wish.after, limit=wish.limit)
                self.frontier.refill(wish, entries, now=self.now)
            if not taken.dropped and not taken.unknown and not taken.refills:
                return started

    def _take(self) -> Taken:
        room, robots_room = self.room, self.robots_room
        taken = self.frontier.take(
            self.now, self._judge, room=room, robots_room=robots_room, widening=self.widening
        )
        robots = [start for start in taken.starts if isinstance(start.item, RobotsRequest)]
        assert len(taken.starts) <= max(0, room)
        assert len(robots) <= max(0, robots_room)
        for entry, _ in taken.dropped:
            self._hand_out(entry)
            self.finished.append(entry)
            self.log.append(f"D{self.now:g}:{entry.host}/{entry.seq}")
        for start in taken.starts:
            self._allow(start)
            name = start.item.url.partition("//")[2]
            self.log.append(f"{'G' if isinstance(start.item, Entry) else 'R'}{self.now:g}:{name}")
            self.under_way.append(start)
            if start.host.counts is not None:
                start.host.counts.requests += 1
        return taken

    def _judge(self, entry: Entry, now: float) -> Judgement:
        """Pages wait for rules that were asked for: as `RobotsGate.judge` has it."""
        return Later(None) if origin_of(entry) in self.fetching else self.judge(entry, now)

    def provide(self, need: Need) -> None:
        """Load the rules of an origin, or ask for them."""
        assert host_key_of(need.origin + "/") == need.host
        if self.load(need.origin):
            self.wake(need.host)
        else:
            self.request(need.origin)

    def request(self, origin: str) -> None:
        assert origin not in self.fetching
        self.fetching.add(origin)
        request = RobotsRequest(f"{origin}/robots.txt", host_key_of(origin + "/"), origin)
        self.frontier.request(request, now=self.now)

    def finish(self, start: InFlight, response: Response = OK) -> None:
        self.under_way.remove(start)
        self.politeness.report(start.permit, response, now=self.now)
        if isinstance(start.item, Entry):
            self.finished.append(start.item)
        else:
            self.robots_answered(start.item)
        self._done(start)

    def wake(self, host: str) -> None:
        self.frontier.wake(self.hosts.get(host), now=self.now)

    def _done(self, start: InFlight) -> None:
        start.host.end(start.item.kind)
        self.frontier.done(start, now=self.now)
        self.hosts.release(start.host)

    def robots_answered(self, request: RobotsRequest) -> None:
        """The rules of the origin are known: its pages may be judged again."""
        self.fetching.discard(request.origin)
        self.wake(host_key_of(request.origin + "/"))

    def retry(self, start: InFlight, due: float) -> None:
        assert isinstance(start.item, Entry)
        self.under_way.remove(start)
        self.politeness.report(start.permit, Response(503, 0.01), now=self.now)
        self.frontier.put_back(start.item, due)
        self.retries.add(start.item.seq)
        self._done(start)

    def commit(self) -> None:
        self.store.remove(self.finished)
        self.frontier.committed(self.finished)
        self.out -= {entry.seq for entry in self.finished}
        self.finished.clear()

    def next_due(self) -> float | None:
        """When to call `take` again; None while only an answer, a find or a wake can help."""
        if self.room <= 0:
            return None
        return self.frontier.next_due(self.now, robots_room=self.robots_room)

    def run(self, until: float = inf, latency_s: float = 0.0) -> str:
        """Time goes by; every request takes `latency_s`. Returns the log of all that started."""
        answers: list[tuple[float, InFlight]] = []
        while True:
            answers += [(self.now + latency_s, start) for start in self.take()]
            self.frontier.check()
            due = self.next_due()
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
        """While a host's own robots.txt is on its way nothing else of it is sent."""
        held = [other.item.host for other in self.under_way if is_own_robots(other)]
        assert start.item.host not in held, f"{start.item.url} was sent too early"
        if isinstance(start.item, Entry):
            assert origin_of(start.item) not in self.fetching, f"{start.item.url}: no rules yet"
            self._hand_out(start.item)

    def _hand_out(self, entry: Entry) -> None:
        """Every entry that leaves was queued, is not out already, and is the first in order."""
        assert self.store.entries[entry.host][entry.seq].url == entry.url
        if entry.seq in self.retries:
            self.retries.remove(entry.seq)
            return
        assert entry.seq not in self.out, f"{entry.url} was taken twice"
        self.out.add(entry.seq)
        waiting = [
            other
            for other in self.store.entries[entry.host].values()
            if other.seq not in self.out and not isinstance(self._judge(other, self.now), Later)
        ]
        assert all(key(entry) < key(other) for other in waiting), f"{entry.url} is out of order"


def is_own_robots(start: InFlight) -> bool:
    """Whether a request asks for the robots.txt of its own host; after a redirect it does not."""
    return isinstance(start.item, RobotsRequest) and start.item.hops == 0


def origin_of(entry: Entry) -> str:
    return entry.url[: entry.url.index("/", 8)]


def rules_unknown(entry: Entry) -> Unknown:
    return Unknown(origin_of(entry))
