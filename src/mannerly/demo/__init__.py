"""A web of one's own: real servers on loopback with hidden limits, robots rules, and traps.

    from mannerly.demo import DemoWeb, demo_sites, table
    with DemoWeb(demo_sites()) as web:
        ...                                # crawl web.seeds()
        print(table(web.verdicts()))

It is the demonstration that `mannerly demo` crawls, and the web of the crawler's own tests. The
judge of politeness is the servers' log. `python -m mannerly.demo` serves it for other crawlers.

    sites     what each host is                pages, wellknown, traps   what stands at a path
    host      limit and path → an answer       wire, connection, server  the answer on real sockets
    log       what arrived, and the verdict    web                       start, ask, stop
"""

from __future__ import annotations

from .log import (
    HostVerdict,
    Record,
    before_robots,
    by_host,
    disallowed,
    gaps_s,
    inside_retry_after,
    judge,
    judge_all,
    most_in_flight,
    rates,
    read_log,
    refusals,
    repeats,
    robots_fetches,
    served,
    settled_rate,
    smallest_gap_s,
    table,
)
from .pages import paths
from .sites import Feature, RobotsFile, Site, SitemapKind, demo_sites, plain_sites
from .web import DemoError, DemoWeb

__all__ = [
    "DemoError",
    "DemoWeb",
    "Feature",
    "HostVerdict",
    "Record",
    "RobotsFile",
    "Site",
    "SitemapKind",
    "before_robots",
    "by_host",
    "demo_sites",
    "disallowed",
    "gaps_s",
    "inside_retry_after",
    "judge",
    "judge_all",
    "most_in_flight",
    "paths",
    "plain_sites",
    "rates",
    "read_log",
    "refusals",
    "repeats",
    "robots_fetches",
    "served",
    "settled_rate",
    "smallest_gap_s",
    "table",
]
