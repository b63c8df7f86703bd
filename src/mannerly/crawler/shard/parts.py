"""The parts of a shard, made from the crawl's settings. `shard` lets them talk to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mannerly.crawler.events import HostPlaces, ShardMeasured, UrlsDropped
from mannerly.crawler.frontier.core import Frontier
from mannerly.crawler.frontier.quota import HostQuota
from mannerly.crawler.robots.gate import RobotsGate
from mannerly.crawler.store.base import Batch
from mannerly.crawler.web.scope import SkipReason
from mannerly.crawler.web.urls import site_of
from mannerly.politeness import Politeness

from .audit import SpacingAudit
from .given_up import GivenUpHosts
from .hosts import HostRecords
from .inflight import Flights
from .routes import Routes
from .unreachable import UnreachableHosts

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.control import HostOrders
    from mannerly.crawler.events import Event
    from mannerly.crawler.frontier.sharding import Sharding
    from mannerly.crawler.model import Candidate, Now, RobotsRecord
    from mannerly.crawler.page.rules import LinkRules
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import ShardStore
    from mannerly.politeness.events import Event as PolitenessEvent


@dataclass(slots=True)
class Parts:
    """One shard's state. `batch` is replaced by every commit."""

    number: int
    store: ShardStore
    settings: CrawlSettings
    rules: LinkRules  # what decides about links
    emit: Callable[[Event], None]
    politeness: Politeness
    frontier: Frontier
    robots: RobotsGate
    hosts: HostRecords
    flights: Flights
    routes: Routes
    audit: SpacingAudit
    quota: HostQuota | None  # None: no --max-per-host
    keeps_gaps: bool  # the operator asks for a minimum delay, of all hosts or of one
    excludes_queued: bool = False  # a pattern was excluded while URLs were queued
    paces: dict[str, HostOrders] = field(default_factory=dict)  # set by `host set`, by budget
    given_up: GivenUpHosts = field(default_factory=GivenUpHosts)
    unreachable: UnreachableHosts = field(default_factory=UnreachableHosts)
    batch: Batch = field(default_factory=Batch)

    def stored_robots(self, *origins: str) -> dict[str, RobotsRecord | None]:
        """Return the latest record of each origin, one that is not committed yet included."""
        fresh, stored = self.batch.robots, self.store.robots
        return {origin: fresh.get(origin) or stored(origin) for origin in origins}

    def wanted(self, candidates: list[Candidate]) -> list[Candidate]:
        """Leave out what is excluded, and tell how many that were."""
        wanted = self.routes.wanted(candidates)
        if excluded := len(candidates) - len(wanted):
            self.emit(UrlsDropped(SkipReason.EXCLUDED.value, excluded))
        return wanted

    def measured(self, now: Now) -> ShardMeasured:
        """Return where the hosts are, and how much is left."""
        seen, flights = self.frontier.snapshot(now.mono), self.flights
        due = seen.next_due
        places = HostPlaces(
            active=seen.active,
            ready=seen.ready,
            heaped=seen.heaped,
            waiting=seen.waiting,
            busy=seen.busy,
            other=seen.hungry + seen.robots_line + seen.asleep,
            next_in_s=None if due is None else max(0.0, due - now.mono),
        )
        return ShardMeasured(self.number, flights.on_wire, flights.delivered, seen.queued, places)


def make_parts(
    number: int,
    store: ShardStore,
    sharding: Sharding,
    settings: CrawlSettings,
    rules: LinkRules,
    emit: Callable[[Event], None],
    on_politeness: Callable[[PolitenessEvent], None],
    *,
    is_resumed: bool,
) -> Parts:
    """Make everything that a shard consists of."""
    pace = settings.politeness
    politeness = Politeness(
        pace,
        on_event=on_politeness,
        group_of=site_of if pace.group_by == "site" else None,
        remember=True,
    )
    hosts = HostRecords(store, politeness, is_resumed=is_resumed)
    flights = Flights(number)
    limit = settings.max_per_host
    return Parts(
        number=number,
        store=store,
        settings=settings,
        rules=rules,
        emit=emit,
        politeness=politeness,
        frontier=Frontier(politeness, heap_limit=settings.heap_limit),
        robots=RobotsGate(
            settings.agent_token,
            unreachable="allow" if settings.robots_unreachable == "allow" else "disallow",
            ignore=settings.ignore_robots,
            patience_s=settings.robots_patience_s,
        ),
        hosts=hosts,
        flights=flights,
        routes=Routes(number, sharding, rules),
        audit=SpacingAudit(pace.floor_s),
        keeps_gaps=pace.enabled and pace.floor_s > 0.0,
        quota=HostQuota(limit, hosts.fetched, flights.pages_of) if limit else None,
    )
