"""Bounds of the numbers that servers send and that memories return.

    a wait asked for     0 … 100 years   Retry-After, Crawl-delay, Request-rate
    a wait by headers    0 … 1 day       RateLimit (see `headers`)
    an instant           0 … 9892        seconds since 1970, in a memory
    a count              0 … 1e9         in a memory
    a setting            −1e15 … 1e15    beyond its own range: of the operator, so it is refused

A parser bounds a number where it is read, and a memory's record is bounded where it is recalled. So
every other module may add, compare and keep numbers without a check of its own, and every store can
keep them: the largest instant is that of a store's files.
"""

from __future__ import annotations

LONGEST_WAIT_S = 3_153_600_000.0
"""The longest wait that a host can ask for: 100 years. A longer one counts as this long."""

LAST_INSTANT = 250e9  # seconds since 1970: the year 9892
MOST = 1_000_000_000  # of anything that is counted
LARGEST_SETTING = 1e15  # in milliseconds it still is a 64-bit number


def bounded(value: object, most: float = LONGEST_WAIT_S) -> float:
    """Return a number that was read from a memory, within 0 … `most`; 0 for what is no number."""
    if not isinstance(value, int | float) or not value > 0:  # NaN is not, either
        return 0.0
    return float(value) if value < most else most
