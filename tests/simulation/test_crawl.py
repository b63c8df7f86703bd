"""Whole crawls in virtual time: what the crawler promises, on generated webs that go wrong."""

from __future__ import annotations

import pytest
from virtual.crawl import DAY_S, simulate_crawl
from virtual.fetcher import FakeFetcher, VirtualClock
from virtual.servers import Faults, Servers
from virtual.web import FORBIDDEN, GeneratedWeb, place_of

from mannerly.crawler.model import Request
from mannerly.crawler.settings import CrawlSettings
from mannerly.politeness import Permit, Settings, core
from mannerly.politeness.host import HostState
from mannerly.politeness.limits import NO_REQUESTED_LIMITS

LIMITS = (
    "",
    "",
    "bucket:2:4+retry-after",
    "fixed:8:4+retry-after-date",
    "concurrency:2:1.2",
    "knee:1:0.5",
)
FAULTS = Faults(timeout=0.002, error=0.004, refusal=0.004)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_thousand_hosts_are_crawled_whole_and_politely(seed: int) -> None:
    """With limits and faults, nothing is lost, doubled or sent too early, in two shards."""
    web = GeneratedWeb(hosts=2000, pages=2, forbids=True, limits=LIMITS, seed=seed)

    outcome = simulate_crawl(web, seed=seed, shards=2, faults=FAULTS, step_s=0.05, check_every=2000)

    assert outcome.is_finished
    assert not outcome.broken
    assert (outcome.lost, outcome.duplicates, outcome.too_early) == (0, 0, 0)
    assert outcome.pages + outcome.skipped.total() >= 0.99 * 3 * web.hosts
    assert outcome.handed_over > web.hosts / 2
    assert outcome.checks > 3


def test_days_of_long_delays_pass_in_a_moment() -> None:
    """A Crawl-delay of an hour is kept for two days, robots.txt being asked for anew each day."""
    web = GeneratedWeb(hosts=3, pages=48, crawl_delays_s=(3600.0,))

    outcome = simulate_crawl(web, check_every=20)

    assert outcome.is_finished
    assert outcome.virtual_s > 1.9 * DAY_S
    assert outcome.delivered == 3 * 48
    assert outcome.robots >= 6
    assert not outcome.broken
    assert outcome.too_early == 0


class Deaf(HostState):
    """A host that forgets one limit when it computes its next start, as a bug might."""

    __slots__ = ()
    deaf_to = ""

    def _reschedule(self) -> None:
        requested, strategy = self.requested, self.strategy
        if self.deaf_to == "crawl_delay":
            self.requested = NO_REQUESTED_LIMITS
        elif self.deaf_to == "pace":
            self.strategy = None
        super()._reschedule()
        self.requested, self.strategy = requested, strategy

    def _next_start(self) -> float:
        is_deaf = self.deaf_to == "retry_after"
        return self.base_at + self.delay_s if is_deaf else super()._next_start()

    def may_leave(self, permit: Permit, now: float) -> bool:
        return True


