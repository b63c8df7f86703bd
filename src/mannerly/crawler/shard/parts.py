"""The parts of a shard, made from the crawl's settings. `shard` lets them talk to each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mannerly.crawler.events import (
    HostPlaces,
    ShardMeasured,
    UrlsDropped,
    UrlsHeldBack,
)
from mannerly.crawler.frontier.addresses import Addresses
from mannerly.crawler.frontier.core import Frontier
from mannerly.crawler.frontier.first_contacts import FirstContacts
from mannerly.crawler.frontier.shares import MANY_URLS, Shares
from mannerly.crawler.host.hosts import Hosts
from mannerly.crawler.host.inflight import Flights
from mannerly.crawler.host.own_paces import OwnPaces
from mannerly.crawler.host.records import HostRecords
from mannerly.crawler.robots.gate import DEFAULT_MEMORY_BYTES, RobotsGate
from mannerly.crawler.web.scope import SkipReason
from mannerly.crawler.web.urls import site_of
from mannerly.politeness import Politeness
from mannerly.politeness.events import Evicted, Retired

from .doing import cause_of_retry, doing_of
from .foreign import ForeignRobots
from .given_up import GivenUpHosts
from .host_leases import ShardLeases
from .lists import Lists
from .pending import Pending
from .plugin import Plugins
from .routes import Routes
from .sitemaps import SitemapQuota

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.events import Event
    from mannerly.crawler.frontier.sharding import Sharding
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.host_view import Doing
    from mannerly.crawler.model import (
        Candidate,
        Entry,
        Now,
        PageRecord,
        RobotsRecord,
    )
    from mannerly.crawler.page.links import LinkRules
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import ShardStore
    from mannerly.hosts.leases import Leases
    from mannerly.politeness.events import Event as PolitenessEvent
    from mannerly.politeness.model import Instant


@dataclass(slots=True)
class Parts:
    """One shard's state."""

    number: int
    store: ShardStore
    settings: CrawlSettings
    rules: LinkRules  # what decides about links
    emit: Callable[[Event], None]
    politeness: Politeness
    addresses: Addresses
    frontier: Frontier
    robots: RobotsGate
    robots_limit: int  # robots.txt files that this shard may fetch at once
    hosts: Hosts
    records: HostRecords
    flights: Flights
    routes: Routes
    sitemaps: SitemapQuota
    paces: OwnPaces  # of single hosts
    plugins: Plugins
    excludes_queued: bool = False  # a pattern was excluded while URLs were queued
    shared: ShardLeases | None = None  # None: no other crawl can want these hosts
    shares: Shares = field(default_factory=Shares)
    contacts: FirstContacts = field(default_factory=FirstContacts)
    given_up: GivenUpHosts = field(default_factory=GivenUpHosts)
    refusals: dict[int, int] = field(default_factory=dict)  # by seq, with `refusal_retries` only
    lists: Lists = field(default_factory=Lists)  # that are being settled
    foreign: ForeignRobots = field(default_factory=ForeignRobots)
    pending: Pending = field(default_factory=Pending)

    def stored_robots(self, *origins: str) -> dict[str, RobotsRecord | None]:
        """Return the latest record of each origin, one that is not committed yet included."""
        fresh, stored = self.pending.batch.robots, self.store.robots
        return {origin: fresh.get(origin) or stored(origin) for origin in origins}

    def forget_robots(self, origin: str) -> None:
        """Have an origin's robots.txt fetched again."""
        self.robots.forget(origin)
        self.pending.batch.robots.pop(origin, None)
        self.store.forget_robots(origin)

    def wanted(self, candidates: list[Candidate]) -> list[Candidate]:
        """Leave out what is excluded, and tell how many that were."""
        wanted = self.routes.wanted(candidates)
        if excluded := len(candidates) - len(wanted):
            self.emit(UrlsDropped(SkipReason.EXCLUDED.value, excluded))
        return wanted

    def pass_on(self, entry: Entry, record: PageRecord, candidates: list[Candidate]) -> None:
        """Put the new links of a page into the batch, in their place if its host has many URLs."""
        links = self.routes.unmet(candidates)
        if entry.host in self.shares or self._has_many(entry.host, len(links)):
            links, held_back = self.shares.place(entry, record, links)
            if held_back:
                self.emit(UrlsHeldBack(held_back))
        self.routes.all(links, self.pending.batch)

    def _has_many(self, host: str, more: int) -> bool:
        """Return whether a host is large enough for its queue to be shared out."""
        known = self.hosts.get(host)
        return known is not None and known.fetched + known.queued + more >= MANY_URLS

    def admit(self, host: str, now: Now) -> Instant:
        """Return `now` if a host may be contacted, else when to ask again.

        Only names that were met as links have to wait, and only at their first contact.
        """
        if self.rules.has_seed_on(host) or not self.records.is_new(host):
            return now.mono
        site = site_of(host)
        return self.contacts.admit(site, self.addresses.gap_s(site), now.mono)

    def heard(self, event: PolitenessEvent) -> None:
        """Take an event of the politeness core. What follows from it is done later."""
        self.emit(event)
        budget = self.hosts.budget_of(event.host)
        if budget is not None:
            budget.heard(event)
        if isinstance(event, Retired):
            self.given_up.heard(event)
        elif isinstance(event, Evicted):
            self.records.evicted(event.host)
            if self.shared is not None:
                self.shared.evicted(event.host)

    def measured(self, now: Now) -> ShardMeasured:
        """Return where the hosts are, and how much is left."""
        seen, flights = self.frontier.snapshot(now.mono), self.flights
        due = seen.next_due
        paused = sum(host.queued > 0 for host in self.hosts.paused)
        retrying = self.frontier.retrying() if seen.retries else ()
        known = self.hosts.get
        idle = [name for name in retrying if (host := known(name)) is None or not host.queued]
        resting = Counter(cause_of_retry(self.politeness.state(name)) for name in idle)
        # Their last page is under way, and nothing else is queued.
        last = sum(host.queued == 0 for host in flights.hosts)
        other = seen.inactive + seen.need_refill + seen.robots_line + seen.asleep
        places = HostPlaces(
            known=self.store.counts().hosts,
            active=seen.active + seen.inactive + resting.total() + last,
            ready=seen.ready,
            heaped=seen.heaped + resting.total(),
            waiting=resting + Counter(seen.waiting),
            busy=seen.busy + last,
            paused=paused,
            other=max(0, other - paused),
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
    *,
    is_resumed: bool,
    boot: str,
    leases: Leases | None = None,
    plugins: Plugins | None = None,
) -> Parts:
    """Make everything that a shard consists of."""
    pace = settings.politeness

    def tell(event: PolitenessEvent) -> None:
        parts.heard(event)

    politeness = Politeness(
        pace,
        on_event=tell,
        group_of=site_of if pace.group_by == "site" else None,
        remember=True,
    )
    addresses = Addresses(
        politeness,
        Politeness(pace if pace.group_by == "host" else replace(pace, group_by="host")),
        rules.has_seed_on,
        max_rate=settings.address_max_rate / sharding.shards,
    )

    def see(host: Host, at: Now) -> Doing:
        return doing_of(host, parts, at)

    hosts = Hosts(pace, politeness.key if pace.group_by != "host" else None)
    records = HostRecords(hosts, store, politeness, is_resumed=is_resumed, boot=boot, see=see)
    parts = Parts(
        number=number,
        store=store,
        settings=settings,
        rules=rules,
        emit=emit,
        politeness=politeness,
        addresses=addresses,
        robots_limit=sharding.share(settings.robots_limit, number),
        frontier=Frontier(
            addresses,
            hosts,
            heap_limit=sharding.share(settings.heap_limit, number),
            roomy_limit=sharding.share(store.read_ahead, number) if store.read_ahead else 0,
        ),
        robots=RobotsGate(
            settings.agent_token,
            unreachable="allow" if settings.robots_unreachable == "allow" else "disallow",
            ignore=settings.ignore_robots,
            patience_s=settings.robots_patience_s,
            memory_bytes=sharding.share(DEFAULT_MEMORY_BYTES, number),
        ),
        hosts=hosts,
        records=records,
        flights=Flights(number, hosts),
        routes=Routes(number, sharding, rules),
        sitemaps=SitemapQuota(hosts, settings.max_sitemaps),
        paces=OwnPaces(settings.hosts, politeness, hosts),
        plugins=plugins or Plugins(),
    )
    if leases is not None:
        parts.shared = ShardLeases(leases, politeness, parts.frontier, hosts)
        records.shared = parts.shared
    return parts
