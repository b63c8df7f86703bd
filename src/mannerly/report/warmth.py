"""The result of a run of warming: hit rate and time to the first byte, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mannerly.crawler.stats import OTHER_SECTIONS, Warmth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.stats import Stats

ALL = "all"


class WarmthRow(NamedTuple):
    """The pages of one section or variant. Rates are shares of the pages that can be cached."""

    name: str
    pages: int
    cacheable: int
    hit_rate_before: float | None  # None: there is none that can be cached
    hit_rate_after: float | None
    first_byte_before_ms: float | None  # the median
    first_byte_after_ms: float | None
    uncacheable: int
    unknown: int  # no cache has named itself
    failed: int


def sections(stats: Stats) -> list[WarmthRow]:
    """Return a row for each section of the site, the largest first, and one for all of them.

    The host is a part of a section's name only if there are several.
    """
    hosts = {name.partition("/")[0] for name in stats.warmth if name != OTHER_SECTIONS}
    rows = _rows(stats.warmth)
    if len(hosts) == 1:
        (host,) = hosts
        rows = [row._replace(name=row.name.removeprefix(host)) for row in rows]
    return [*rows, total(stats)]


def variants(stats: Stats) -> list[WarmthRow]:
    """Return a row for each variant; none if there is only the plain one."""
    return _rows(stats.variants) if len(stats.variants) > 1 else []


def total(stats: Stats) -> WarmthRow:
    """Return the row of all pages."""
    whole = Warmth()
    for each in stats.warmth.values():
        whole.add(each)
    return _row(ALL, whole)


def described(stats: Stats) -> dict[str, Any]:
    """Return everything for JSON."""
    *parts, whole = sections(stats)
    return {
        **{name: value for name, value in whole._asdict().items() if name != "name"},
        "sections": [row._asdict() for row in parts],
        "variants": [row._asdict() for row in variants(stats)],
    }


def _rows(parts: Mapping[str, Warmth]) -> list[WarmthRow]:
    ordered = sorted(parts.items(), key=lambda item: (-item[1].pages, item[0]))
    return [_row(name, each) for name, each in ordered]


def _row(name: str, warmth: Warmth) -> WarmthRow:
    cacheable = warmth.cacheable
    return WarmthRow(
        name,
        warmth.pages,
        cacheable,
        warmth.hits_before / cacheable if cacheable else None,
        warmth.hits_after / cacheable if cacheable else None,
        round(1000 * warmth.before.within(0.5), 1) if warmth.before else None,
        round(1000 * warmth.after.within(0.5), 1) if warmth.after else None,
        warmth.uncacheable,
        warmth.unknown,
        warmth.failed,
    )
