"""Read what the caches in front of a site say about an answer: was it in the cache?

    Cache-Status       RFC 9211: a list of caches, the nearest to us last; `hit`, or `fwd=` and why
    CF-Cache-Status    Cloudflare: HIT, MISS, EXPIRED, DYNAMIC …
    X-Cache            Fastly, CloudFront, Squid and most others: "HIT", "MISS, HIT", "Hit from …"
    X-Cache-Status, X-Proxy-Cache    the usual names in nginx
    X-Varnish          two numbers: the second is the request that filled the cache
    Age                seconds since the answer was made; 0 says nothing

Where several caches are in line, the one that is nearest to us counts: it is what visitors meet.
This module knows no request, and no clock.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Headers whose value is a word of the cache, the most exact first.
STATUS_HEADERS = ("cf-cache-status", "x-cache", "x-cache-status", "x-proxy-cache")

_HITS = re.compile(r"hit|stale|updating|revalidated", re.IGNORECASE)
_MISSES = re.compile(r"miss|expired|refresh", re.IGNORECASE)
_PASSES = re.compile(r"bypass|pass|dynamic|none|uncacheable|private|error", re.IGNORECASE)
_HIT_PARAMETER = re.compile(r";\s*hit\s*(?:;|$|=\s*\?1)")
_FORWARDED = re.compile(r";\s*fwd\s*=\s*\"?([a-z-]+)")
_NOT_STORED = re.compile(r"(?:^|[\s,])(?:no-store|private)(?:[\s,=]|$)", re.IGNORECASE)


class CacheState(StrEnum):
    """The place that an answer came from, as the cache says it."""

    HIT = "hit"
    MISS = "miss"  # it came from the site, and can be stored
    UNCACHEABLE = "uncacheable"  # it came from the site, and always will
    UNKNOWN = "unknown"  # no cache has named itself


def cache_state(headers: Mapping[str, str]) -> CacheState:
    """Return whether an answer came from a cache; header names are in lower case."""
    state = _named(headers)
    if state is not CacheState.HIT and _NOT_STORED.search(headers.get("cache-control", "")):
        return CacheState.UNCACHEABLE
    return state


def _named(headers: Mapping[str, str]) -> CacheState:
    if said := headers.get("cache-status"):
        return _rfc_9211(said)
    for name in STATUS_HEADERS:
        if said := headers.get(name):
            return _word(said)
    if said := headers.get("x-varnish"):
        return CacheState.HIT if len(said.split()) > 1 else CacheState.MISS
    age = headers.get("age", "").strip()
    if age.isascii() and age.isdigit():
        return CacheState.HIT if int(age[:10]) > 0 else CacheState.MISS
    return CacheState.UNKNOWN


def _rfc_9211(said: str) -> CacheState:
    nearest = said.lower().rpartition(",")[2]
    if _HIT_PARAMETER.search(nearest):
        return CacheState.HIT
    forwarded = _FORWARDED.search(nearest)
    if forwarded is not None and forwarded[1] in ("bypass", "method"):
        return CacheState.UNCACHEABLE
    return CacheState.MISS


def _word(said: str) -> CacheState:
    nearest = said.rpartition(",")[2]
    if _HITS.search(nearest):
        return CacheState.HIT
    if _MISSES.search(nearest):
        return CacheState.MISS
    return CacheState.UNCACHEABLE if _PASSES.search(nearest) else CacheState.UNKNOWN