@pytest.mark.parametrize("deaf_to", ["", "crawl_delay", "pace", "retry_after"])
def test_the_crawlers_own_audit_sees_a_core_that_forgets_a_limit(
    deaf_to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its own record of what was asked for, so the core's error does not hide itself."""
    monkeypatch.setattr(Deaf, "deaf_to", deaf_to)
    if deaf_to:
        monkeypatch.setattr(core, "HostState", Deaf)
    web = GeneratedWeb(
        hosts=6, pages=40, limits=("", "bucket:0.4:2+retry-after"), crawl_delays_s=(0.0, 0.0, 4.0)
    )

    outcome = simulate_crawl(web, duration_s=600.0)

    assert outcome.pages > 50
    assert (outcome.too_early > 0) == bool(deaf_to)


@pytest.mark.parametrize(
    ("faults", "most_s", "most_requests"),
    [
        (Faults(refusal=1.0, retry_after_s=0), 4500.0, 250),  # 0: as if there were no header
        (Faults(refusal=1.0, retry_after_s=30), 4500.0, 250),
        (Faults(refusal=1.0, retry_after_s=3600), 600.0, 2),
        (Faults(error=1.0), 4500.0, 150),
        (Faults(timeout=1.0), 4500.0, 150),
    ],
)
def test_an_unreachable_web_is_given_up(
    faults: Faults, most_s: float, most_requests: float
) -> None:
    """Hosts that only refuse or fail end the crawl by themselves, after few requests each."""
    web = GeneratedWeb(hosts=2, pages=60, is_listed=True)
    settings = CrawlSettings(ignore_robots=True)

    outcome = simulate_crawl(web, settings, faults=faults, shards=2)

    assert outcome.is_finished
    assert outcome.virtual_s < most_s
    assert outcome.requests <= most_requests * web.hosts
    assert (outcome.delivered, outcome.lost) == (0, 0)
    assert {reason.split(":")[0] for reason in outcome.given_up} == {"host_retired"}
    assert (outcome.broken["gap"], outcome.broken["retry_after"]) == (0, 0)


def test_a_seed_decides_everything() -> None:
    """The same seed gives the same starts at the same instants; another seed gives others."""
    web = GeneratedWeb(hosts=60, pages=3, limits=LIMITS)

    first, again, other = (
        simulate_crawl(web, seed=seed, shards=2, faults=FAULTS) for seed in (7, 7, 8)
    )

    assert first == again
    assert first.fingerprint != other.fingerprint


def test_a_crawl_that_is_broken_off_still_knows_every_url() -> None:
    """When the time is up, what was not fetched is queued, and not finished is what it says."""
    web = GeneratedWeb(hosts=50, pages=20, crawl_delays_s=(10.0,))

    outcome = simulate_crawl(web, duration_s=60.0)

    assert not outcome.is_finished
    assert outcome.lost > 0  # in the queue
    assert outcome.duplicates == 0
    assert not outcome.broken


def test_a_window_of_a_long_queue_is_in_memory() -> None:
    """A home page with 1,000 links fills the store; of each host a window of 64 is kept."""
    web = GeneratedWeb(hosts=2, pages=1000, fan_out=1000)
    brisk = CrawlSettings(politeness=Settings(strategy="fixed", delay_s=0.1))

    outcome = simulate_crawl(web, brisk, check_every=50)

    assert outcome.is_finished
    assert outcome.delivered == 2 * 1000
    assert 32 < outcome.in_memory <= 2 * 64


def test_a_list_of_sites_is_crawled_whole_and_politely() -> None:
    """Seeds that come in slices, while there is room, are all fetched, each once and in peace."""
    web = GeneratedWeb(
        hosts=7_000, pages=2, is_listed=True, limits=LIMITS, crawl_delays_s=(0.0, 3.0)
    )

    outcome = simulate_crawl(web, faults=FAULTS, step_s=0.05, check_every=8_000)

    assert outcome.is_finished
    assert not outcome.broken
    assert (outcome.lost, outcome.duplicates, outcome.too_early) == (0, 0, 0)
    assert outcome.pages == 2 * 7_000
    assert outcome.robots >= 7_000


def test_a_web_of_any_shape_can_be_reached_from_its_first_page() -> None:
    """Every page of every host is linked, and a URL tells which page it is."""
    web = GeneratedWeb(hosts=30, pages=7, fan_out=3, forbids=True)

    reached, waiting = {web.start}, [web.start]
    while waiting:
        links = set(web.links(*place_of(waiting.pop()))) - reached
        reached |= links
        waiting += [url for url in links if FORBIDDEN not in url]

    assert len([url for url in reached if FORBIDDEN not in url]) == 30 * 7
    assert len([url for url in reached if FORBIDDEN in url]) == 30


def servers(clock: VirtualClock, **options: object) -> Servers:
    web = GeneratedWeb(hosts=2, pages=2, crawl_delays_s=(5.0,))
    choices = {"faults": Faults(), "latency_s": 0.1, "step_s": 0.0, "seed": 1} | options
    return Servers(web, clock, Settings(), **choices)  # type: ignore[arg-type]


def ask(fetcher: FakeFetcher, url: str) -> None:
    fetcher.start(Request(url, "", 5.0))


def test_the_servers_see_every_broken_promise() -> None:
    """A rude client is caught: no robots.txt, too soon, forbidden, and the same page twice."""
    clock = VirtualClock()
    watched = servers(clock)
    fetcher = FakeFetcher(clock, watched.answer)

    ask(fetcher, "https://h0.example/")
    ask(fetcher, "https://h0.example/robots.txt")
    fetcher.wait(1.0)
    fetcher.wait(1.0)
    clock.advance(1.0)
    ask(fetcher, "https://h0.example/")
    clock.advance(10.0)
    ask(fetcher, "https://h0.example/private/")

    assert watched.seen.broken == {"gap": 2, "forbidden": 2, "repeated": 1}


def test_the_servers_see_a_retry_after_that_is_not_kept() -> None:
    """A start after a refusal was received, and before the time it named, is counted."""
    clock = VirtualClock()
    watched = servers(clock, faults=Faults(refusal=1.0, retry_after_s=30))
    fetcher = FakeFetcher(clock, watched.answer)

    for at in (0.0, 20.0, 80.0):
        clock.advance(at - clock.now)
        ask(fetcher, "https://h0.example/robots.txt")

    assert watched.seen.broken == {"retry_after": 1}
