"""Two crawls on one host: one sends, the other waits for its turn, with one pace for both."""

from __future__ import annotations

from itertools import count, pairwise
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.model import LocalError, Now
from mannerly.hosts import open_host_memory
from mannerly.politeness import Settings
from mannerly.politeness.model import Reason

from .shard_world import EPOCH_S, ShardWorld, brisk, flight_of

if TYPE_CHECKING:
    from pathlib import Path

NAMES = count()
URLS = [f"http://a.example/{n}" for n in range(500)]


class Crawls:
    """Crawls that share a memory, and the log of their server."""

    def __init__(self, *names: str, delay_s: float = 0.5, retry_after_s: int = 0) -> None:
        self.memory = f"memory:shared-{next(NAMES)}"
        pace = Settings(strategy="fixed", delay_s=delay_s, max_rate="unlimited", seed=1)
        self.settings = brisk(politeness=pace)
        self.now = Now(0.0, EPOCH_S)
        self.worlds = {name: self.world(name) for name in names}
        self.log: list[tuple[float, str]] = []
        self.retry_after_s = retry_after_s  # of the next answer
        self.stopped_s: dict[str, float] = {}  # after it read its clock, in every turn

    def world(self, name: str) -> ShardWorld:
        return ShardWorld(
            *URLS, settings=self.settings, memory=self.memory, crawl=name, now=self.now
        )

    def run(self, seconds: float, step_s: float = 0.1) -> None:
        for _ in range(round(seconds / step_s)):
            self.now = Now(self.now.mono + step_s, self.now.wall + step_s)
            for name, world in self.worlds.items():
                world.now = self.now
                self._step(name, world)

    def _step(self, name: str, world: ShardWorld) -> None:
        stopped_s = self.stopped_s.get(name, 0.0)
        read = Now(self.now.mono - stopped_s, self.now.wall - stopped_s)
        for request in world.shard.start_due(read, 99):
            flight = flight_of(request)
            if not world.shard.may_leave(flight, self.now.mono, ""):
                world.answer(request, error=LocalError.HELD)
                continue
            self.log.append((self.now.mono, name))
            world.shard.sent(flight, self.now.mono)
            if request.url.endswith("robots.txt"):
                world.answer(request, 404)
            elif self.retry_after_s:
                world.answer(request, 429, retry_after=str(self.retry_after_s))
                self.retry_after_s = 0
            else:
                world.answer(request)
        world.shard.commit(read)
        world.shard.tick(read)
        assert world.leases is not None
        world.leases.tick(read)
        assert world.shard.contacts.shared is not None
        world.shard.contacts.shared.check()

    def counts(self) -> dict[str, int]:
        return {name: sum(by == name for _, by in self.log) for name in self.worlds}

    def gaps(self) -> list[float]:
        times = [at for at, _ in self.log]
        return [after - before for before, after in pairwise(times)]


def test_two_crawls_share_one_pace_and_take_turns() -> None:
    crawls = Crawls("x", "y")
    crawls.run(120.0)

    assert min(crawls.gaps()) >= 0.5 - 1e-6
    assert len(crawls.log) > 0.85 * 240
    counts = crawls.counts()
    assert counts["x"] == pytest.approx(counts["y"], rel=0.2)


def test_five_crawls_have_equal_shares_in_five_minutes() -> None:
    crawls = Crawls(*"vwxyz")
    crawls.run(300.0, step_s=0.25)

    assert min(crawls.gaps()) >= 0.5 - 1e-6
    counts = crawls.counts()
    share = len(crawls.log) / 5
    assert all(abs(each - share) < 0.2 * share for each in counts.values()), counts
    for name in counts:
        times = [0.0, *(at for at, by in crawls.log if by == name)]
        waits = [after - before for before, after in pairwise(times)]
        assert max(waits) < 60.0


@pytest.mark.parametrize("late", ["x", "y"])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_crawl_that_is_stopped_after_it_read_its_clock_sends_nothing_too_early(
    late: str, kind: str, tmp_path: Path
) -> None:
    """Whatever it looked at, the other may have sent, released or taken over since."""
    crawls = Crawls()
    if kind == "file":
        crawls.memory = str(tmp_path / "hosts.sqlite")
    crawls.worlds = {name: crawls.world(name) for name in ("x", "y")}
    crawls.stopped_s = {late: 0.3}
    crawls.run(60.0)

    assert min(crawls.gaps()) >= 0.5 - 1e-6
    assert min(crawls.counts().values()) > 20


