"""Parse the robots.txt extensions Crawl-delay, Request-rate and Visit-time.

They are not in RFC 9309, but in use, and written by hand. Only plain ASCII numbers are accepted
(Python's `float` would also accept `1_000`, `nan` and full-width digits); an invalid value counts
as absent. Zero and a hundred years are valid here: the caller decides what to do with them. A
longer delay means `LONGEST_WAIT_S`, not nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time

from ..bounds import LONGEST_WAIT_S

# Digits are never given back (++, *+): otherwise 16 KB of them and a letter would take seconds.
_SECONDS = re.compile(rb"(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_HOURS = re.compile(rb"([01][0-9]|2[0-3]):?([0-5][0-9])\s*-\s*([01][0-9]|2[0-3]):?([0-5][0-9])")
# Nine digits are thirty years in seconds: more are never needed.
_RATE = re.compile(rb"([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*([smhSMH]?)(?:\s+(\S.*))?", re.DOTALL)
_UNIT_S = {b"": 1, b"s": 1, b"m": 60, b"h": 3600}


@dataclass(frozen=True, slots=True)
class VisitTime:
    """The hours (UTC) in which a site wants visits; an end before the start is after midnight."""

    start: time
    end: time


@dataclass(frozen=True, slots=True)
class RequestRate:
    """A number of requests per period, all day or only within some hours."""

    requests: int
    period_s: int
    hours: VisitTime | None = None

    @property
    def interval_s(self) -> float:
        """The delay between two requests that this rate means, in seconds."""
        return min(self.period_s / self.requests, LONGEST_WAIT_S)


def crawl_delay_s(value: bytes) -> float | None:
    if not _SECONDS.fullmatch(value):
        return None
    return min(float(value), LONGEST_WAIT_S)


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
