"""Limit the sitemaps of a host: one index can name 50,000 others, and each of them as many.

    --max-sitemaps   sitemaps of one host that are taken and fetched in one run
    MAX_BYTES        of a host's sitemaps that are read in one run, after decompression
    MAX_LISTED       sitemaps that one robots.txt may name

Scope is asked before anything is counted. A sitemap under way counts as fetched: another one is
held back until it is known whether there is room for it. What goes beyond a limit is counted as
skipped (`sitemap_limit`), and the first time `SitemapsLimited` is told. Sitemaps take turns with
pages: the more a host has, the later they come (`web.priority`).
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from mannerly.crawler.events import SitemapsLimited, UrlsDropped
from mannerly.crawler.kinds import KINDS, Limit
from mannerly.crawler.model import GO, Drop, Later
from mannerly.crawler.page.listings import SITEMAP_LIMIT, sitemaps_near
from mannerly.crawler.web.priority import sitemap_turn
from mannerly.crawler.web.seeds import sitemap
from mannerly.crawler.web.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.host.host import Host
    from mannerly.crawler.host.hosts import Hosts
    from mannerly.crawler.host.inflight import InFlight
    from mannerly.crawler.model import Candidate, Judgement
    from mannerly.crawler.page.record import Harvest
    from mannerly.politeness.model import Instant

    from .parts import Parts

MAX_BYTES = 1 << 30  # twenty of the largest, or the 500 of a site with ten million pages
MAX_LISTED = 100
LINES = 1000  # of one robots.txt that are looked at
HELD_BACK_S = 0.1  # until the next look whether there is room for a sitemap

_SITEMAPS = Limit.SITEMAPS
_BEYOND = Drop(SITEMAP_LIMIT)


class SitemapQuota:
    """The number of sitemaps of each host that may still be taken."""

    def __init__(self, hosts: Hosts, limit: int, max_bytes: int = MAX_BYTES) -> None:
        self._hosts = hosts
        self._limit = limit
        self._max_bytes = max_bytes

    def take(self, found: Candidate) -> Candidate | None:
        """Return a sitemap with its turn; None if its host has enough."""
        count = self._hosts.visit(found.host).sitemap_use
        if count.taken >= self._limit or count.bytes >= self._max_bytes:
            return None
        count.taken += 1
        return found._replace(priority=sitemap_turn(count.taken - 1))

    def judge(self, host: Host, now: Instant) -> Judgement:
        """Return whether one more sitemap of a host may go."""
        if self.is_spent(host):
            return _BEYOND
        count = host.sitemaps
        if count is not None and count.fetched + count.under_way >= self._limit:
            return Later(now + HELD_BACK_S)
        return GO

    def fetched(self, host: Host, size: int) -> None:
        """Count a sitemap that was read."""
        count = host.sitemap_use
        count.fetched += 1
        count.bytes += size

    def is_spent(self, host: Host) -> bool:
        """Return whether no more sitemaps of a host are fetched."""
        count = host.sitemaps
        if count is None:
            return self._limit == 0
        return count.fetched >= self._limit or count.bytes >= self._max_bytes

    def limited(self, host: Host) -> SitemapsLimited | None:
        """Return the event that a host has reached a limit, once."""
        count = host.sitemap_use
        if count.is_told:
            return None
        count.is_told = True
        return SitemapsLimited(host.name, count.taken, count.bytes)


def listed(place: str, texts: Iterable[str], parts: Parts) -> None:
    """Take the sitemaps that a robots.txt at `place` names: unchecked text of a server."""
    passed_over: Counter[str] = Counter()
    urls = map(canonical, islice(texts, LINES))
    near = sitemaps_near(place, urls, parts.rules.scope, passed_over)
    if len(near) > MAX_LISTED:
        passed_over[SITEMAP_LIMIT] = len(near) - MAX_LISTED
    for reason, count in passed_over.items():
        parts.emit(UrlsDropped(reason, count))
    found = _within(parts, [sitemap(url, place) for url in near[:MAX_LISTED]])
    parts.routes.links(found, parts.pending.batch)


def settled(flight: InFlight, found: Harvest, parts: Parts) -> list[Candidate]:
    """Count a list that was read; return what it names, without sitemaps beyond the limits."""
    if KINDS[flight.item.kind].limit is _SITEMAPS:
        parts.sitemaps.fetched(flight.host, found.list_size)
        if parts.sitemaps.is_spent(flight.host):
            _tell(flight.host, parts)
    return _within(parts, found.found)


def _within(parts: Parts, found: list[Candidate]) -> list[Candidate]:
    within: list[Candidate] = []
    beyond: Counter[str] = Counter()
    for each in found:
        if KINDS[each.kind].limit is not _SITEMAPS:
            within.append(each)
        elif each.url in parts.routes.recent:
            pass  # it was taken
        elif (taken := parts.sitemaps.take(each)) is not None:
            within.append(taken)
        else:
            beyond[each.host] += 1
    for host, count in beyond.items():
        parts.emit(UrlsDropped(SITEMAP_LIMIT, count))
        _tell(parts.hosts.visit(host), parts)
    return within


def _tell(host: Host, parts: Parts) -> None:
    event = parts.sitemaps.limited(host)
    if event is not None:
        parts.emit(event)