def test_the_one_that_waits_says_for_whom() -> None:
    crawls = Crawls("x", "y")
    crawls.run(5.0)
    waiting = crawls.worlds["y"]

    assert crawls.counts()["y"] == 0
    assert waiting.shard.frontier.snapshot(5.0).waiting == {Reason.SHARED: 1}
    host = waiting.shard.hosts.get("a.example")
    assert waiting.shard.contacts.shared is not None
    assert host is not None
    assert waiting.shard.contacts.shared.holder_of(host) == "crawl-x"


def test_a_retry_after_is_kept_by_whoever_comes_next() -> None:
    crawls = Crawls("x", "y")
    crawls.run(6.0)
    crawls.retry_after_s = 30
    asked_at = crawls.now.mono
    crawls.run(60.0)

    (refused,) = [at for at, _ in crawls.log if at >= asked_at][:1]
    after = [at for at, _ in crawls.log if at > refused]
    assert min(after) - refused >= 30.0
    assert {by for at, by in crawls.log if at > refused} == {"x", "y"}


def test_a_host_is_handed_over_when_its_requests_are_answered() -> None:
    """The last answer may ask for a pause, which holds for the next crawl."""
    crawls = Crawls("x", "y")
    crawls.run(8.0)
    holder = crawls.worlds.pop("x")
    holder.now = crawls.now = Now(crawls.now.mono + 0.5, crawls.now.wall + 0.5)
    (slow,) = holder.start(1)
    for _ in range(100):
        crawls.run(0.1)
        holder.now = crawls.now
        assert holder.leases is not None
        holder.leases.tick(holder.now)
    before = crawls.counts()["y"]
    holder.answer(slow, 429, retry_after="30")
    answered_at = crawls.now.mono
    crawls.worlds["x"] = holder
    crawls.run(50.0)

    assert before == 0
    assert min(at for at, _ in crawls.log if at > answered_at) >= answered_at + 30.0


@pytest.mark.parametrize("delay_s", [0.5, 20.0])
def test_after_a_death_the_other_goes_on(delay_s: float) -> None:
    """Within a minute, and not earlier than the gap in force after the takeover."""
    crawls = Crawls("x", "y", delay_s=delay_s)
    crawls.run(5.0)
    del crawls.worlds["x"]
    died_at = crawls.now.mono
    crawls.run(60.0)

    first = next(at for at, by in crawls.log if by == "y")
    last = max(at for at, by in crawls.log if by == "x")
    assert died_at + 3.0 < first < died_at + 55.0
    assert first - last >= delay_s


def test_a_retry_after_outlives_the_crawl_that_got_it() -> None:
    crawls = Crawls("x", "y")
    crawls.run(2.0)
    crawls.retry_after_s = 40
    crawls.run(1.0)
    refused = max(at for at, _ in crawls.log)
    del crawls.worlds["x"]
    crawls.run(60.0)

    assert min(at for at, by in crawls.log if by == "y") >= refused + 40.0


def test_a_crawl_that_was_stopped_for_long_sends_nothing_when_it_wakes() -> None:
    """Also what was connecting when it was stopped; then it waits for its turn again."""
    crawls = Crawls("x", "y")
    crawls.run(5.0)
    sleeper = crawls.worlds.pop("x")
    sleeper.now = Now(crawls.now.mono + 0.5, crawls.now.wall + 0.5)
    (connecting,) = sleeper.shard.start_due(sleeper.now, 1)
    crawls.run(40.0)
    flight = flight_of(connecting)

    assert crawls.log[-1][1] == "y"
    assert not sleeper.shard.may_leave(flight, crawls.now.mono, "")
    sleeper.now = crawls.now
    sleeper.answer(connecting, error=LocalError.HELD)
    crawls.worlds["x"] = sleeper
    crawls.run(60.0)
    assert min(crawls.gaps()) >= 0.5 - 1e-6
    assert {by for at, by in crawls.log if at > 45.0} == {"x", "y"}


