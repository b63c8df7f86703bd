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

from . import origins

if TYPE_CHECKING:
    from mannerly.crawler.control import Control
    from mannerly.crawler.model import Now, RobotsRequest
    from mannerly.politeness import Settings

    from .parts import Parts


def apply(number: int, order: Control, parts: Parts, now: Now) -> None:
    """Act on a control record."""
    is_new = number > max(parts.store.applied(), parts.pending.batch.applied)
    if is_new:
        parts.pending.batch.applied = number
    parts.plugins.ordered(order, is_new=is_new)
    match order:
        case AddSeeds() | SeedsMoved() | CheckUrls():
            _take_urls(order, parts, is_new=is_new)
        case FetchRobots(requests) if is_new:
            _fetch_for_others(requests, parts, now)
        case Exclude(glob):
            scope = parts.rules.scope
            if glob not in scope.exclude:
                parts.rules.scope = replace(scope, exclude=(*scope.exclude, glob))
            parts.excludes_queued = True
        case SetOption("max_rate", value):
            rate = UNLIMITED if value is None else value
            _set_pace(replace(parts.politeness.settings, max_rate=rate), parts, now)
        case HostPause(host) | HostResume(host) | HostSet(host) | HostForget(host):
            if parts.routes.owns(host):
                _steer(order, host, parts, now, is_new=is_new)
        case RetryUrls() | Recrawl() if is_new:
            _bring_back(order, parts, now)
        case _:
            pass  # for the runtime


def _bring_back(order: RetryUrls | Recrawl, parts: Parts, now: Now) -> None:
    if isinstance(order, RetryUrls) and order.host is not None:
        if not parts.routes.owns(order.host):
            return
        parts.given_up.revive(order.host, parts, now)
    parts.pending.batch.retries.append(order)


def _take_urls(order: AddSeeds | SeedsMoved | CheckUrls, parts: Parts, *, is_new: bool) -> None:
    if isinstance(order, CheckUrls):
        found = check_candidates(order.urls)
    else:
        parts.rules.widen(*order.urls)
        found = seed_candidates(order.urls)
        if parts.settings.seeding in ("sitemap", "all"):
            found += usual_sitemaps(order.urls)
    if not is_new or isinstance(order, SeedsMoved):
        return
    mine = [each for each in found if parts.routes.owns(each.host)]
    parts.routes.all(parts.wanted(mine), parts.pending.batch)


def _fetch_for_others(requests: tuple[RobotsRequest, ...], parts: Parts, now: Now) -> None:
    for request in requests:
        if parts.routes.owns(request.host):
            origins.follow(request, parts, now)


def _steer(
    order: HostPause | HostResume | HostSet | HostForget,
    host: str,
    parts: Parts,
    now: Now,
    *,
    is_new: bool,
) -> None:
    politeness = parts.politeness
    known = parts.given_up.recall(host, parts, now)
    match order:
        case HostPause():
            parts.hosts.pause(known)
            politeness.pause(host, now=now.mono)
        case HostResume():
            parts.hosts.unpause(known)
            if is_new:
                politeness.revive(host, now=now.mono)
                _take_in_again(host, parts, now)
            else:  # an old one ends an old pause only: the host may have failed since
                politeness.unpause(host, now=now.mono)
        case HostSet():
            parts.paces.order(politeness.key(host), order)
        case HostForget() if is_new:
            _take_in_again(host, parts, now)
            politeness.unlearn(host)
            parts.records.unlearn(known, now)
            if parts.shared is not None and known.budget is not None:
                parts.shared.forget(known.budget, now)
            for origin in (f"https://{host}", f"http://{host}"):
                parts.forget_robots(origin)
    group = parts.hosts.of_key(parts.hosts.key(host))
    for each in group:
        parts.frontier.wake(each, now=now.mono)
    parts.hosts.touch(group)


def _take_in_again(host: str, parts: Parts, now: Now) -> None:
    """Revive a host, and bring back what was given up with it."""
    parts.given_up.revive(host, parts, now)
    parts.pending.batch.retries.append(RetryUrls(failed=False, given_up=True, host=host))


def _set_pace(settings: Settings, parts: Parts, now: Now) -> None:
    """Change the pace of all hosts; what was set for single ones stays."""
    parts.politeness.configure(settings)
    parts.addresses.configure(settings)
    parts.hosts.configure(settings)
    parts.paces.apply()
    parts.frontier.wake_all(now=now.mono)
    parts.hosts.touch(parts.hosts)
