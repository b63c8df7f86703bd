"""A small web for tests and demonstrations: real servers on loopback, with limits and traps.

    from mannerly.demo import DemoWeb, demo_sites, table
    with DemoWeb(demo_sites()) as web:
        ...                                # crawl web.seeds()
        print(table(web.verdicts()))

`mannerly demo` crawls it, and so do the crawler's own tests. Politeness is judged by the servers'
log alone. `python -m mannerly.demo` serves it for any other crawler.

    sites           description of each host
    pages           the ordinary pages of a site
    wellknown       robots.txt and sitemaps
    traps           calendars, redirect loops, endless bodies, …
    host            decides the answer to one request: first the limit, then the path
    wire            HTTP/1.1 as bytes
    connection      one client connection (an asyncio protocol), and the access log
    sockets         the listening sockets
    server          the process that serves a whole web
    web             `DemoWeb`: starts that process, reads its log, stops it
    log             what a log says of a crawler's politeness
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
