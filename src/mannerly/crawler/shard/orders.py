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
    Exclude,
    HostForget,
    HostPause,
    HostResume,
    HostSet,
    SetOption,
)
from mannerly.crawler.web.seeds import seed_candidates, sitemap_candidates
from mannerly.politeness.settings import UNLIMITED

if TYPE_CHECKING:
    from mannerly.crawler.control import Control
    from mannerly.crawler.model import Now
    from mannerly.politeness import Settings

    from .parts import Parts


def apply(number: int, order: Control, parts: Parts, now: Now) -> None:
    """Act on a control record."""
    is_new = number > max(parts.store.applied(), parts.batch.applied)
    if is_new:
        parts.batch.applied = number
    elif isinstance(order, HostForget):
        return
    match order:
        case AddSeeds(urls):
            for url in urls:
                parts.rules.widen(url)
            if is_new:
                _add_seeds(urls, parts)
        case Exclude(glob):
            scope = parts.rules.scope
            if glob not in scope.exclude:
                parts.rules.scope = replace(scope, exclude=(*scope.exclude, glob))
            parts.excludes_queued = True
        case SetOption("max_rate", value):
            rate = UNLIMITED if value is None else value
            parts.politeness.configure(replace(parts.politeness.settings, max_rate=rate))
        case HostPause(host) | HostResume(host) | HostSet(host) | HostForget(host):
            if parts.routes.owns(host):
                _steer(order, host, parts, now)
        case _:
            pass  # for the runtime


def _add_seeds(urls: tuple[str, ...], parts: Parts) -> None:
    found = seed_candidates(urls)
    if parts.settings.seeding in ("sitemap", "all"):
        origins = dict.fromkeys(url[: url.index("/", 8)] for url in urls)
        found += sitemap_candidates([f"{origin}/sitemap.xml" for origin in origins], None)
    mine = [each for each in found if parts.routes.owns(each.host)]
    parts.routes.all(parts.routes.wanted(mine), parts.batch)


def _steer(
    order: HostPause | HostResume | HostSet | HostForget, host: str, parts: Parts, now: Now
) -> None:
    politeness = parts.politeness
    parts.given_up.recall(host, parts, now)
    match order:
        case HostPause():
            politeness.pause(host, now=now.mono)
        case HostResume():
            politeness.revive(host, now=now.mono)
            parts.given_up.revive(host)
            parts.hosts.revive(host, now)
        case HostSet():
            politeness.configure(_changed(politeness.settings_of(host), order), host=host)
        case HostForget():
            politeness.unlearn(host)
            parts.hosts.unlearn(host, now)
            for scheme in ("https", "http"):
                parts.robots.forget(f"{scheme}://{host}")
                parts.store.forget_robots(f"{scheme}://{host}")
    parts.frontier.wake(host, now=now.mono)


def _changed(settings: Settings, order: HostSet) -> Settings:
    """The settings of a host with what the order names."""
    if order.delay_s is not None:
        settings = replace(settings, delay_s=order.delay_s)
    if order.max_rate is not None:
        settings = replace(settings, max_rate=order.max_rate)
    if order.per_host is not None:
        settings = replace(settings, max_concurrency=order.per_host)
    return settings
