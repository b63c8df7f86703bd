"""May this entry be fetched? The frontier asks; the answer comes from memory alone.

the host's record is not in memory    Unknown: it is brought in, and the host is asked again
the host was given up                 Drop
its latest request still connects     Later: the gap begins when that request leaves
the URL was excluded meanwhile        Drop
a page, and only links are checked    Drop
a sitemap beyond its host's limits    Drop, or Later while one is under way
robots.txt                            GO, Drop, Later, or Unknown where the rules are missing
--max-per-host                        GO, Drop or Later
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS, Limit
from mannerly.crawler.model import GO, Drop, Later, Unknown
from mannerly.crawler.web.scope import SkipReason

from .given_up import dropped_because

if TYPE_CHECKING:
    from mannerly.crawler.model import Entry, Judgement
    from mannerly.politeness.model import Instant

    from .parts import Parts

CONNECTING_LOOK_S = 0.05  # how often to look whether a request that is still connecting has left

_PAGES, _SITEMAPS = Limit.PAGES, Limit.SITEMAPS
_NOT_VISITED = Drop("not_visited")
_EXCLUDED = Drop(SkipReason.EXCLUDED.value)


class Judge:
    """The judge of one shard's entries."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._hosts, self._robots, self._quota = parts.hosts, parts.robots, parts.quota
        self._flights, self._key = parts.flights, parts.politeness.key
        self._sitemaps = parts.sitemaps

    def begin(self) -> None:
        """Start a new `take` of the frontier."""
        if self._quota is not None:
            self._quota.begin()
        self._sitemaps.begin()

    def __call__(self, entry: Entry, now: Instant) -> Judgement:
        """Return whether an entry may be fetched."""
        host, hosts = entry.host, self._hosts
        if host not in hosts.known:
            url = entry.url
            return Unknown(url[: url.index("/", 8)])
        given_up = hosts.given_up(host)
        if given_up is not None:
            return Drop(dropped_because(given_up))
        if self._flights.unsent and self._is_connecting(host):
            return Later(now + CONNECTING_LOOK_S, is_for_host=True)
        if self._parts.excludes_queued and self._parts.rules.scope.excludes(entry.url):
            return _EXCLUDED
        row = KINDS[entry.kind]
        if self._parts.checks_only and row.is_page:
            return _NOT_VISITED
        if row.limit is _SITEMAPS:
            return self._judge_sitemap(entry, now)
        ruling = self._robots.judge(entry, now)
        if ruling is GO and self._quota is not None and row.limit is _PAGES:
            # A page that is checked again was counted when it was fetched first.
            return GO if self._parts.rechecks.has_record(entry) else self._quota.judge(host)
        return ruling

    def _judge_sitemap(self, entry: Entry, now: Instant) -> Judgement:
        sitemaps, host = self._sitemaps, entry.host
        ruling = sitemaps.judge(host, self._flights.sitemaps_of(host), now)
        if ruling is GO:
            ruling = self._robots.judge(entry, now)
        if ruling is GO:
            sitemaps.allowed(host)
        return ruling

    def _is_connecting(self, host: str) -> bool:
        key = self._key(host)
        is_paced = self._parts.politeness.settings_of(key).enabled
        return is_paced and self._flights.is_connecting(key)
