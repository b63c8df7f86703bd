"""The frontier under any sequence of events: nothing is lost, doubled, out of order or stuck."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.crawler.frontier.frontier_world import FakePoliteness, World, rules_unknown

from mannerly.crawler.model import GO, Drop, Entry, Judgement, Later, RobotsRequest
from mannerly.politeness import Politeness, Response, Settings

NAMES = [f"{name}.{site}" for name in "abcd" for site in ("x", "y")]
HOSTS = st.sampled_from(NAMES)
PRIORITIES = st.lists(st.integers(0, 5), min_size=1, max_size=12)


class Crawl(RuleBasedStateMachine):
    """A crawl in which anything may happen next."""

    heap_limit = 3

    def make_politeness(self) -> object:
        return FakePoliteness(gap_s=1.0, limit=2, is_grouped=True)

    def __init__(self) -> None:
        super().__init__()
        self.known: set[str] = set()  # hosts whose rules are in memory
        self.stored: set[str] = set()  # hosts whose rules are in the store
        self.held_until: dict[str, float | None] = {}
        self.world = World(
            self.make_politeness(),
            self.judge,
            load=self.load,
            per_host_window=4,
            max_in_flight=5,
            max_robots=2,
            heap_limit=self.heap_limit,
            memory_limit=9,
        )

    def judge(self, entry: Entry, now: float) -> Judgement:
        if entry.seq % 7 == 0:
            return Drop("forbidden")
        if entry.host not in self.known:
            return rules_unknown(entry)
        if entry.seq % 5 == 0 and entry.host in self.held_until:
            until = self.held_until[entry.host]
            if until is None or until > now:
                return Later(until)
        return GO

    def load(self, origin: str) -> bool:
        host = origin.removeprefix("https://")
        if host in self.stored:
            self.known.add(host)
        return host in self.known

    # --- events

    @rule(host=HOSTS, priorities=PRIORITIES)
    def find_urls(self, host: str, priorities: list[int]) -> None:
        self.world.offer(host, *priorities)

    @rule()
    def take(self) -> None:
        self.world.take()

    @rule(connections=st.sampled_from([0, 1, 1 << 30]))
    def widen(self, connections: int) -> None:
        self.world.widening = connections

    @rule(seconds=st.sampled_from([0.0, 0.25, 1.0, 30.0]))
    def wait(self, seconds: float) -> None:
        self.world.now += seconds

    @precondition(lambda self: self.world.under_way)
    @rule(data=st.data(), status=st.sampled_from([200, 200, 200, 429, 503]))
    def answer(self, data: st.DataObject, status: int) -> None:
        start = data.draw(st.sampled_from(self.world.under_way))
        if isinstance(start.item, RobotsRequest):
            self.known.add(start.item.host)
        self.world.finish(start, Response(status, 0.01))

    @precondition(lambda self: any(isinstance(s.item, Entry) for s in self.world.under_way))
    @rule(data=st.data(), seconds=st.sampled_from([0.0, 3.0]))
    def fail(self, data: st.DataObject, seconds: float) -> None:
        pages = [start for start in self.world.under_way if isinstance(start.item, Entry)]
        self.world.retry(data.draw(st.sampled_from(pages)), self.world.now + seconds)

    @rule()
    def commit(self) -> None:
        self.world.commit()

    @rule(host=HOSTS)
    def follow_a_redirect(self, host: str) -> None:
        request = RobotsRequest(f"https://{host}/elsewhere", host, "https://origin", hops=1)
        self.world.frontier.request(request, now=self.world.now)

    @rule(host=HOSTS, seconds=st.sampled_from([None, 2.0]))
    def hold(self, host: str, seconds: float | None) -> None:
        self.held_until[host] = None if seconds is None else self.world.now + seconds

    @rule(host=HOSTS)
    def let_go(self, host: str) -> None:
        self.held_until.pop(host, None)
        self.world.wake(host)

    @rule(host=HOSTS, is_stored=st.booleans())
    def expire(self, host: str, *, is_stored: bool) -> None:
        """The rules leave memory; they have to be asked for, or are read from the store."""
        if f"https://{host}" not in self.world.fetching:
            self.known.discard(host)
            (self.stored.add if is_stored else self.stored.discard)(host)

    @rule(host=HOSTS)
    def drop(self, host: str) -> None:
        world = self.world
        is_away = {start.item.seq for start in world.under_way if isinstance(start.item, Entry)}
        is_away |= {entry.seq for entry in world.finished}
        queued = [
            entry for seq, entry in world.store.entries.get(host, {}).items() if seq not in is_away
        ]

        dropped = world.frontier.drop_hosts({host}, now=world.now)

        assert abs(dropped.entries - len(queued)) <= 1  # a full read leaves one in doubt
        world.retries -= {entry.seq for entry in queued}
        world.finished += queued
        world.commit()
        for request in dropped.requests:
            if request.hops == 0:  # nobody will ask: its pages must not wait for it
                self.known.add(host)
            world.robots_answered(request)

    @rule(host=HOSTS)
    def pause(self, host: str) -> None:
        self.set_paused(host, is_paused=True)

    @rule(host=HOSTS)
    def revive(self, host: str) -> None:
        self.set_paused(host, is_paused=False)
        for name in NAMES:
            self.world.wake(name)

    def set_paused(self, host: str, *, is_paused: bool) -> None:
        self.world.politeness.group(host).is_paused = is_paused

    # --- promises

    @invariant()
    def every_host_is_in_its_place(self) -> None:
        self.world.frontier.check()
        assert len(self.world.under_way) <= 5
        assert self.world.robots_under_way <= 2

    def teardown(self) -> None:
        """Whatever happened before: let everybody go, and every URL is fetched or dropped."""
        world = self.world
        self.held_until.clear()
        for host in NAMES:
            self.set_paused(host, is_paused=False)
            world.wake(host)
        for _ in range(2000):
            world.take()
            for start in list(world.under_way):
                self.known.add(start.item.host)
                world.finish(start)
            world.commit()
            world.frontier.check()
            if not world.store and world.next_due() is None:
                break
            world.now += 1.0
        assert len(world.store) == 0
        assert world.frontier.queued == 0
        assert world.frontier.snapshot(world.now).active == 0
        assert world.fetching == set()


class CrowdedCrawl(Crawl):
    """The same with long lines: one request at a time for four hosts, and a place for all."""

    heap_limit = 8

    def make_politeness(self) -> object:
        return FakePoliteness(gap_s=0.25, limit=1, is_grouped=True)


class RealCrawl(Crawl):
    """The same, on the politeness core itself: breakers, Retry-After, learning."""

    def make_politeness(self) -> object:
        return Politeness(Settings(seed=1, retire_after_opens=10**6))

    def set_paused(self, host: str, *, is_paused: bool) -> None:
        change = self.world.politeness.pause if is_paused else self.world.politeness.revive
        change(host, now=self.world.now)


class SiteCrawl(RealCrawl):
    """The same, with one budget a site."""

    def make_politeness(self) -> object:
        return Politeness(
            Settings(seed=1, group_by="site", retire_after_opens=10**6),
            group_of=lambda host: host.partition(".")[2],
        )


RUNS = settings(max_examples=25, stateful_step_count=60, deadline=None)

TestCrawl = Crawl.TestCase
TestCrawl.settings = RUNS
TestCrowdedCrawl = CrowdedCrawl.TestCase
TestCrowdedCrawl.settings = RUNS
TestRealCrawl = RealCrawl.TestCase
TestRealCrawl.settings = RUNS
TestSiteCrawl = SiteCrawl.TestCase
TestSiteCrawl.settings = RUNS
