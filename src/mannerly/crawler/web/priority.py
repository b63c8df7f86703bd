"""Orders the queue of one host: each URL has a number, and smaller numbers go first.

    priority = 64 · band + 5 · rank + age

    band   seeds 0 · home pages 1 · otherwise 1 + depth
    rank   0 … 10: a sitemap's <priority> of 1.0 … 0.0; without one 5, as the protocol says (0.5)
    age    of <lastmod>: within a day 0, a week 1, a month 2, a year 3, older or unknown 4

    sitemaps   the first ten of a host 0, with the seeds; then one after each band of pages

So a crawl is breadth first; among pages of one depth the site's sitemap decides, and among equals
recent pages go before old ones. Sitemaps take turns with pages, so that a site with thousands of
them is crawled, not only listed. On a host with many URLs a link has the number of its place in the
host's line instead (`frontier.shares`), 32 to a band; one that is held back there has 63 in place
of rank and age, which no other has.

Priorities of different hosts are never compared. The number is at least 0, fits in an SQLite
INTEGER, and is stored, so its meaning must not change within a crawl.
"""

from __future__ import annotations

import math

_BAND = 64  # more than the largest 5 · rank + age
_RANKS = 10
_UNSAID = 0.5  # sitemaps.org: "The default priority of a page is 0.5"
_DAY_S = 86_400.0
_AGES_S = (_DAY_S, 7 * _DAY_S, 31 * _DAY_S, 366 * _DAY_S)
_FIRST_SITEMAPS = 10
_PLACES = 32  # in a band: more than the usual 5 · rank + age of a link
_HELD_BACK = _BAND - 1
_LAST = _HELD_BACK - 1  # after the links of a band
# Deeper than any real site; the order of deeper pages does not matter.
_MAX_DEPTH = 1_000_000


def priority(
    depth: int,
    *,
    is_home_page: bool = False,
    sitemap_priority: float | None = None,
    lastmod_age_s: float | None = None,
) -> int:
    """Return the priority of a URL in its host's queue. Values from a sitemap are clamped."""
    if depth <= 0:
        return 0
    if is_home_page:
        return _BAND
    return _BAND * (1 + min(depth, _MAX_DEPTH)) + 5 * _rank(sitemap_priority) + _age(lastmod_age_s)


def asked_priority(depth: int, first: int) -> int:
    """Return the priority of a program's request that is to go `first` bands before its own."""
    return max(0, priority(depth) - _BAND * first)


def sitemap_turn(number: int) -> int:
    """Return the priority of a host's sitemap; `number` counts those before it."""
    later = number - _FIRST_SITEMAPS + 1
    return _BAND * (1 + min(later, _MAX_DEPTH)) + _LAST if later > 0 else 0


def placed(place: int, *, is_held_back: bool) -> int:
    """Return the priority of a link by its place in its host's line."""
    band, rest = divmod(place, _PLACES)
    return _BAND * band + (_HELD_BACK if is_held_back else rest)


def place_of(priority: int) -> int:
    """Return the place in its host's line that a priority stands for."""
    band, rest = divmod(priority, _BAND)
    return _PLACES * band + min(rest, _PLACES - 1)


def is_held_back(priority: int) -> bool:
    """Return whether a URL with this priority was held back because of its pattern."""
    return priority % _BAND == _HELD_BACK


def _rank(said: float | None) -> int:
    if said is None or math.isnan(said):
        said = _UNSAID
    return round(_RANKS * (1.0 - min(1.0, max(0.0, said))))


def _age(age_s: float | None) -> int:
    """The class of an age, 0 to 4: the future counts as new, NaN as unknown."""
    if age_s is None or math.isnan(age_s):
        return len(_AGES_S)
    return sum(age_s > limit_s for limit_s in _AGES_S)
