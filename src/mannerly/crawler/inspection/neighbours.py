"""Read the memory of hosts that a crawl shares with others: what is known of a host."""

from __future__ import annotations

import os
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from mannerly.crawler.model import Now
from mannerly.crawler.store.base import StoreError
from mannerly.crawler.web.urls import site_of
from mannerly.hosts import host_memory_location, open_host_memory
from mannerly.politeness.clock import MonotonicClock

from .view import settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import CrawlStore
    from mannerly.hosts.base import HostBudget, HostMemory


def shared_budget(store: CrawlStore, host: str, now: float) -> HostBudget | None:
    """Return what all crawls of this machine know of a host; None: nothing.

    Raises:
        StoreError: the memory of hosts cannot be used.
    """
    with _memory(store) as memory:
        key = _key(store, host)
        return None if memory is None else memory.budgets([key], _now(now)).get(key)


def learned_rates(settings: CrawlSettings, hosts: list[str]) -> dict[str, float]:
    """Return the requests a second that crawls of this machine have learned of hosts."""
    location = host_memory_location(settings.memory, os.environ)
    if location is None or not hosts:
        return {}
    try:
        with closing(open_host_memory(location)) as memory:
            known = memory.budgets(hosts, _now(time.time()))
    except StoreError:  # the run says what is wrong with it
        return {}
    return {
        host: 1.0 / budget.lesson.delay_s
        for host, budget in known.items()
        if budget.lesson is not None and budget.lesson.delay_s > 0.0
    }


def forget_shared(store: CrawlStore, host: str, now: float) -> None:
    """Forget what all crawls of this machine have learned of a host.

    Raises:
        StoreError: the memory of hosts cannot be used.
    """
    with _memory(store) as memory:
        if memory is not None:
            memory.forget(_key(store, host), _now(now))


def _key(store: CrawlStore, host: str) -> str:
    """Return the key under which a host is in the memory: its own, or its site's."""
    is_grouped = settings_of(store.manifest).politeness.group_by == "site"
    return site_of(host) if is_grouped else host


@contextmanager
def _memory(store: CrawlStore) -> Iterator[HostMemory | None]:
    location = host_memory_location(settings_of(store.manifest).memory, os.environ)
    if location is None:
        yield None
        return
    with closing(open_host_memory(location)) as memory:
        yield memory


def _now(wall: float) -> Now:
    return Now(MonotonicClock().now(), wall)
