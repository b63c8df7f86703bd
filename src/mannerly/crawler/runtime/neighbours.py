"""Join other crawls in a memory of hosts, of this machine or of a server; say who is waited for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mannerly.crawler.host_view import HostStatus
from mannerly.crawler.model import Now
from mannerly.crawler.store import is_in_server, name_of
from mannerly.hosts import host_memory_location, open_host_memory
from mannerly.hosts.base import said_of
from mannerly.hosts.leases import Leases

from .messages import worker_id

if TYPE_CHECKING:
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import CrawlStore
    from mannerly.politeness.clock import TimeSource


def join_others(settings: CrawlSettings, store: CrawlStore, clock: TimeSource) -> Leases | None:
    """Join the crawls that share a memory of hosts; None: this crawl uses none.

    Raises:
        StoreError: the memory is damaged, of another version, or cannot be written.
    """
    chosen = settings.memory or os.environ.get("MANNERLY_MEMORY")
    if chosen is None and is_in_server(store.location):
        chosen = store.location.partition("#")[0]  # one budget for all crawls of a server
    location = host_memory_location(chosen, os.environ)
    if location is None or not settings.politeness.enabled:
        return None
    return Leases(
        open_host_memory(location),
        crawl=store.manifest.id,
        name=name_of(store.location),
        worker=worker_id(os.getpid()),
        now=Now(clock.now(), clock.wall()),
        clock=clock.now,
    )


def in_use(stats: Stats) -> str:
    """Return who sends to the hosts that are left, as far as that is known."""
    count = stats.waits.states[HostStatus.SHARED]
    holders = {each.held_by for each in stats.host_views if each.held_by}
    by = said_of(min(holders)) if len(holders) == 1 else "other crawls"
    return f"{'1 host is' if count == 1 else f'{count:,} hosts are'} in use by {by}"
