"""What a robots.txt asks about pace: Crawl-delay, Request-rate, Visit-time.

None of the three is in RFC 9309, all are in the wild, and all are typed by strangers. So only
plain ASCII spellings count (Python's `float` would take `1_000`, `nan` and full-width digits), and
a value that is not understood is as good as absent. Zero and a thousand years are understood:
what to do about them is for the pace to say, not for the parser.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import time

_SECONDS = re.compile(rb"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HOURS = re.compile(rb"([01][0-9]|2[0-3]):?([0-5][0-9])\s*-\s*([01][0-9]|2[0-3]):?([0-5][0-9])")
# Nine digits are thirty years in seconds; more would only serve to cost time.
_RATE = re.compile(rb"([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*([smhSMH]?)(?:\s+(\S.*))?", re.DOTALL)
_UNIT_S = {b"": 1, b"s": 1, b"m": 60, b"h": 3600}


@dataclass(frozen=True, slots=True)
class VisitTime:
    """The hours, in UTC, in which a site wants visits; an end before the start is past midnight."""

    start: time
    end: time


@dataclass(frozen=True, slots=True)
class RequestRate:
    """So many requests in so many seconds, all day or only within some hours."""

    requests: int
    period_s: int
    hours: VisitTime | None = None

    @property
    def interval_s(self) -> float:
        """The time from one request to the next that this rate comes down to."""
        return self.period_s / self.requests


def crawl_delay_s(value: bytes) -> float | None:
    if not _SECONDS.fullmatch(value):
        return None
    delay_s = float(value)
    return delay_s if math.isfinite(delay_s) else None


def request_rate(value: bytes) -> RequestRate | None:
    found = _RATE.fullmatch(value)
    if not found:
        return None
    requests, period = int(found[1]), int(found[2])
    hours = visit_time(found[4]) if found[4] else None
    if not requests or not period or (found[4] and hours is None):
        return None
    return RequestRate(requests, period * _UNIT_S[found[3].lower()], hours)


def visit_time(value: bytes) -> VisitTime | None:
    found = _HOURS.fullmatch(value)
    if not found:
        return None
    start_hour, start_minute, end_hour, end_minute = map(int, found.groups())
    return VisitTime(time(start_hour, start_minute), time(end_hour, end_minute))
