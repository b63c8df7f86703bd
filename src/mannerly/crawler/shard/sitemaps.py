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

    from mannerly.crawler.model import Candidate, Entry, Judgement
    from mannerly.crawler.page.record import Harvest
    from mannerly.politeness.model import Instant

    from .parts import Parts

MAX_BYTES = 1 << 30  # twenty of the largest, or the 500 of a site with ten million pages
MAX_LISTED = 100
LINES = 1000  # of one robots.txt that are looked at
HELD_BACK_S = 0.1  # until the next look whether there is room for a sitemap

_SITEMAPS = Limit.SITEMAPS
_BEYOND = Drop(SITEMAP_LIMIT)


class _Count:
    """The sitemaps of one host in this run."""

    __slots__ = ("bytes", "fetched", "is_told", "taken")

    def __init__(self) -> None:
        self.taken = 0  # queued, as far as this shard has found them
        self.fetched = 0
        self.bytes = 0
        self.is_told = False


class SitemapQuota:
    """The number of sitemaps of each host that may still be taken."""

    def __init__(self, limit: int, max_bytes: int = MAX_BYTES) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._hosts: dict[str, _Count] = {}
        self._allowed: Counter[str] = Counter()  # in one `take`

    def take(self, found: Candidate) -> Candidate | None:
        """Return a sitemap with its turn; None if its host has enough."""
        count = self._hosts.setdefault(found.host, _Count())
        if count.taken >= self._limit or count.bytes >= self._max_bytes:
            return None
        count.taken += 1
        return found._replace(priority=sitemap_turn(count.taken - 1))

    def begin(self) -> None:
        """Start a new `take`: what the last one allowed is under way, or is judged again."""
        if self._allowed:
            self._allowed.clear()

    def judge(self, host: str, under_way: int, now: Instant) -> Judgement:
        """Return whether one more sitemap of a host may go; `under_way`: have no result yet."""
        if self.is_spent(host):
            return _BEYOND
        count = self._hosts.get(host)
        fetched = 0 if count is None else count.fetched
        if fetched + under_way + self._allowed[host] >= self._limit:
            return Later(now + HELD_BACK_S)
        return GO

    def allowed(self, host: str) -> None:
        """A sitemap goes, unless its host has no slot now."""
        self._allowed[host] += 1

    def fetched(self, host: str, size: int) -> None:
        """Count a sitemap that was read."""
        count = self._hosts.setdefault(host, _Count())
        count.fetched += 1
        count.bytes += size

    def is_spent(self, host: str) -> bool:
        """Return whether no more sitemaps of a host are fetched."""
        count = self._hosts.get(host)
        if count is None:
            return self._limit == 0
        return count.fetched >= self._limit or count.bytes >= self._max_bytes

    def forget(self, host: str) -> None:
        """Forget a host that was not needed for long."""
        self._hosts.pop(host, None)

    def limited(self, host: str) -> SitemapsLimited | None:
        """Return the event that a host has reached a limit, once."""
        count = self._hosts.setdefault(host, _Count())
        if count.is_told:
            return None
        count.is_told = True
        return SitemapsLimited(host, count.taken, count.bytes)


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
    parts.routes.links(found, parts.batch)


def settled(entry: Entry, found: Harvest, parts: Parts) -> list[Candidate]:
    """Count a list that was read; return what it names, without sitemaps beyond the limits."""
    if KINDS[entry.kind].limit is _SITEMAPS:
        parts.sitemaps.fetched(entry.host, found.list_size)
        if parts.sitemaps.is_spent(entry.host):
            _tell(entry.host, parts)
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
        _tell(host, parts)
    return within


def _tell(host: str, parts: Parts) -> None:
    event = parts.sitemaps.limited(host)
    if event is not None:
        parts.emit(event)
