"""Caches in front of a site: what they say about an answer, and the variants of a page they keep.

    Cache-Status       RFC 9211: a list of caches, the nearest to us last; `hit`, or `fwd=` and why
    CF-Cache-Status    Cloudflare: HIT, MISS, EXPIRED, DYNAMIC …
    X-Cache            Fastly, CloudFront, Squid and most others: "HIT", "MISS, HIT", "Hit from …"
    X-Cache-Status, X-Proxy-Cache    the usual names in nginx
    X-Varnish          two numbers: the second is the request that filled the cache
    Age                seconds since the answer was made; 0 says nothing

Where several caches are in line, the one that is nearest to us counts: it is what visitors meet.
A cache keeps variants of a page apart; each is a request of its own, and has one name:

    mobile                      as a phone: the User-Agent says so, after our name
    gzip, br, zstd, identity    the encoding that is accepted
    NAME: VALUE                 any other header, such as Accept-Language: de

This module knows no clock.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


Headers: TypeAlias = tuple[tuple[str, str], ...]

PLAIN = "plain"
MOBILE = "mobile"
ENCODINGS = ("gzip", "br", "zstd", "identity")
FORM = f"{MOBILE}, {', '.join(ENCODINGS)}, or a header such as 'Accept-Language: de'"

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~]+)")
# They decide where a request goes, what it asks for, or who asks: no variant of a page.
_NOT_A_VARIANT = frozenset(
    {"host", "from", "content-length", "transfer-encoding", "connection", "upgrade", "te"}
    | {"expect", "range", "if-none-match", "if-modified-since", "authorization", "cache-control"}
    | {"pragma", "proxy-authorization"}
)


class Variant(NamedTuple):
    """One variant: its name, and the headers that ask for it."""

    name: str
    headers: Headers


def read_variant(text: str, user_agent: str) -> Variant:
    """Return the variant that a text names.

    Raises:
        ValueError: it names none; the message says what is allowed.
    """
    if text == MOBILE:
        name, _, rest = user_agent.partition(" ")
        agent = f"{name} (Linux; Android 14; Mobile) {rest}".strip()
        return Variant(text, (("User-Agent", agent),))
    if text in ENCODINGS:
        return Variant(text, (("Accept-Encoding", text),))
    header = _HEADER.fullmatch(text)
    if header is None or header[1].lower() in _NOT_A_VARIANT:
        raise ValueError(FORM)
    return Variant(text, ((header[1], header[2].strip()),))


def variants_of(texts: Iterable[str], user_agent: str) -> tuple[Variant, ...]:
    """Return the variants of each page in the order in which they are asked for.

    The plain one is the last, so that the record of a page is that of its plain answer.
    """
    named = (read_variant(text, user_agent) for text in dict.fromkeys(texts))
    return (*named, Variant(PLAIN, ()))
