"""Numbers in words: the same everywhere a person reads them."""

from __future__ import annotations

from mannerly.crawler.web.words import span

__all__ = ["many", "rate", "size", "span"]


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
