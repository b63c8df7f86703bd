"""The parts that a control record changes, each by itself: no process, mostly no socket."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, says

import mannerly
from mannerly.crawler.control import (
    AddSeeds,
    Exclude,
    HostForget,
    HostPause,
    HostResume,
    HostSet,
    SetOption,
    Stop,
)
from mannerly.crawler.fetch.curl import CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.fetch.settings import FetchSettings
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.host.hosts import Hosts
from mannerly.crawler.host.inflight import flight_of
from mannerly.crawler.model import Candidate, Now, Request
from mannerly.crawler.page.links import LinkRules
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.ending import Ending, RunLimits
from mannerly.crawler.runtime.governor import FIRST, Governor
from mannerly.crawler.runtime.run import Run
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store import create_crawl, open_crawl, wipe
from mannerly.crawler.store.base import Manifest, ShardOptions
from mannerly.crawler.web.scope import Scope
from mannerly.politeness import Grant, Refuse, Settings

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.crawler.control import Control
    from mannerly.crawler.store.base import CrawlStore

HOST, OTHER = "a.example", "b.example"
SEEDS = (f"https://{HOST}/", f"https://{OTHER}/")
LOCATION = "memory:parts"
PACE = Settings(strategy="fixed", delay_s=0.1, max_rate=2.0)


@pytest.fixture
def store() -> Iterator[CrawlStore]:
    manifest = Manifest.new(seeds=list(SEEDS), settings={}, shards=1, created_at=0.0)
    crawl = create_crawl(LOCATION, manifest)
    yield crawl
    crawl.close()
    wipe(LOCATION)


def shard_of(store: CrawlStore, *, is_resumed: bool = False, **options: Any) -> Shard:
    """Return a shard of the crawl; call `close` of its store before the next one."""
    settings = CrawlSettings(**{"politeness": PACE, "seeding": "none"} | options)
    rules = LinkRules(Scope(SEEDS), "mannerly", 10)
    claimed = store.claim(0, ShardOptions(1000))
    return Shard(
        0, claimed, Sharding(1), settings, rules, is_resumed=is_resumed, now=Now(0.0, 1000.0)
    )


def at(seconds: float) -> Now:
    return Now(seconds, 1000.0 + seconds)


def obey(shard: Shard, *orders: Control, now: float = 0.0) -> None:
    for number, order in enumerate(orders, start=1):
        shard.control(number, order, at(now))


def gap_s(shard: Shard, host: str = HOST) -> float:
    shard.politeness.reserve(host, now=1e6)
    seen = shard.politeness.host(host)
    assert seen is not None
    return seen.delay_s


# ---------------------------------------------------------------------- the shard


def test_option_that_is_set_later_reaches_a_host_with_orders_of_its_own(store: CrawlStore) -> None:
    """`host set --per-host` says nothing about the rate: that stays the crawl's."""
    shard = shard_of(store)
    obey(
        shard,
        HostSet(HOST, per_host=1),
        HostSet(OTHER, max_rate=4.0),
        SetOption("max_rate", 0.5),
    )

    assert (gap_s(shard), gap_s(shard, OTHER)) == (2.0, 0.25)
    assert shard.politeness.settings_of(HOST).max_concurrency == 1


def test_old_resume_does_not_bring_back_a_host_that_was_given_up_since(store: CrawlStore) -> None:
    """It is read again in every run, to end the pause before it."""
    orders = (HostPause(HOST), HostResume(HOST))
    shard = shard_of(store)
    obey(shard, *orders)
    shard.politeness.retire(HOST, "5 failures in a row", now=1.0)
    shard.tick(at(1.0))
    shard.commit(at(1.0))
    shard.store.close()

    again = shard_of(store, is_resumed=True)
    obey(again, *orders, now=2.0)
    reserved = again.politeness.reserve(HOST, now=1e6)
    host = again.hosts.get(HOST)
    assert host is not None
    kept = host.given_up
    again.control(3, HostResume(HOST), at(3.0))

    assert kept == "5 failures in a row"
    assert isinstance(reserved, Grant), "the pause is over; the record keeps its URLs back"
    assert host.given_up is None


