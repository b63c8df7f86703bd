"""The hosts of a crawl as a table: sorted, filtered and cut into pages on this side.

All hosts are described at most once in `FRESH_S`, whatever the number of readers; beyond `MOST`
hosts only the first ones by queue are, and a filter looks among these.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, NamedTuple

from mannerly.crawler.inspection.hosts import HostSort, one_host
from mannerly.crawler.inspection.standings import all_counts, standings
from mannerly.crawler.standing import HostStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.standing import HostStanding

FRESH_S = 1.0
MOST = 20_000
MOST_TRACED, TRACE = 2000, 120  # hosts whose pace over time is remembered, and changes of each


class Trace(NamedTuple):
    """A host's pace and the limit that was found, in requests a second, from an instant on."""

    at: float
    pace: float
    limit: float


_KEYS: dict[HostSort, Callable[[HostStanding], float]] = {
    HostSort.QUEUED: lambda host: host.queued,
    HostSort.FETCHED: lambda host: host.fetched,
    HostSort.REFUSED: lambda host: host.refused,
    HostSort.FAILED: lambda host: host.times,
    HostSort.GIVEN_UP: lambda host: host.state is HostStatus.GIVEN_UP,
    HostSort.DELAY: lambda host: host.delay_s,
}


class HostTable:
    """The hosts of one crawl. It is asked by one thread at a time."""

    def __init__(self) -> None:
        self._read_at = float("-inf")
        self._hosts: list[HostStanding] = []
        self._counts: Counter[HostStatus] = Counter()
        self._traces: dict[str, deque[Trace]] = {}

    def page(
        self, crawl: View, *, sort: HostSort, state: str, text: str, after: int, limit: int
    ) -> dict[str, Any]:
        """Return some hosts, and how many there are: all, by state, and of those that match."""
        self._refresh(crawl)
        found = [
            host
            for host in self._hosts
            if (not state or host.state.value == state) and text.lower() in host.host
        ]
        found.sort(key=_KEYS[sort], reverse=True)
        has_more = len(found) > after + limit
        return {
            "all": sum(self._counts.values()),
            "states": {status.value: self._counts[status] for status in HostStatus},
            "matching": len(found),
            "hosts": [described(host) for host in found[after : after + limit]],
            "next": str(after + limit) if has_more else None,
        }

    def one(self, crawl: View, host: str, events: list[dict[str, Any]]) -> dict[str, Any] | None:
        """Return everything that is known of one host; None if the crawl has no such host."""
        line = one_host(crawl, host)
        if line is None:
            return None
        self._refresh(crawl)
        standing = next((each for each in self._hosts if each.host == host), None)
        shown = {} if standing is None else described(standing)
        return {
            **line.record._asdict(),
            **shown,
            "queued": line.queued,
            "given_up": line.given_up,
            "next_urls": line.next_urls,
            "trace": [each._asdict() for each in self._traces.get(host, ())],
            "events": [each for each in events if each["host"] == host][-10:][::-1],
        }

    def _refresh(self, crawl: View) -> None:
        now = time.monotonic()
        if now - self._read_at < FRESH_S:
            return
        wall = time.time()
        self._hosts = standings(crawl, HostSort.QUEUED, MOST, now=wall)
        self._counts = all_counts(crawl, now=wall)
        self._read_at = now
        for host in self._hosts[:MOST_TRACED]:
            self._trace(host, wall)

    def _trace(self, host: HostStanding, now: float) -> None:
        """Remember a host's pace and limit where they changed."""
        if not host.delay_s:
            return
        trace = self._traces.setdefault(host.host, deque(maxlen=TRACE))
        pace, limit = round(1.0 / host.delay_s, 3), round(host.limit, 3)
        if not trace or (trace[-1].pace, trace[-1].limit) != (pace, limit):
            trace.append(Trace(round(now, 1), pace, limit))


def described(host: HostStanding) -> dict[str, Any]:
    """Return a host as the page shows it."""
    return {
        "host": host.host,
        "state": host.state.value,
        "next_in_s": host.next_in_s
        if host.state not in (HostStatus.GIVEN_UP, HostStatus.DONE, HostStatus.PAUSED)
        else None,
        "pace": 1.0 / host.delay_s if host.delay_s else None,
        "delay_s": host.delay_s,
        "limited_by": host.limited_by.value,
        "limit": host.limit,
        "because": because(host),
        "queued": host.queued,
        "fetched": host.fetched,
        "refused": host.refused,
    }


def because(host: HostStanding) -> str:
    """Return why a host waits, in words; nothing if it does not."""
    if host.state is HostStatus.GIVEN_UP:
        return host.problem
    if host.state is HostStatus.PAUSED:
        return "by you"
    if host.state is HostStatus.SHARED:
        return f"in use by crawl {host.held_by}"
    if host.state is HostStatus.BACKING_OFF:
        return f"{host.times} failures in a row; then one probe" if host.times else "then one probe"
    if host.state is HostStatus.ASKED_TO_WAIT:
        return "it sent Retry-After"
    return ""
