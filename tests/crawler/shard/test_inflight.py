"""Requests in flight are counted in one place, from the grant of a slot to the commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.shard.shard_world import ShardWorld, brisk, flight_of
from virtual.crawl import simulate_crawl
from virtual.servers import Faults
from virtual.web import GeneratedWeb

from mannerly.crawler.host.host import HostCounts
from mannerly.crawler.host.hosts import Hosts
from mannerly.crawler.host.inflight import Flights, InFlight, Stage
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry, RobotsRequest
from mannerly.crawler.runtime.engine import TICK_S, Engine
from mannerly.politeness import Grant, Politeness, Settings

if TYPE_CHECKING:
    from virtual.fetcher import FakeFetcher

    from mannerly.crawler.host.host import Host
    from mannerly.crawler.shard.shard import Shard

POLITENESS = Politeness(Settings(enabled=False))
SHARD = 3


class Known:
    """The flights of a shard, and its hosts."""

    def __init__(self) -> None:
        self.hosts = Hosts()
        self.flights = Flights(SHARD, self.hosts, 8)

    def host(self, name: str = "a.example") -> Host:
        host = self.hosts.meet(name)
        if host.budget is None:
            host.counts = HostCounts()
            self.hosts.join(host)
        return host

    def flight(self, kind: Kind = Kind.PAGE, host: str = "a.example") -> InFlight:
        return flight(self.host(host), kind)


def flight(known: Host, kind: Kind = Kind.PAGE) -> InFlight:
    host = known.name
    decision = POLITENESS.reserve(host, now=0.0)
    assert isinstance(decision, Grant)
    if kind is Kind.ROBOTS:
        origin = f"https://{host}"
        return InFlight(RobotsRequest(f"{origin}/robots.txt", host, origin), decision.permit, known)
    entry = Entry(1, f"https://{host}/", host, 0, 0, None, 0, kind)
    return InFlight(entry, decision.permit, known)


def counts(flights: Flights) -> tuple[int, ...]:
    """On the wire, being read, delivered, without a result, what a crash would cost."""
    return (
        flights.on_wire,
        flights.reading,
        flights.delivered,
        flights.unsettled,
        flights.pending,
    )


def test_a_page_is_counted_at_every_stage() -> None:
    """It counts until it is committed; what is on the wire ends with the answer."""
    known = Known()
    flights, page = known.flights, known.flight()
    steps = [counts(flights)]

    for step in (flights.begin, flights.sent, flights.answered, flights.read):
        step(page)
        steps.append(counts(flights))
    for step in (flights.deliver, flights.settle):
        step(page)
        steps.append(counts(flights))
    flights.committed()
    steps.append(counts(flights))

    assert steps == [
        (0, 0, 0, 0, 0),
        (1, 0, 0, 1, 1),  # granted
        (1, 0, 0, 1, 1),  # sent
        (1, 0, 0, 1, 1),  # answered: what follows is decided next
        (0, 1, 0, 1, 1),  # being parsed elsewhere
        (0, 0, 1, 1, 1),  # with the program that iterates over the crawl
        (0, 0, 0, 0, 1),  # in the batch
        (0, 0, 0, 0, 0),  # committed
    ]
    assert page.shard == SHARD


@pytest.mark.parametrize("stage", [Stage.GRANTED, Stage.SENT])
def test_a_request_without_a_result_leaves_no_trace(stage: Stage) -> None:
    """Put back, cancelled, or a robots.txt: wherever it was, nothing of it is counted after."""
    known = Known()
    flights, host = known.flights, known.host()
    requests = [known.flight(kind) for kind in (Kind.PAGE, Kind.ROBOTS, Kind.SITEMAP)]
    for each in requests:
        flights.begin(each)
        if stage is Stage.SENT:
            flights.sent(each)
    before = (counts(flights), flights.robots, host.pages)

    for each in requests:
        flights.end(each)

    assert before == ((3, 0, 0, 3, 3), 1, 1)
    assert (counts(flights), flights.robots) == ((0, 0, 0, 0, 0), 0)
    assert (host.under_way, host.pages, host.sitemap_use.under_way) == (0, 0, 0)
    assert not flights.hosts
    assert host.budget is not None
    assert not host.budget.is_connecting


def test_pages_of_a_host_count_until_they_have_a_result() -> None:
    """--max-per-host asks for them; sitemaps and robots.txt are no pages."""
    known = Known()
    flights = known.flights
    pages = [known.flight(), known.flight(), known.flight(host="b.example")]
    for each in (*pages, known.flight(Kind.SITEMAP), known.flight(Kind.ROBOTS)):
        flights.begin(each)
    under_way = [known.host(name).pages for name in ("a.example", "b.example", "c.example")]

    flights.read(pages[0])
    being_read = known.host().pages
    flights.settle(pages[0])
    flights.end(pages[1])

    assert under_way == [2, 1, 0]
    assert being_read == 2
    assert known.host().pages == 0


def test_a_budget_connects_until_its_latest_request_has_left() -> None:
    """An earlier one that leaves, or comes back, says nothing about the latest."""
    known = Known()
    flights, budget = known.flights, known.host().budget
    first, latest = known.flight(), known.flight()
    assert budget is not None
    flights.begin(first)
    flights.begin(latest)

    seen = [budget.is_connecting]
    flights.sent(first)
    flights.answered(first)
    seen.append(budget.is_connecting)
    flights.answered(latest)  # faster than its own "sent"
    seen.append(budget.is_connecting)

    assert seen == [True, True, False]


def test_a_request_and_all_of_them_describe_themselves() -> None:
    """What an operator sees in a debugger is enough to know the state."""
    known = Known()
    flights, page = known.flights, known.flight()
    flights.begin(page)
    flights.sent(page)

    assert repr(page) == "<InFlight https://a.example/ sent>"
    assert repr(flights) == "<Flights 1 on the wire, 0 reading, 0 delivered, 0 settled>"


def test_a_shard_counts_what_it_starts_and_no_more_than_it_has_room_for() -> None:
    """Granted, answered, committed; robots.txt has a limit of its own."""
    hosts = [f"https://{name}.example/" for name in "abcd"]
    world = ShardWorld(*hosts, settings=brisk(robots_limit=2))
    first = world.start()
    second = world.start()
    robots = world.flights.robots
    for request in first:
        world.answer(request, 404)
    world.wait(0.1)

    requests = world.start(room=3)

    assert (len(first), second, robots) == (2, [], 2)
    assert len(requests) == 3
    assert world.flights.robots == sum(
        flight_of(request).item.kind is Kind.ROBOTS for request in requests
    )
    assert counts(world.flights) == (3, 0, 0, 3, 3)


def test_a_cancelled_request_is_not_counted() -> None:
    """At the end of a run nothing is in flight; the page is still queued."""
    world = ShardWorld("https://a.example/")
    world.pass_robots()
    world.wait(1.0)
    (request,) = world.start()

    world.shard.cancelled(flight_of(request), world.now)
    world.shard.commit(world.now)

    assert counts(world.flights) == (0, 0, 0, 0, 0)
    assert world.store.counts().queued == 1


@pytest.mark.parametrize("seed", [1, 2])
def test_flights_agree_with_the_wire_and_with_the_permits_at_every_turn(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three independent counts of one crawl, with limits and faults: the
    shards' flights, the fetcher's requests, and the permits of the politeness core.
    """
    limits = ("", "bucket:2:4+retry-after", "concurrency:2:1.2", "knee:1:0.5")
    web = GeneratedWeb(hosts=120, pages=4, forbids=True, limits=limits, seed=seed)
    seen = watch_turns(monkeypatch)

    outcome = simulate_crawl(
        web, seed=seed, shards=2, faults=Faults(timeout=0.01, error=0.02, refusal=0.02)
    )

    assert outcome.is_finished
    assert len(seen) > 100
    assert max(on_wire for on_wire, _, _ in seen) > 20
    assert [each for each in seen if len(set(each)) > 1] == []
    assert seen[-1] == (0, 0, 0)


def watch_turns(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """After every turn of an engine: flights on the wire, the fetcher's count, permits."""
    seen: list[tuple[int, int, int]] = []

    class Watched(Engine):
        def __init__(self, fetcher: FakeFetcher, shards: list[Shard], *rest: Any, **options: Any):
            super().__init__(fetcher, shards, *rest, **options)
            self.fetcher, self.of_crawl = fetcher, shards

        def turn(self, longest_s: float = TICK_S) -> None:
            super().turn(longest_s)
            flights = sum(shard.flights.on_wire for shard in self.of_crawl)
            permits = sum(shard.politeness.snapshot(top=0).in_flight for shard in self.of_crawl)
            seen.append((flights, self.fetcher.in_flight, permits))

    monkeypatch.setattr("virtual.crawl.Engine", Watched)
    return seen