def test_paused_host_stays_paused_in_the_next_run(store: CrawlStore) -> None:
    """Lasting records are added up at every start."""
    shard = shard_of(store)
    obey(shard, HostPause(HOST))
    shard.commit(at(0.0))
    shard.store.close()
    again = shard_of(store, is_resumed=True)
    obey(again, HostPause(HOST))

    assert isinstance(again.politeness.reserve(HOST, now=1e6), Refuse)


def test_forgetting_acts_once(store: CrawlStore) -> None:
    """What is learned afterwards is kept by the next run."""
    shard = shard_of(store, politeness=Settings(strategy="linear"))
    obey(shard, HostForget(HOST))
    shard.commit(at(0.0))
    shard.store.close()

    again = shard_of(store, politeness=Settings(strategy="linear"), is_resumed=True)
    again.politeness.robots(HOST, crawl_delay_s=9.0, now=0.0)
    obey(again, HostForget(HOST))

    assert gap_s(again) == 9.0


def test_forgetting_a_host_forgets_what_was_learned_of_its_site(store: CrawlStore) -> None:
    """With `group_by` site, in this run and in the next one, which knows nothing of its pace."""
    pace = Settings(strategy="linear", group_by="site")
    host = f"www.{HOST}"
    shard = shard_of(store, politeness=pace)
    shard.given_up.recall(host, at(0.0))
    shard.politeness.robots(host, crawl_delay_s=9.0, now=0.0)
    shard.commit(at(0.0))
    kept = store.read(0).host(HOST)
    obey(shard, HostForget(host))
    shard.commit(at(1.0))
    shard.store.close()

    again = shard_of(store, politeness=pace, is_resumed=True)
    again.given_up.recall(host, at(2.0))

    assert kept is not None
    assert kept.crawl_delay_s == 9.0
    assert again.politeness.delay_s(host) < 9.0


def test_seeds_are_added_once_but_stay_in_scope(store: CrawlStore) -> None:
    """A second shard store of the same crawl knows that the record was acted on."""
    new = "https://c.example/x"
    shard = shard_of(store)
    obey(shard, AddSeeds((new,)))
    added = [candidate.url for candidate in shard.pending.batch.found]
    shard.commit(at(0.0))
    shard.store.close()

    again = shard_of(store, is_resumed=True)
    obey(again, AddSeeds((new,)))

    assert added == [new]
    assert again.pending.batch.found == []
    assert again.routes.rules.scope.judge("https://c.example/y", 1) is None


def test_many_seeds_are_added_in_one_step(store: CrawlStore) -> None:
    """The scope is made once, not once for each of them: 20,000 took minutes."""
    shard = shard_of(store)
    urls = tuple(f"https://h{number}.example/" for number in range(20_000))
    obey(shard, AddSeeds(urls))

    assert len(shard.routes.rules.scope.seeds) == 20_002


def test_seed_that_is_excluded_is_not_added(store: CrawlStore) -> None:
    """Exclude binds seeds, too."""
    shard = shard_of(store)
    obey(shard, Exclude("*/private/*"), AddSeeds((f"https://{HOST}/private/x",)))

    assert shard.pending.batch.found == []


def test_hosts_of_a_group_are_woken_together(store: CrawlStore) -> None:
    """With `group_by`, a pause of one host holds for its site, and so does its end."""
    names = ("www.site.example", "api.site.example")
    pace = Settings(strategy="fixed", delay_s=0.1, group_by="site")
    shard = shard_of(store, politeness=pace, ignore_robots=True)
    shard.offer([Candidate(f"https://{name}/", name, 0, 1, None) for name in names])
    shard.commit(at(0.0))
    obey(shard, HostPause(names[0]))
    paused = shard.start_due(at(1.0), 10)
    shard.control(2, HostResume(names[0]), at(2.0))
    first = shard.start_due(at(2.0), 10)
    for request in first:
        shard.sent(flight_of(request), 2.0)
    second = shard.start_due(at(3.0), 10)

    assert paused == []
    assert {request.host for request in (*first, *second)} == set(names)


