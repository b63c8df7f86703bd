"""Control records, as far as they concern one shard: hosts, seeds, patterns and the pace.

A lasting record (see `control`) is applied at every start, in order, so the last word holds. A
record that acts once is applied by each shard once: the number of the last one is committed with
what it changed. A record of a host is for the shard that owns the host.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mannerly.crawler.control import (
    AddSeeds,
    CheckUrls,
    Exclude,
    FetchRobots,
    HostForget,
    HostPause,
    HostResume,
    HostSet,
    Recrawl,
    RetryUrls,
    SeedsMoved,
    SetOption,
)
from mannerly.crawler.page.checks import check_candidates
from mannerly.crawler.web.seeds import seed_candidates, usual_sitemaps
from mannerly.politeness.settings import UNLIMITED

if TYPE_CHECKING:
    from mannerly.crawler.control import Control, Rate
    from mannerly.crawler.model import Now
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import ShardStore

    from .contacts import Contacts
    from .given_up import GivenUpHosts
    from .origins import Origins, RobotsFiles
    from .pending import Pending
    from .plugin import Plugins
    from .routes import Routes


class Orders:
    """Acts on the control records for one shard."""

    def __init__(
        self,
        hosts: HostControl,
        given_up: GivenUpHosts,
        origins: Origins,
        routes: Routes,
        plugins: Plugins,
        store: ShardStore,
        pending: Pending,
        settings: CrawlSettings,
    ) -> None:
        self._hosts = hosts
        self._given_up = given_up
        self._origins = origins
        self._routes = routes
        self._plugins = plugins
        self._store = store
        self._pending = pending
        self._asks_sitemaps = settings.seeding in ("sitemap", "all")

    def apply(self, number: int, order: Control, now: Now) -> None:
        """Act on a control record."""
        pending = self._pending
        is_new = number > max(self._store.counts().applied, pending.batch.applied)
        if is_new:
            pending.take_order(number)
        self._plugins.ordered(order, is_new=is_new)
        match order:
            case AddSeeds() | SeedsMoved() | CheckUrls():
                self._take_urls(order, is_new=is_new)
            case FetchRobots(requests) if is_new:
                for request in requests:
                    if self._routes.owns(request.host):
                        self._origins.follow(request, now)
            case Exclude(glob):
                self._routes.exclude(glob)
            case SetOption("max_rate", value):
                self._hosts.set_rate(UNLIMITED if value is None else value, now)
            case HostPause(host) | HostResume(host) | HostSet(host) | HostForget(host):
                if self._routes.owns(host):
                    self._hosts.apply(order, host, now, is_new=is_new)
            case RetryUrls() | Recrawl() if is_new:
                self._bring_back(order, now)
            case _:
                pass  # for the runtime

    def _bring_back(self, order: RetryUrls | Recrawl, now: Now) -> None:
        host = order.host if isinstance(order, RetryUrls) else None
        if host is None or self._routes.owns(host):
            if host is not None:
                self._given_up.revive(host, now)
            self._pending.bring_back(order)

    def _take_urls(self, order: AddSeeds | SeedsMoved | CheckUrls, *, is_new: bool) -> None:
        if isinstance(order, CheckUrls):
            found = check_candidates(order.urls)
        else:
            self._routes.rules.widen(*order.urls)
            found = seed_candidates(order.urls)
            if self._asks_sitemaps:
                found += usual_sitemaps(order.urls)
        if is_new and not isinstance(order, SeedsMoved):
            self._routes.seeds([each for each in found if self._routes.owns(each.host)])


class HostControl:
    """Acts on what was ordered for the hosts of one shard."""

    def __init__(
        self, contacts: Contacts, given_up: GivenUpHosts, files: RobotsFiles, pending: Pending
    ) -> None:
        self._contacts = contacts
        self._given_up = given_up
        self._files = files
        self._pending = pending

    def set_rate(self, max_rate: Rate, now: Now) -> None:
        """Change the highest rate of all hosts; what was set for single ones stays."""
        contacts = self._contacts
        contacts.set_pace(replace(contacts.politeness.settings, max_rate=max_rate), now)

    def apply(
        self,
        order: HostPause | HostResume | HostSet | HostForget,
        host: str,
        now: Now,
        *,
        is_new: bool,
    ) -> None:
        """Act on an order for one host."""
        contacts = self._contacts
        hosts, politeness = contacts.hosts, contacts.politeness
        known = self._given_up.recall(host, now)
        match order:
            case HostPause():
                hosts.pause(known)
                politeness.pause(host, now=now.mono)
            case HostResume():
                hosts.unpause(known)
                if is_new:
                    politeness.revive(host, now=now.mono)
                    self._take_in_again(host, now)
                else:  # an old one ends an old pause only: the host may have failed since
                    politeness.unpause(host, now=now.mono)
            case HostSet():
                contacts.paces.order(politeness.key(host), order)
            case HostForget() if is_new:
                self._take_in_again(host, now)
                politeness.unlearn(host)
                contacts.records.unlearn(known, now)
                if contacts.shared is not None and known.budget is not None:
                    contacts.shared.forget(known.budget, now)
                self._files.forget(host)
        group = hosts.of_key(hosts.key(host))
        for each in group:
            contacts.frontier.wake(each, now=now.mono)
        hosts.touch(group)

    def _take_in_again(self, host: str, now: Now) -> None:
        """Revive a host, and bring back what was given up with it."""
        self._given_up.revive(host, now)
        self._pending.bring_back(RetryUrls(failed=False, given_up=True, host=host))
