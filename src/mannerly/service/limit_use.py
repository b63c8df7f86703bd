"""Every limit of a crawl with its use, so that an operator sees which of them holds it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mannerly.crawler.stats import Stats
    from mannerly.live.meter import Limits


class LimitUse(NamedTuple):
    """A limit, and how much of it is used."""

    limit: float
    used: float


def limit_uses(
    limits: Limits,
    stats: Stats,
    elapsed_s: float,
    changed: Mapping[str, float | None] | None = None,
) -> dict[str, LimitUse]:
    """Return the limits that are set, by the name of their option.

    `changed` are options that were changed while the crawl runs; None: no limit.
    """
    uses = {
        "max_urls": (limits.max_urls, stats.pages),
        "duration": (limits.duration_s, elapsed_s),
        "concurrency": (limits.concurrency, stats.in_flight),
        "memory_limit": (limits.memory_limit, stats.body_bytes),
        "frontier_limit": (limits.frontier_limit, stats.queued),
        "heap_limit": (limits.heap_limit, stats.scheduled),
        "robots_limit": (limits.robots_limit, stats.robots_in_flight),
        "parse_limit": (limits.parse_limit, stats.parsing),
    }
    now = changed or {}
    return {
        name: LimitUse(limit, used)
        for name, (given, used) in uses.items()
        if (limit := now.get(name, given)) is not None
    }


def added_up(several: Iterable[Mapping[str, LimitUse]]) -> dict[str, LimitUse]:
    """Return the sum of the limits and uses of several crawls."""
    total: dict[str, LimitUse] = {}
    for uses in several:
        for name, (limit, used) in uses.items():
            before = total.get(name, LimitUse(0.0, 0.0))
            total[name] = LimitUse(before.limit + limit, before.used + used)
    return total