def test_higher_limits_reach_hosts_that_wait(store: CrawlStore) -> None:
    """A host that waits for an instant, or for an answer, is asked again at once."""
    pace = Settings(strategy="fixed", delay_s=100.0, max_concurrency=1)
    shard = shard_of(store, politeness=pace, ignore_robots=True)
    urls = [f"https://{HOST}/{number}" for number in range(9)]
    shard.offer([Candidate(url, HOST, 0, 1, None) for url in urls])
    shard.commit(at(0.0))

    def started(now: float) -> int:
        requests = shard.start_due(at(now), 10)
        for request in requests:
            shard.sent(flight_of(request), now)
        return len(requests)

    before = [started(0.0), started(1.0)]
    shard.control(1, HostSet(HOST, delay_s=0.5), at(1.0))
    busy = started(1.0)
    shard.control(2, HostSet(HOST, per_host=3), at(2.0))
    after = [started(2.0), started(2.5), started(3.0)]
    shard.frontier.check()

    assert before == [1, 0]
    assert busy == 0
    assert after == [1, 1, 0]


# ---------------------------------------------------------------------- the audit of gaps


def permit_of(host: str, settings: Settings) -> Any:
    from mannerly.politeness import Politeness

    granted = Politeness(settings).reserve(host, now=0.0)
    assert isinstance(granted, Grant)
    return granted.permit


def test_audit_follows_the_delay_in_force() -> None:
    """The gap from before a change to after it belongs to neither delay."""
    slow, quick, quickest = (
        Settings(strategy="fixed", delay_s=delay_s, max_rate="unlimited")
        for delay_s in (1.0, 0.1, 0.01)
    )
    hosts = Hosts(slow)
    mine, other = hosts.budget(HOST), hosts.budget(OTHER)
    here, there = (permit_of(host, quickest) for host in (HOST, OTHER))
    mine.sent(HOST, here, 0.0)
    too_early = mine.sent(HOST, here, 0.5).is_early
    hosts.configure(quick, key=HOST)
    other.sent(OTHER, there, 0.0)
    after = [mine.sent(HOST, here, instant).is_early for instant in (0.55, 0.66, 0.7)]
    hosts.configure(quickest)
    others = [other.sent(OTHER, there, instant).is_early for instant in (0.1, 0.2)]

    assert too_early
    assert after == [False, False, True]
    assert others == [False, False]


# ---------------------------------------------------------------------- the runtime


def test_more_workers_than_at_the_start_may_be_set() -> None:
    """The fetcher allows as many connections; it raised an error that ended the crawl."""

    def slow(connection: socket.socket, _path: str) -> bool:
        connection.sendall(answer(b""))
        return True

    with RawServer(slow) as server:
        fetcher = CurlFetcher(
            NetworkGuard([server.url()]), FetchSettings(user_agent="test", max_connections=1)
        )
        requests = [Request(server.url(f"/{n}"), server.address, 5.0, 100) for n in range(3)]
        fetcher.start(requests[0])
        with pytest.raises(RuntimeError, match="more than 1 requests in flight"):
            fetcher.start(requests[1])
        fetcher.set_max_connections(3)
        for request in requests[1:]:
            fetcher.start(request)
        assert fetcher.in_flight == 3
        fetcher.close()


