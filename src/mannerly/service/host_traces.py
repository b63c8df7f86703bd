"""Remember each host's pace, limit and refusals over the last hour: what its small chart shows.

A point is kept where something changed, for a bounded number of hosts; the first ones by queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.standing import HostStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.standing import HostStanding

KEPT_S = 3600.0
MOST_HOSTS, MOST_POINTS = 20_000, 120  # about 300 bytes a host
CHANGE = 0.02  # of a pace or a limit: smaller ones are not kept


class TracePoint(NamedTuple):
    """A host from an instant on: requests a second, the limit that was found, refusals so far."""

    at: float
    pace: float  # 0 while nothing is sent
    limit: float  # 0: none was found
    refused: int


class HostTraces:
    """The last hour of the hosts of one crawl."""

    def __init__(self) -> None:
        self._traces: dict[str, list[TracePoint]] = {}

    def note(self, hosts: Iterable[HostStanding], now: float) -> None:
        """Add a point for each host that has changed."""
        for host in hosts:
            trace = self._traces.get(host.host)
            if trace is None:
                if not host.delay_s or len(self._traces) >= MOST_HOSTS:
                    continue
                trace = self._traces[host.host] = []
            point = _point(host, now)
            if not trace or _differs(trace[-1], point):
                trace.append(point)
            if len(trace) > MOST_POINTS or (len(trace) > 1 and trace[1].at < now - KEPT_S):
                del trace[0]

    def of(self, host: str) -> list[TracePoint]:
        """Return the points of one host, oldest first."""
        return self._traces.get(host, [])


def _point(host: HostStanding, now: float) -> TracePoint:
    is_going = host.state is HostStatus.FETCHING and host.delay_s > 0
    pace = round(1.0 / host.delay_s, 3) if is_going else 0.0
    return TracePoint(round(now, 1), pace, round(host.limit, 3), host.refused)


def _differs(before: TracePoint, after: TracePoint) -> bool:
    return (
        abs(after.pace - before.pace) > CHANGE * before.pace
        or abs(after.limit - before.limit) > CHANGE * before.limit
        or after.refused != before.refused
    )
