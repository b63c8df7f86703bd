"""The course of a crawl over time, in bounded memory: the older, the coarser.

A point is (wall time, pages/s, refused/s, queue, requests in flight, median and 95 % latency in
ms). One a second is kept for 15 minutes, one in 10 seconds for 6 hours, one in 2 minutes for ever
after, at most `MOST` of those: then every second one goes.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

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