def test_crawl_with_many_more_workers_than_at_the_start_goes_on(tmp_path: Path) -> None:
    """More than the connections that it began with are under way at once."""
    links = b"".join(b'<a href="/%d">x</a>' % number for number in range(300))
    many = threading.Event()

    def handler(connection: socket.socket, path: str) -> bool:
        if path == "/robots.txt":
            connection.sendall(answer(b"", "404 Not Found"))
        elif path == "/":
            connection.sendall(answer(links, "200 OK", "Content-Type: text/html"))
        else:
            if server.open_connections > 290:
                many.set()
            many.wait(10)
            connection.sendall(answer(b"", "200 OK", "Content-Type: text/html"))
        return True

    with (
        RawServer(handler) as server,
        mannerly.Crawl(
            server.url(),
            data_dir=tmp_path / "crawl",
            strategy="fixed",
            max_rate="unlimited",
            concurrency=2,
            per_host=300,
            governor=False,
            seeding_strategy="none",
        ) as crawl,
    ):
        crawl.start()
        crawl.set(concurrency=300)
        result = crawl.wait(30)

    assert many.is_set()
    assert result.stats.fetched == 301


def test_governor_follows_a_higher_limit_at_once() -> None:
    """What was not held back is not held back at the old limit either."""
    governor = Governor(4)
    governor.set_most(64)
    raised = governor.total
    governor.set_most(2)
    lowered = governor.total
    governor.set_most(1000)

    assert (raised, lowered, governor.total) == (64, 2, FIRST)


def test_governor_that_held_back_goes_on_holding_back() -> None:
    """A higher limit of the operator does not make the disk faster."""
    governor = Governor(100)
    governor.committed(1.0, 10.0)
    governor.set_most(500)

    assert governor.total == 70


def test_stop_counts_from_the_moment_the_run_holds_the_crawl(store: CrawlStore) -> None:
    """One from before is void; one while the run is starting is not."""
    last = store.order(Stop())
    run = Run(store=store, settings=CrawlSettings(), is_resumed=True, last_order=last)
    old = RunLimits(run, PageBudget(None))
    open_crawl(LOCATION).order(Stop())
    new = RunLimits(run, PageBudget(None))

    assert old.ending(1.0) is None
    assert new.ending(1.0) is Ending.TERMINATED


def test_limits_act_on_each_control_record_once(store: CrawlStore) -> None:
    """Those that a worker has read are told again and again."""
    run = Run(store=store, settings=CrawlSettings(), is_resumed=True, last_order=1)
    limits = RunLimits(run, PageBudget(None))
    records = [(2, SetOption("duration", 5.0)), (3, SetOption("duration", 50.0))]

    for told in (records[:1], records, records):
        limits.act_on(told)

    assert limits.last_order == 3
    assert limits.ending(10.0) is None
    assert limits.ending(50.0) is Ending.DURATION


def test_added_seed_that_has_moved_stays_in_scope_in_the_next_run(tmp_path: Path) -> None:
    """As a first seed does: the pages behind its redirect are followed."""

    def chain(connection: socket.socket, path: str) -> bool:
        if path == "/robots.txt":
            connection.sendall(answer(b"", "404 Not Found"))
        else:
            number = int(path[1:] or 0)
            link = b'<a href="/%d">next</a>' % (number + 1) if number < 6 else b""
            connection.sendall(answer(link, "200 OK", "Content-Type: text/html"))
        return True

    options: Any = {
        "data_dir": tmp_path / "crawl",
        "allow_net": "127.0.0.1/32",
        "strategy": "fixed",
        "delay": 0.01,
        "max_rate": "unlimited",
        "seeding_strategy": "none",
    }
    with RawServer(chain) as target, RawServer(says(answer()), "127.0.0.2") as first:
        moved = answer(b"", "301 Moved Permanently", f"Location: {target.url()}")

        def redirect(connection: socket.socket, path: str) -> bool:
            missing = answer(b"", "404 Not Found")
            connection.sendall(missing if path == "/robots.txt" else moved)
            return True

        with RawServer(redirect) as added:
            with mannerly.Crawl(first.url(), max_urls=1, **options) as crawl:
                crawl.start().wait(20)
            with mannerly.open(options["data_dir"]) as crawl:
                crawl.add(added.url())
            for _ in range(2):
                with mannerly.Crawl(max_urls=2, **options) as crawl:
                    crawl.start().wait(20)
        paths = [head.split()[1] for head in target.heads]

    assert [path for path in paths if path != "/robots.txt"] == ["/", "/1", "/2"]
