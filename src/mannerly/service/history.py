"""The course of a crawl and of its hosts over time, in bounded memory: the older, the coarser.

A point of the crawl is (wall time, pages/s, refused/s, queue, requests in flight, median and 95 %
latency in ms). One a second is kept for 15 minutes, one in 10 seconds for 6 hours, one in 2 minutes
for ever after, at most `MOST` of those: then every second one goes.

A host has a point where its pace, limit or refusals changed in the last hour, for its small chart;
`MOST_HOSTS` hosts have them, the first ones by queue.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.host_view import HostStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.host_view import HostView

FINE_S, FINE_KEPT_S = 1.0, 900.0
MIDDLE_S, MIDDLE_KEPT_S = 10.0, 21_600.0
COARSE_S, MOST = 120.0, 2000


class Point(NamedTuple):
    """One moment of a crawl."""

    at: float
    pages_s: float
    refused_s: float
    queue: int
    in_flight: int
    median_ms: float | None
    high_ms: float | None


class History:
    """The points of one crawl."""

    def __init__(self) -> None:
        self._fine: list[Point] = []
        self._middle: list[Point] = []
        self._coarse: list[Point] = []
        self._coarse_s = COARSE_S

    def add(self, point: Point) -> None:
        """Add the point of this second; points of the same second are left out."""
        if self._fine and point.at - self._fine[-1].at < FINE_S * 0.9:
            return
        self._fine.append(point)
        _pass_on(self._fine, self._middle, FINE_KEPT_S, MIDDLE_S)
        _pass_on(self._middle, self._coarse, MIDDLE_KEPT_S, self._coarse_s)
        if len(self._coarse) > MOST:
            del self._coarse[1::2]
            self._coarse_s *= 2

    def points(self) -> list[Point]:
        """Return all points, oldest first."""
        return list(chain(self._coarse, self._middle, self._fine))


def _pass_on(finer: list[Point], coarser: list[Point], kept_s: float, step_s: float) -> None:
    """Move the means of points that are too old into the coarser list."""
    newest = finer[-1].at if finer else 0.0
    while finer and finer[0].at < newest - kept_s - step_s:
        end = finer[0].at + step_s
        count = sum(point.at < end for point in finer[: int(step_s) + 1]) or 1
        coarser.append(_mean(finer[:count]))
        del finer[:count]


def _mean(points: list[Point]) -> Point:
    count = len(points)
    last = points[-1]
    return Point(
        points[0].at,
        round(sum(point.pages_s for point in points) / count, 3),
        round(sum(point.refused_s for point in points) / count, 3),
        last.queue,
        max(point.in_flight for point in points),
        last.median_ms,
        last.high_ms,
    )


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

    def note(self, hosts: Iterable[HostView], now: float) -> None:
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


def _point(host: HostView, now: float) -> TracePoint:
    is_going = host.state is HostStatus.FETCHING and host.delay_s > 0
    pace = round(host.pace, 3) if is_going else 0.0
    return TracePoint(round(now, 1), pace, round(host.limit, 3), host.refused)


def _differs(before: TracePoint, after: TracePoint) -> bool:
    return (
        abs(after.pace - before.pace) > CHANGE * before.pace
        or abs(after.limit - before.limit) > CHANGE * before.limit
        or after.refused != before.refused
    )
