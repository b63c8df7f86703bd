"""Judge whole crawls of real servers on loopback by the servers' log: three figures.

    hundred   100 hosts at one request per second each: requests/s in total (100 is ideal), and the
              smallest gap between two requests to one host
    beside    hosts with a Crawl-delay of 5 s next to fast hosts: the delay is kept, and the fast
              hosts are not slowed down
    limits    hidden limits of every kind at the same time, without prior knowledge: after a
              minute, the used share of each limit, and the share of refused requests

The server process logs the time when it reads a request. A hundred requests that arrive at once are
read one after another, so the smallest gap in the log is what the crawler kept *minus* the server's
own delay; "sent" is the gap by the crawler's clock.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.settings import CrawlSettings
from mannerly.demo import (
    DemoWeb,
    Record,
    Site,
    by_host,
    inside_retry_after,
    plain_sites,
    refusals,
    robots_fetches,
    served,
    smallest_gap_s,
)
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HOSTS = 100
HUNDRED_S = 20.0
BESIDE_S = 22.0
LIMITS_S = 120.0
SETTLED_AFTER_S = 60.0

LIMITS = (
    Site(name="bucket", limit="bucket:3:6", pages=2000),
    Site(name="bucket, seconds", limit="bucket:2:4+retry-after", pages=2000),
    Site(name="window, seconds", limit="fixed:20:10+retry-after", pages=2000),
    Site(name="window, date", limit="fixed:20:10+retry-after-date", pages=2000),
    Site(name="two at once", limit="concurrency:2:0.8", pages=2000),
)


@dataclass(frozen=True)
class Crawled:
    """One crawl by the servers' log: the records of each site, by its name."""

    log: dict[str, list[Record]]
    sent_gap_s: float

    @property
    def gap_s(self) -> float:
        return min(map(smallest_gap_s, self.log.values()), default=inf)


def watch(sites: Sequence[Site], pace: Settings, duration_s: float) -> Crawled:
    """Crawl these sites for that many seconds."""
    settings = CrawlSettings(politeness=pace, duration_s=duration_s, seeding="none")
    with DemoWeb(sites) as web, tempfile.TemporaryDirectory() as directory:
        result = crawl(settings, web.seeds(), Path(directory) / "crawl")
        log = {web.sites[host].name: records for host, records in by_host(web.log()).items()}
    gaps = [tally.smallest_gap_s for tally in result.stats.tallies.values()]
    return Crawled(log, min(gaps, default=inf))


def rate(log: Sequence[Record], after_s: float, until_s: float, start: float) -> float:
    """Return requests/s between two instants of a crawl that began at `start`."""
    count = sum(after_s <= record.t - start < until_s for record in log)
    return count / (until_s - after_s)


def hundred() -> None:
    sites = plain_sites(HOSTS, pages=400)
    crawled = watch(sites, Settings(strategy="fixed", delay_s=1.0), HUNDRED_S)
    everything = [record for records in crawled.log.values() for record in records]
    start = min(record.t for record in everything)
    per_s = rate(everything, 1.0, HUNDRED_S - 1.0, start)
    print(f"{HOSTS} hosts at 1 request/s: {per_s:.1f} requests/s in all (ideal {HOSTS})")
    print(f"smallest gap: {crawled.gap_s:.3f} s by the servers, {crawled.sent_gap_s:.3f} s sent")


def beside() -> None:
    pace = Settings(strategy="fixed", delay_s=0.2)
    fast = plain_sites(20, pages=400)
    slow = tuple(Site(name=f"slow-{n}", pages=400, crawl_delay_s=5.0) for n in range(5))
    rates = []
    for sites in (fast, (*fast, *slow)):
        crawled = watch(sites, pace, BESIDE_S)
        fast_log = [record for site in fast for record in crawled.log[site.name]]
        start = min(record.t for record in fast_log)
        rates.append(rate(fast_log, 1.0, BESIDE_S - 1.0, start))
    slow_logs = [crawled.log[site.name] for site in slow]
    print(f"20 hosts at 5 requests/s: {rates[0]:.1f}/s alone, {rates[1]:.1f}/s beside 5 slow ones")
    print(f"change: {rates[1] / rates[0] - 1:+.1%}")
    print(
        f"Crawl-delay 5: smallest gap {min(map(smallest_gap_s, slow_logs)):.3f} s, "
        f"robots.txt counted ({sum(map(robots_fetches, slow_logs))} fetched)"
    )


def limits() -> None:
    pace = Settings(strategy="learned", seed=1)
    crawled = watch(LIMITS, pace, LIMITS_S)
    columns = ("limit/s", "served/s", "share", "refused", "in silence", "gap s")
    print(f"after {SETTLED_AFTER_S:g} s of {LIMITS_S:g}".ljust(18), *(f"{c:>11}" for c in columns))
    for site in LIMITS:
        records = crawled.log[site.name]
        settled = [r for r in records if r.t >= records[0].t + SETTLED_AFTER_S]
        span_s = LIMITS_S - SETTLED_AFTER_S
        got = len(served(settled)) / span_s
        print(
            site.name.ljust(18),
            f"{site.true_rate:>11.2f}",
            f"{got:>11.2f}",
            f"{got / site.true_rate:>11.0%}",
            f"{len(refusals(settled)) / max(1, len(settled)):>11.1%}",
            f"{len(inside_retry_after(records)):>11}",
            f"{smallest_gap_s(records):>11.3f}",
        )


PARTS: dict[str, Callable[[], None]] = {"hundred": hundred, "beside": beside, "limits": limits}


def run(options: Sequence[str] = ()) -> None:
    """Print the three figures, or those that are named: `--parts limits`."""
    parser = argparse.ArgumentParser(prog="python -m bench hosts")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    for part in parser.parse_args(list(options)).parts:
        PARTS[part]()
        print(flush=True)
