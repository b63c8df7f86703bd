"""Numbers, dates and durations in sentences, the same way in every section."""

from __future__ import annotations

from datetime import UTC, datetime


def counted(count: int, one: str, more: str | None = None) -> str:
    """Return a count with its noun: `1 page`, `18,204 pages`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def are(count: int) -> str:
    """Return the verb for a count."""
    return "is" if count == 1 else "are"


def day(wall: float) -> str:
    """Return a date as `10 Nov 2026`, in UTC."""
    return datetime.fromtimestamp(wall, UTC).strftime("%d %b %Y").lstrip("0")


def clock(wall: float) -> str:
    """Return a time of day as `04:22:09`, in UTC."""
    return datetime.fromtimestamp(wall, UTC).strftime("%H:%M:%S")


def period(began: float, ended: float) -> str:
    """Return `17 Nov 2026, 03:00–05:11 UTC`."""
    first, last = (datetime.fromtimestamp(each, UTC) for each in (began, ended))
    if first.date() == last.date():
        return f"{day(began)}, {first:%H:%M}–{last:%H:%M} UTC"
    return f"{day(began)}, {first:%H:%M} – {day(ended)}, {last:%H:%M} UTC"


def joined(texts: list[str], *, most: int = 3) -> str:
    """Return `a, b and c`; of many the first ones and how many others there are."""
    if len(texts) > most:
        others = len(texts) - most + 1
        texts = [*texts[: most - 1], f"{others:,} others"]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
