"""Crawl a million hosts in virtual time, with the real engine, shards, frontier and politeness.

    python -m bench simulated                one million hosts, a few minutes on one core
    python -m bench simulated --hosts 20000  a smaller web
    python -m bench simulated --links        hosts that are found by the links of pages

Every host has a robots.txt and one page; one in twenty has a hidden limit, one in ten asks for a
Crawl-delay, and one request in 250 fails at random. The crawl starts from a list of all home
pages, which are plain texts: this is about frontier, politeness and shards, not about HTML. With
`--links` it starts at one home page and finds the others, and half of the time goes into parsing.
The servers judge every request (see `virtual.servers`), the frontier's invariant
is checked during the crawl, and at the end the stores are compared with the web. Everything is in
memory, also the store, which is most of the printed memory. The garbage collector is off: no object
becomes garbage before the end.
"""

from __future__ import annotations

import gc
import resource
import time
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from virtual.crawl import simulate_crawl
from virtual.servers import Faults
from virtual.web import GeneratedWeb

from mannerly.crawler.settings import CrawlSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virtual.crawl import CrawlOutcome

HOSTS = 1_000_000
CHECKS = 10


def web_of(hosts: int, *, is_listed: bool = True) -> GeneratedWeb:
    """Return the web: hosts connected by links, or a list of them."""
    return GeneratedWeb(
        hosts=hosts,
        others=1,
        is_listed=is_listed,
        limits=("",) * 19 + ("bucket:2:4+retry-after",),
        crawl_delays_s=(0.0,) * 9 + (5.0,),
    )


def settings_of() -> tuple[CrawlSettings, Faults]:
    """Return the settings of the crawl, and the faults of the web."""
    faults = Faults(timeout=0.001, error=0.002, refusal=0.001)
    return CrawlSettings(concurrency=2048, robots_limit=2048), faults


def crawl(hosts: int, *, is_listed: bool = True) -> CrawlOutcome:
    """Crawl it, and return the figures."""
    web = web_of(hosts, is_listed=is_listed)
    settings, faults = settings_of()
    # Two requests per host, so the invariant is checked about ten times.
    return simulate_crawl(
        web, settings, faults=faults, step_s=0.05, check_every=2 * hosts // CHECKS
    )


def run(options: Sequence[str] = ()) -> CrawlOutcome:
    """Crawl, print the figures, and return them."""
    parser = ArgumentParser(prog="python -m bench simulated")
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--links", action="store_true")
    asked = parser.parse_args(list(options))
    hosts = asked.hosts
    gc.collect()
    gc.disable()
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = crawl(hosts, is_listed=not asked.links)
    wall_s, cpu_s = time.perf_counter() - wall, time.process_time() - cpu
    gc.enable()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = {
        "hosts": f"{hosts:,}",
        "pages delivered": f"{outcome.delivered:,}",
        "requests": f"{outcome.requests:,}",
        "virtual time": f"{outcome.virtual_s:,.0f} s",
        "real time": f"{wall_s:,.0f} s, {cpu_s / outcome.requests * 1e6:.0f} µs CPU a request",
        "memory": f"{memory:,.0f} MB",
        "promises broken": dict(outcome.broken) or "none",
        "URLs lost, doubled": f"{outcome.lost}, {outcome.duplicates}",
        "invariant asserted": f"{outcome.checks} times",
    }
    for name, value in rows.items():
        print(f"{name:<20} {value}")
    return outcome


if __name__ == "__main__":
    run()
