"""Numbers in words: the same everywhere a person reads them."""

from __future__ import annotations

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def span(seconds: float) -> str:
    """A duration in its two largest units: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    for unit_s, unit, part_s, part in (
        (_DAY_S, "d", _HOUR_S, "h"),
        (_HOUR_S, "h", _MINUTE_S, "min"),
        (_MINUTE_S, "min", 1, "s"),
    ):
        if whole >= unit_s:
            rest = whole % unit_s // part_s
            return (
                f"{whole // unit_s} {unit} {rest} {part}" if rest else f"{whole // unit_s} {unit}"
            )
    raise AssertionError(seconds)


def rate(per_second: float) -> str:
    """A rate: by the minute where less than one a second would be all noughts."""
    if per_second >= 100:
        return f"{per_second:,.0f}/s"
    if per_second >= 1 or per_second == 0:
        return f"{per_second:.1f}/s"
    return f"{per_second * 60:.1f}/min"


def size(count: float) -> str:
    """Bytes, in thousands as disks and networks are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def many(count: int, one: str, more: str | None = None) -> str:
    """`1 page`, `2 pages`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
