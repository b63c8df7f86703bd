"""The hosts of a shard, and everything that decides when each of them is contacted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mannerly.crawler.frontier.addresses import Addresses, FirstContacts
from mannerly.crawler.frontier.core import Frontier
from mannerly.crawler.host.hosts import Hosts
from mannerly.crawler.host.own_paces import OwnPaces
from mannerly.crawler.host.records import HostRecords
from mannerly.crawler.web.urls import site_of
from mannerly.politeness import Politeness
from mannerly.politeness.events import Evicted

from .doing import doing_of
from .host_leases import ShardLeases

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.frontier.sharding import Sharding
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.host_view import Doing
    from mannerly.crawler.model import Now
    from mannerly.crawler.robots.gate import RobotsGate
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import ShardStore
    from mannerly.hosts.leases import Leases
    from mannerly.politeness import Settings
    from mannerly.politeness.events import Event
    from mannerly.politeness.model import Instant


class Contacts:
    """The hosts of one shard with their queues, records, pace, addresses and leases.

    Attributes:
        shared: the leases of hosts; None: no other crawl can want these hosts.
        paces: the settings of single hosts.
    """

    __slots__ = (
        "_first",
        "_has_seed_on",
        "addresses",
        "frontier",
        "hosts",
        "paces",
        "politeness",
        "records",
        "shared",
    )

    def __init__(
        self,
        store: ShardStore,
        number: int,
        sharding: Sharding,
        settings: CrawlSettings,
        gate: RobotsGate,
        has_seed_on: Callable[[str], bool],
        on_event: Callable[[Event], None],
        *,
        resumed_at: Instant | None,
        boot: str,
        leases: Leases | None,
    ) -> None:
        pace = settings.politeness
        self.politeness = politeness = Politeness(
            pace,
            on_event=on_event,
            group_of=site_of if pace.group_by == "site" else None,
            remember=True,
        )
        self.addresses = Addresses(
            politeness,
            Politeness(pace if pace.group_by == "host" else replace(pace, group_by="host")),
            has_seed_on,
            max_rate=settings.address_max_rate / sharding.shards,
        )
        self.hosts = hosts = Hosts(pace, politeness.key if pace.group_by != "host" else None)
        self.frontier = Frontier(
            self.addresses,
            hosts,
            heap_limit=sharding.share(settings.heap_limit, number),
            roomy_limit=sharding.share(store.read_ahead, number) if store.read_ahead else 0,
        )
        self.shared: ShardLeases | None = None
        if leases is not None:
            self.shared = ShardLeases(leases, politeness, self.frontier, hosts)

        def see(host: Host, at: Now) -> Doing:
            return doing_of(host, self, gate, at)

        self.records = HostRecords(
            hosts, store, politeness, resumed_at=resumed_at, boot=boot, see=see
        )
        self.records.shared = self.shared
        self.paces = OwnPaces(settings.hosts, politeness, hosts)
        self._first = FirstContacts()
        self._has_seed_on = has_seed_on

    def admit(self, host: str, now: Now) -> Instant:
        """Return `now` if a host may be contacted, else when to ask again.

        Only names that were met as links have to wait, and only at their first contact.
        """
        if self._has_seed_on(host) or not self.records.is_new(host):
            return now.mono
        site = site_of(host)
        return self._first.admit(site, self.addresses.gap_s(site), now.mono)

    def heard(self, event: Event) -> None:
        """Take an event of the politeness core."""
        budget = self.hosts.budget_of(event.host)
        if budget is not None:
            budget.heard(event)
        if isinstance(event, Evicted):
            self.records.evicted(event.host)
            if self.shared is not None:
                self.shared.evicted(event.host)

    def set_pace(self, settings: Settings, now: Now) -> None:
        """Change the pace of all hosts; what was set for single ones stays."""
        self.politeness.configure(settings)
        self.addresses.configure(settings)
        self.hosts.configure(settings)
        self.paces.apply()
        self.frontier.wake_all(now=now.mono)
        self.hosts.touch(self.hosts)
