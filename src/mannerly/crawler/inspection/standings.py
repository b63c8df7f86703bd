"""The standing of hosts as the store knows it: from their records, also while the crawl runs.

A record is written with every commit that concerns its host, so it is a fraction of a second old.
Requests in flight are not stored.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from mannerly.crawler.control import in_force
from mannerly.crawler.standing import NO_ROBOTS, HostStanding, HostStatus, LimitedBy, limited_by
from mannerly.politeness.settings import UNLIMITED

from .hosts import HostLine, HostSort, missing_robots, top_hosts
from .neighbours import holders
from .reasons import error_words
from .view import settings_of

_LOOKED_UP = 100  # hosts without a page whose robots.txt is looked for
_MAY_BE_SHARED = (HostStatus.FETCHING, HostStatus.ASKED_TO_WAIT, HostStatus.BACKING_OFF)

if TYPE_CHECKING:
    from mannerly.crawler.control import HostOrders
    from mannerly.crawler.model import HostRecord
    from mannerly.politeness import Settings

    from .view import View


def standings(crawl: View, sort: HostSort, limit: int, *, now: float) -> list[HostStanding]:
    """Return the first hosts in an order; by queue, those that were given up have theirs, too."""
    paces = _Paces(crawl)
    lines = {line.record.host: line for line in top_hosts(crawl, sort, limit)}
    if sort is HostSort.QUEUED:
        for more in (HostSort.GIVEN_UP, HostSort.FETCHED):
            lines |= {line.record.host: line for line in top_hosts(crawl, more, limit)}
    found = [
        _standing(line, paces.orders(line.record.host), paces.of(line.record.host), now)
        for line in lines.values()
    ]
    held_by = holders(crawl, [host.host for host in found if host.state in _MAY_BE_SHARED], now)
    found = [
        host._replace(state=HostStatus.SHARED, held_by=held_by[host.host])
        if host.host in held_by
        else host
        for host in found
    ]
    new = [at for at, host in enumerate(found) if _may_lack_robots(host)]
    for at in new[:_LOOKED_UP]:
        found[at] = _with_robots(crawl, found[at], now)
    if sort is HostSort.QUEUED:
        found.sort(key=lambda host: (-host.queued, -host.fetched))
    return found[:limit]


def _may_lack_robots(host: HostStanding) -> bool:
    return host.state is HostStatus.FETCHING and not host.fetched


def _with_robots(crawl: View, host: HostStanding, now: float) -> HostStanding:
    """Return a host as one that waits, if its robots.txt cannot be had."""
    robots = missing_robots(crawl, host.host)
    if robots is None or robots.expires_at <= now:
        return host
    return host._replace(
        state=HostStatus.BACKING_OFF,
        next_in_s=robots.expires_at - now,
        problem=NO_ROBOTS,
        failing_s=max(0.0, now - robots.failing_since),
    )


def all_counts(crawl: View, *, now: float) -> Counter[HostStatus]:
    """Return the number of hosts by status: every record is read."""
    orders = in_force(crawl.store.orders()).hosts
    queued = {host for reader in crawl.readers for host, count in reader.queued_hosts() if count}
    found = Counter(
        _status(record, orders.get(record.host), now, has_queue=record.host in queued)
        for reader in crawl.readers
        for record in reader.hosts()
    )
    shared = min(len(holders(crawl, sorted(queued), now)), found[HostStatus.FETCHING])
    found[HostStatus.FETCHING] -= shared
    found[HostStatus.SHARED] += shared
    return found


def slowest(crawl: View, *, now: float) -> HostStanding | None:
    """Return the host whose queue takes longest at its pace: every record is read."""
    paces = _Paces(crawl)
    queued = {host: count for reader in crawl.readers for host, count in reader.queued_hosts()}
    found = max(
        (
            (queued[record.host] * _delay_s(record, paces.of(record.host)), record.host, record)
            for reader in crawl.readers
            for record in reader.hosts()
            if queued.get(record.host) and not record.retired
        ),
        default=None,
    )
    if found is None:
        return None
    _, host, record = found
    return _standing(HostLine(record, queued[host]), paces.orders(host), paces.of(host), now)


class _Paces:
    """The politeness settings in force: those of the crawl, of `set`, of a host, of `host set`."""

    def __init__(self, crawl: View) -> None:
        self._settings = settings_of(crawl.store.manifest)
        orders = in_force(crawl.store.orders())
        self._hosts = orders.hosts
        self._rest = self._settings.politeness
        if "max_rate" in orders.options:
            rate = orders.options["max_rate"]
            self._rest = replace(self._rest, max_rate=UNLIMITED if rate is None else rate)

    def orders(self, host: str) -> HostOrders | None:
        return self._hosts.get(host)

    def of(self, host: str) -> Settings:
        if host not in self._hosts and host not in self._settings.hosts:
            return self._rest  # nearly all
        ordered = self._hosts.get(host)
        own = self._settings.pace_of(host, self._rest)
        return own if ordered is None else own.with_changes(ordered.settings)


def _delay_s(record: HostRecord, settings: Settings) -> float:
    """Return the time between two requests to a host; 0 if it was not asked yet."""
    least_s = max(settings.floor_s, 1.0 / settings.rate_ceiling)
    first_s = least_s if settings.strategy == "fixed" else settings.start_delay_s
    pace_s = record.adaptive_delay_s or (first_s if record.fetched else 0.0)
    return max(pace_s, record.crawl_delay_s, least_s) if pace_s else 0.0


def _standing(
    line: HostLine, own: HostOrders | None, settings: Settings, now: float
) -> HostStanding:
    record = line.record
    status = _status(record, own, now, has_queue=line.queued > 0)
    least_s = max(settings.floor_s, 1.0 / settings.rate_ceiling)
    delay_s = _delay_s(record, settings)
    floor_s = record.adaptive_delay_floor_s
    by = limited_by(
        delay_s, crawl_delay_s=record.crawl_delay_s, least_gap_s=least_s, floor_s=floor_s
    )
    until = max(record.breaker_until, record.blocked_until, record.next_at)
    return HostStanding(
        host=record.host,
        state=status,
        queued=line.queued + line.given_up,
        delay_s=delay_s,
        next_in_s=max(0.0, until - now),
        limited_by=by if delay_s else LimitedBy.UNKNOWN,
        limit=1.0 / floor_s if by is LimitedBy.LEARNED else 0.0,
        problem=error_words(record.retired) if record.retired else "",
        times=record.breaker_failures,
        failing_s=now - record.failing_since if record.failing_since else 0.0,
        fetched=record.fetched,
        refused=record.refused,
        p95_latency_s=record.p95_latency_s,
        error_rate=record.error_rate,
        tokens=record.tokens,
        success_streak=record.success_streak,
        error_streak=record.error_streak,
    )


def _status(
    record: HostRecord, own: HostOrders | None, now: float, *, has_queue: bool
) -> HostStatus:
    if own is not None and own.is_paused:
        return HostStatus.PAUSED
    if record.retired:
        return HostStatus.GIVEN_UP
    if not has_queue:
        return HostStatus.DONE
    if record.breaker_until > now:
        return HostStatus.BACKING_OFF
    if record.blocked_until > now:
        return HostStatus.ASKED_TO_WAIT
    if record.next_at > now and record.failing_since:
        # The record does not keep why it waits: a host that never sent Retry-After did not ask.
        has_asked = record.retry_afters and not record.breaker_failures
        return HostStatus.ASKED_TO_WAIT if has_asked else HostStatus.BACKING_OFF
    return HostStatus.FETCHING
