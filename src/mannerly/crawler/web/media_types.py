"""Media types of answers, from their Content-Type header."""

from __future__ import annotations

from functools import lru_cache

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@lru_cache(maxsize=64)
def media_type(content_type: str | None) -> str:
    """Return the type in a Content-Type header, in lower case; empty without a header."""
    return (content_type or "").partition(";")[0].strip().lower()
