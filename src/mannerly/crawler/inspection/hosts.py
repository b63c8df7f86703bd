"""The hosts of a stored crawl: views of them, in an order.

A record is written with every commit that concerns its host, so it is a fraction of a second old
while the crawl runs.
"""

from __future__ import annotations

import heapq
from collections import Counter
from operator import attrgetter, itemgetter, methodcaller
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.control import in_force
from mannerly.crawler.host_view import HostStatus, HostView, view_of
from mannerly.crawler.web.choices import HostSort
from mannerly.crawler.web.urls import canonical, host_key_of
from mannerly.crawler.web.words import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mannerly.crawler.model import HostRecord

    from .view import View

_NEXT_URLS = 5  # of a host


class HostDetails(NamedTuple):
    """One host, and the URLs that are fetched next."""

    view: HostView
    next_urls: tuple[str, ...]

    @property
    def record(self) -> HostRecord:
        """Return what is kept of the host."""
        return self.view.record


# What a shard's reader counts by host.
_COUNTED = {
    HostSort.QUEUED: methodcaller("queued_hosts"),
    HostSort.GIVEN_UP: methodcaller("given_up_hosts"),
}


class HostViews:
    """Makes views of the hosts of one crawl at one moment; the queues are read once."""

    def __init__(self, crawl: View, *, now: float) -> None:
        orders = in_force(crawl.store.orders())
        self._crawl, self._now = crawl, now
        self._own = orders.hosts
        self._is_running = crawl.store.is_running()
        self._is_paused = orders.is_paused
        self._queued = self._count(HostSort.QUEUED)
        self._given_up = self._count(HostSort.GIVEN_UP)

    def all(self) -> Iterator[HostView]:
        """Yield every host."""
        for reader in self._crawl.readers:
            yield from map(self.of, reader.hosts())

    def top(self, sort: HostSort, limit: int) -> list[HostView]:
        """Return the first `limit` hosts; after those with a queue, those without."""
        names = self._names(sort, limit)
        if sort is HostSort.QUEUED:
            for more in (HostSort.GIVEN_UP, HostSort.FETCHED):
                names |= self._names(more, limit)
        records = (self._crawl.reader_of(name).host(name) for name in names)
        found = [self.of(record) for record in records if record is not None]
        if sort is HostSort.QUEUED:
            found.sort(key=lambda host: (-host.queued, -host.given_up, -host.fetched))
        return found[:limit]

    def of(self, record: HostRecord) -> HostView:
        """Return the view of the host of a record."""
        own = self._own.get(record.host)
        return view_of(
            record,
            self._queued.get(record.host, 0),
            now=self._now,
            given_up=self._given_up.get(record.host, 0),
            is_running=self._is_running,
            is_paused=self._is_paused or (own is not None and own.is_paused),
        )

    def _count(self, sort: HostSort) -> Mapping[str, int]:
        counted = _COUNTED[sort]
        return dict(pair for reader in self._crawl.readers for pair in counted(reader))

    def _names(self, sort: HostSort, limit: int) -> dict[str, None]:
        counts = {HostSort.QUEUED: self._queued, HostSort.GIVEN_UP: self._given_up}.get(sort)
        if counts is not None:
            most = heapq.nlargest(limit, counts.items(), key=itemgetter(1))
            return dict.fromkeys(name for name, _ in most)
        if sort is HostSort.DELAY:
            found = heapq.nlargest(limit, self.all(), key=attrgetter("delay_s"))
            return dict.fromkeys(view.host for view in found)
        records = (record for reader in self._crawl.readers for record in reader.hosts())
        kept = heapq.nlargest(limit, records, key=attrgetter(sort.value))
        return dict.fromkeys(record.host for record in kept)


def one_host(crawl: View, host: str, *, now: float) -> HostDetails | None:
    """Return everything that is kept of a host; None if it is no host of the crawl."""
    reader = crawl.reader_of(host)
    record = reader.host(host)
    if record is None:
        return None
    entries = reader.queued(host, after=(-1, -1), limit=_NEXT_URLS)
    view = HostViews(crawl, now=now).of(record)
    return HostDetails(view, tuple(entry.url for entry in entries))


def counts_of(views: HostViews) -> Counter[HostStatus]:
    """Return the number of hosts by status: every record is read."""
    return Counter(view.state for view in views.all())


def slowest_of(views: HostViews) -> HostView | None:
    """Return the host whose queue takes longest at its pace: every record is read."""
    queued = (view for view in views.all() if view.queued and view.state is not HostStatus.GIVEN_UP)
    return max(queued, key=lambda view: (view.queue_s, view.host), default=None)


def host_key(text: str) -> str:
    """Return a host as the store has it, from a host name or a URL of it.

    Raises:
        ValueError: it is neither.
    """
    url = canonical(text if "://" in text else f"https://{text}")
    if url is None:
        raise ValueError(f"{without_userinfo(text)} is not a host: write it like example.org")
    return host_key_of(url)
