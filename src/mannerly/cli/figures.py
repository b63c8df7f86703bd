"""Format numbers for people, the same way everywhere."""

from __future__ import annotations

from mannerly.crawler.web.words import many, span

__all__ = ["many", "rate", "size", "span"]


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
