"""Take lists of URLs: sitemaps up to the limits of their host, and a slice with every commit.

One index can name 50,000 sitemaps, and each of them as many URLs.

    --max-sitemaps   sitemaps of one host that are taken and fetched in one run
    MAX_BYTES        of a host's sitemaps that are read in one run, after decompression
    MAX_LISTED       sitemaps that one robots.txt may name

Scope is asked before anything is counted. A sitemap under way counts as fetched: another one is
held back until it is known whether there is room for it. What goes beyond a limit is counted as
skipped (`sitemap_limit`), and the first time `SitemapsLimited` is emitted. Sitemaps take turns with
pages: the more a host has, the later they come (`web.priority`).

One commit of 50,000 URLs would stop the loop, so what a list names goes into the batch in slices.
The record of a list goes with its last slice. Until then it counts as in flight, and a crash has it
fetched again.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice
from typing import TYPE_CHECKING

from mannerly.crawler.events import ListSettled, SitemapsLimited, UrlsDropped
from mannerly.crawler.kinds import KINDS, Limit
from mannerly.crawler.model import GO, Drop, Entry, Later
from mannerly.crawler.page.listings import SITEMAP_LIMIT, sitemaps_near
from mannerly.crawler.web.priority import sitemap_turn
from mannerly.crawler.web.seeds import sitemap
from mannerly.crawler.web.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mannerly.crawler.events import Event
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.host.hosts import Hosts
    from mannerly.crawler.host.inflight import Flights, InFlight
    from mannerly.crawler.model import Candidate, Judgement, RawExchange
    from mannerly.crawler.page.record import Harvest
    from mannerly.politeness.model import Instant

    from .pending import Pending
    from .routes import Routes

MAX_BYTES = 1 << 30  # twenty of the largest, or the 500 of a site with ten million pages
MAX_LISTED = 100
LINES = 1000  # of one robots.txt that are looked at
SLICE = 5000  # URLs of lists that one commit takes: 30 ms
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


class Lists:
    """The lists of a shard that are being settled, in the order in which they came."""

    def __init__(
        self,
        hosts: Hosts,
        quota: SitemapQuota,
        routes: Routes,
        flights: Flights,
        pending: Pending,
        emit: Callable[[Event], None],
    ) -> None:
        self._hosts = hosts
        self._quota = quota
        self._routes = routes
        self._flights = flights
        self._pending = pending
        self._emit = emit
        self._lists: deque[tuple[InFlight, Entry, Harvest, RawExchange | None]] = deque()

    def named(self, place: str, texts: Iterable[str]) -> None:
        """Take the sitemaps that a robots.txt at `place` names: unchecked text of a server."""
        passed_over: Counter[str] = Counter()
        urls = map(canonical, islice(texts, LINES))
        near = sitemaps_near(place, urls, self._routes.rules.scope, passed_over)
        if len(near) > MAX_LISTED:
            passed_over[SITEMAP_LIMIT] = len(near) - MAX_LISTED
        for reason, count in passed_over.items():
            self._emit(UrlsDropped(reason, count))
        self._routes.links(self._within([sitemap(url, place) for url in near[:MAX_LISTED]]))

    def add(self, flight: InFlight, found: Harvest, exchange: RawExchange | None = None) -> None:
        """Take a list that was read; `exchange` is its answer if that is kept."""
        entry = flight.item
        assert isinstance(entry, Entry)
        if KINDS[entry.kind].limit is _SITEMAPS:
            self._quota.fetched(flight.host, found.list_size)
            if self._quota.is_spent(flight.host):
                self._tell(flight.host)
        found = found._replace(found=self._within(found.found))
        self._lists.append((flight, entry, found, exchange))
        self.settle()

    def settle(self) -> None:
        """Fill the batch up to a slice, and settle the lists that are finished."""
        batch, lists = self._pending.batch, self._lists
        while lists and (room := SLICE - len(batch.found) - len(batch.outgoing)) > 0:
            flight, entry, found, exchange = lists[0]
            candidates = found.found
            self._routes.links(candidates[:room])
            del candidates[:room]
            if candidates:  # known ones leave room for more of the list
                continue
            lists.popleft()
            self._flights.settle(flight)
            self._pending.settle(entry, found, exchange)
            self._emit(ListSettled(entry, found.record, found.passed_over))

    def _within(self, found: list[Candidate]) -> list[Candidate]:
        """Return what a list names, without sitemaps beyond the limits."""
        within: list[Candidate] = []
        beyond: Counter[str] = Counter()
        for each in found:
            if KINDS[each.kind].limit is not _SITEMAPS:
                within.append(each)
            elif each.url in self._routes.recent:
                pass  # it was taken
            elif (taken := self._quota.take(each)) is not None:
                within.append(taken)
            else:
                beyond[each.host] += 1
        for host, count in beyond.items():
            self._emit(UrlsDropped(SITEMAP_LIMIT, count))
            self._tell(self._hosts.visit(host))
        return within

    def _tell(self, host: Host) -> None:
        """Tell once that a host has reached a limit."""
        event = self._quota.limited(host)
        if event is not None:
            self._emit(event)
