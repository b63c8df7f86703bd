"""The hosts of a crawl as a table: sorted, filtered and cut into pages on this side.

All hosts are described at most once in `FRESH_S`, whatever the number of readers; beyond `MOST`
hosts only the first ones by queue are, and a filter searches these.
"""

from __future__ import annotations

import time
from collections import Counter
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from mannerly.crawler.host_view import WITHOUT_INSTANT, HostStatus, HostView
from mannerly.crawler.inspection.host_words import fields_of
from mannerly.crawler.inspection.hosts import HostViews, counts_of, one_host
from mannerly.crawler.web.choices import HostSort

from .history import HostTraces

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.inspection.view import View

FRESH_S = 1.0
WATCH_S = 5.0  # between two readings while no page is open
SHARE = 20  # a reading that takes 0.5 s is repeated after 10 s
MOST = 20_000


class TableSort(StrEnum):
    """The columns by which the table can be sorted."""

    QUEUED = "queued"
    FETCHED = "fetched"
    REFUSED = "refused"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    DELAY = "delay"
    HOST = "host"
    STATE = "state"
    NEXT = "next"
    PACE = "pace"
    LIMIT = "limit"


_STATES = {state: number for number, state in enumerate(HostStatus)}
_KEYS: dict[TableSort, Callable[[HostView], Any]] = {
    TableSort.QUEUED: lambda host: host.queued,
    TableSort.FETCHED: lambda host: host.fetched,
    TableSort.REFUSED: lambda host: host.refused,
    TableSort.FAILED: lambda host: host.times,
    TableSort.GIVEN_UP: lambda host: host.state is HostStatus.GIVEN_UP,
    TableSort.DELAY: lambda host: host.delay_s,
    TableSort.HOST: lambda host: host.host,
    TableSort.STATE: lambda host: _STATES[host.state],
    TableSort.NEXT: lambda host: inf if host.state in WITHOUT_INSTANT else host.next_in_s or 0.0,
    TableSort.PACE: lambda host: host.pace,
    TableSort.LIMIT: lambda host: host.limit,
}


class HostQuery(NamedTuple):
    """The hosts that a reader wants to see.

    `keep` are the hosts that it shows now: they come back in this order, whatever the sort says,
    so that no row moves under a finger.
    """

    sort: TableSort = TableSort.QUEUED
    ascending: bool = False
    state: str = ""
    text: str = ""
    after: int = 0
    limit: int = 50
    keep: tuple[str, ...] = ()


class HostTable:
    """The hosts of one crawl. It is asked by one thread at a time."""

    def __init__(self) -> None:
        self._read_at = self._next_at = -inf
        self._hosts: list[HostView] = []
        self._counts: Counter[HostStatus] = Counter()
        self._traces = HostTraces()

    def page(self, crawl: View, query: HostQuery) -> dict[str, Any]:
        """Return some hosts, and how many there are: all, by state, and of those that match."""
        self._refresh(crawl)
        text = query.text.lower()
        found = [
            host
            for host in self._hosts
            if (not query.state or host.state.value == query.state) and text in host.host
        ]
        found.sort(key=lambda host: host.host)
        found.sort(key=_KEYS[query.sort], reverse=not query.ascending)
        shown = found[query.after : query.after + query.limit]
        is_moved = False
        if query.keep:
            by_name = {host.host: host for host in self._hosts}
            kept = [by_name[name] for name in query.keep if name in by_name]
            is_moved = [host.host for host in shown] != [host.host for host in kept]
            shown = kept
        has_more = len(found) > query.after + query.limit
        return {
            "all": sum(self._counts.values()),
            "states": {status.value: self._counts[status] for status in HostStatus},
            "matching": len(found),
            "hosts": [
                {**fields_of(host), "trace": self._traces.of(host.host)[-40:]} for host in shown
            ],
            "is_moved": is_moved,
            "next": str(query.after + query.limit) if has_more else None,
        }

    def one(self, crawl: View, host: str, events: list[dict[str, Any]]) -> dict[str, Any] | None:
        """Return everything that is known of one host; None if the crawl has no such host."""
        details = one_host(crawl, host, now=time.time())
        if details is None:
            return None
        self._refresh(crawl)
        return {
            **fields_of(details.view),
            "next_urls": details.next_urls,
            "trace": self._traces.of(host),
            "events": [each for each in events if each["host"] == host][-10:][::-1],
        }

    def delays(self) -> dict[str, float]:
        """Return the seconds between two requests to each host, as of the latest reading."""
        return {host.host: host.delay_s for host in self._hosts}

    def watch(self, crawl: View) -> None:
        """Read the hosts now and then, so that their traces have no hole while no page is open.

        Reading takes a twentieth of the time at most.
        """
        if time.monotonic() >= self._next_at:
            self._refresh(crawl)

    def _refresh(self, crawl: View) -> None:
        now = time.monotonic()
        if now - self._read_at < FRESH_S:
            return
        wall = time.time()
        views = HostViews(crawl, now=wall)
        self._hosts = views.top(HostSort.QUEUED, MOST)
        self._counts = counts_of(views)
        self._traces.note(self._hosts, wall)
        self._read_at = time.monotonic()
        self._next_at = self._read_at + max(WATCH_S, SHARE * (self._read_at - now))
