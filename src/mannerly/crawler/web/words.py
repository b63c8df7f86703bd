"""Numbers, durations and sizes as people read them, and URLs without their passwords."""

from __future__ import annotations

import re

HIDDEN = "***"  # printed in place of a password
# Anchored: elsewhere it would be tried at every character, in quadratic time.
_USERINFO = re.compile(r"\A((?:[^:/@]*:)?//)?.*@", re.DOTALL)
_PASSWORD = re.compile(r"\A((?:[^:/@]*://)?[^:]*):.*@", re.DOTALL)

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def span(seconds: float) -> str:
    """Return a duration in its two largest units: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    units = ((_DAY_S, "d", _HOUR_S, "h"), (_HOUR_S, "h", _MINUTE_S, "min"))
    for unit_s, unit, part_s, part in (*units, (_MINUTE_S, "min", 1, "s")):
        if whole >= unit_s:
            rest = whole % unit_s // part_s
            both = f"{whole // unit_s} {unit} {rest} {part}"
            return both if rest else f"{whole // unit_s} {unit}"
    raise AssertionError(seconds)


def many(count: int, one: str, more: str | None = None) -> str:
    """Return a count with its noun: `1 page`, `2 pages`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def without_password(url: str) -> str:
    """Return a URL, well-formed or not, with its password replaced by asterisks."""
    return _PASSWORD.sub(rf"\1:{HIDDEN}@", url, count=1)


def without_userinfo(url: str) -> str:
    """Return a URL, well-formed or not, without its user name and password."""
    return _USERINFO.sub(rf"\1{HIDDEN}@", url, count=1)


def rate(per_second: float) -> str:
    """Return a rate: per minute if it is less than one per second."""
    if per_second >= 100:
        return f"{per_second:,.0f}/s"
    if per_second >= 1 or per_second == 0:
        return f"{per_second:.1f}/s"
    return f"{per_second * 60:.1f}/min"


def size(count: float) -> str:
    """Return a number of bytes in decimal units: 1 kB is 1000 B."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