def test_a_paused_crawl_does_not_keep_others_waiting() -> None:
    """Neither one that is paused as a whole, nor one that has paused the host."""
    crawls = Crawls("x", "y")
    crawls.run(5.0)
    paused = crawls.worlds["x"]
    assert paused.leases is not None
    paused.leases.is_resting = True
    paused.shard.politeness.pause("a.example", now=crawls.now.mono)
    crawls.run(30.0)
    alone = [by for at, by in crawls.log if at > 7.0]
    paused.leases.is_resting = False
    crawls.run(30.0)
    still = [by for at, by in crawls.log if at > 37.0]

    assert alone.count("y") > 0.9 * 28.0 / 0.5
    assert {*alone, *still} == {"y"}


def test_a_crawl_that_is_done_gives_the_host_away_at_once() -> None:
    crawls = Crawls("x")
    crawls.run(3.0)
    done = crawls.worlds.pop("x")
    assert done.leases is not None
    done.leases.close(crawls.now)
    crawls.worlds["y"] = crawls.world("y")
    crawls.run(1.0)

    assert crawls.counts()["y"] >= 1
    assert min(crawls.gaps()) >= 0.5 - 1e-6


def test_a_killed_crawl_goes_on_at_once_when_it_is_resumed() -> None:
    """Its own leases do not keep it waiting; the gap counts from then."""
    crawls = Crawls("x")
    crawls.run(3.0)
    crawls.worlds["x"] = crawls.world("x")
    resumed_at = crawls.now.mono
    crawls.run(2.0)

    times = [at for at, _ in crawls.log if at > resumed_at]
    assert resumed_at + 0.5 <= times[0] < resumed_at + 1.0


def test_a_new_crawl_starts_with_what_others_have_learned() -> None:
    crawls = Crawls("x")
    crawls.settings = brisk(politeness=Settings(seed=1))
    crawls.worlds = {"x": crawls.world("x")}
    crawls.run(30.0)
    world = crawls.worlds.pop("x")
    assert world.leases is not None
    learned = world.shard.politeness.delay_s("a.example")
    world.leases.close(crawls.now)
    new = crawls.worlds["y"] = crawls.world("y")
    crawls.run(1.0)

    started = new.shard.politeness.delay_s("a.example")
    (budget,) = open_host_memory(crawls.memory).budgets(["a.example"], crawls.now).values()
    assert learned < 0.5
    assert started == pytest.approx(learned, rel=0.7)
    assert budget.learned_by == "crawl-x"


def small_registry(name: str, memory: str, hosts: int) -> ShardWorld:
    """A crawl of many hosts whose politeness core keeps ten of them."""
    pace = Settings(
        strategy="fixed", delay_s=0.5, max_rate="unlimited", seed=1, max_hosts=10, idle_ttl_s=1.0
    )
    urls = [f"http://h{n}.example/" for n in range(hosts)]
    return ShardWorld(*urls, settings=brisk(politeness=pace), memory=memory, crawl=name)


def step(world: ShardWorld) -> None:
    """Answer everything that is due, commit, and let a moment pass."""
    world.wait(0.5)
    for request in world.start(4):
        world.answer(request, 404)
    world.shard.commit(world.now)
    world.shard.tick(world.now)
    assert world.leases is not None
    world.leases.tick(world.now)


def test_hosts_that_the_core_forgets_are_given_back() -> None:
    """Leases are bounded by the registry of the core, not by the hosts that were ever met."""
    memory = f"memory:shared-{next(NAMES)}"
    world = small_registry("x", memory, hosts=200)

    for _ in range(200):
        step(world)

    names = [f"h{n}.example" for n in range(200)]
    assert world.stats.pages == 200
    assert len(open_host_memory(memory).in_use(names, world.now)) <= 10


def test_a_host_that_was_given_back_is_claimed_again() -> None:
    """Its next page is asked for with a lease, and its gap counts from when it was given back."""
    memory = f"memory:shared-{next(NAMES)}"
    world = small_registry("x", memory, hosts=60)
    for _ in range(60):
        step(world)
    assert not open_host_memory(memory).in_use(["h0.example"], world.now)
    (budget,) = open_host_memory(memory).budgets(["h0.example"], world.now).values()
    assert budget.sent_s_ago is not None

    world.offer("http://h0.example/again")
    for _ in range(6):
        step(world)

    assert world.stats.pages == 61
    assert open_host_memory(memory).in_use(["h0.example"], world.now)
