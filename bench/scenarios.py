"""Pages a minute in the scenarios of the tuning guide, in virtual time: what limits each crawl?

    python -m bench scenarios                five minutes of each; a minute on one core
    python -m bench scenarios --resources    then 512 workers on this machine: memory, CPU

The crawls run the real engine, shards, frontier and politeness against modelled servers
(`virtual.crawl`), so the figures are the same on every machine: they are what the
servers allow, not what a machine can do. What it can do is in `peers` and `variants`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from virtual.crawl import simulate_crawl
from virtual.web import GeneratedWeb

from mannerly.crawler.settings import CrawlSettings
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virtual.crawl import CrawlOutcome

MINUTES = 5
MIXED = ("", "", "", "bucket:2:4+retry-after", "concurrency:2:0.8", "knee:1:0.5")


class Scenario(NamedTuple):
    """A crawl: its web, its options, and what it waits for most."""

    name: str
    bottleneck: str
    web: GeneratedWeb
    settings: CrawlSettings
    latency_s: float = 0.15


def scenarios() -> list[Scenario]:
    """Return the scenarios, those of the guide with their options."""
    site = GeneratedWeb(hosts=1, pages=200_000)
    fast = Settings(max_rate=50.0, max_concurrency=32)
    return [
        Scenario(
            "one fast site, defaults", "`--max-rate` (8/s)", site, CrawlSettings(concurrency=1024)
        ),
        Scenario(
            "one fast site, `--max-rate 50 --per-host 32`",
            "`--max-rate`, after climbing to it",
            site,
            CrawlSettings(concurrency=1024, politeness=fast),
        ),
        Scenario(
            "one fast site, `Crawl-delay: 1`",
            "robots.txt",
            GeneratedWeb(hosts=1, pages=200_000, crawl_delays_s=(1.0,)),
            CrawlSettings(concurrency=1024),
        ),
        Scenario(
            "120 hosts of all kinds",
            "each host's own limit",
            GeneratedWeb(
                hosts=120,
                pages=3_000,
                is_listed=True,
                limits=MIXED,
                crawl_delays_s=(0.0,) * 9 + (5.0,),
            ),
            CrawlSettings(concurrency=512),
        ),
        Scenario(
            "one slow site, 2 at once, 1.2 s each",
            "the server's answers",
            GeneratedWeb(hosts=1, pages=200_000, limits=("concurrency:2:1.2",)),
            CrawlSettings(concurrency=256),
        ),
        Scenario(
            "20 hosts, 20,000 URLs queued",
            "each host's pace",
            GeneratedWeb(hosts=20, pages=20_000),
            CrawlSettings(concurrency=128, frontier_limit=20_000),
        ),
        Scenario(
            "20 hosts, 1,000 URLs queued",
            "`--frontier-limit`: hosts run dry while their URLs wait",
            GeneratedWeb(hosts=20, pages=20_000),
            CrawlSettings(concurrency=128, frontier_limit=1_000),
        ),
    ]


def crawl(scenario: Scenario, minutes: float = MINUTES) -> CrawlOutcome:
    """Run one scenario for that many virtual minutes."""
    return simulate_crawl(
        scenario.web,
        scenario.settings,
        latency_s=scenario.latency_s,
        step_s=0.01,
        duration_s=60.0 * minutes,
        check_every=100_000,
    )


def run(options: Sequence[str] = ()) -> None:
    """Print the table, and with --resources what 512 workers take on this machine."""
    parser = ArgumentParser(prog="python -m bench scenarios")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="virtual minutes of each")
    parser.add_argument("--resources", action="store_true", help="also crawl for real")
    asked = parser.parse_args(list(options))
    print("| crawl | workers | pages/min | refused | too early | limited by |")
    print("|---|---:|---:|---:|---:|---|")
    for scenario in scenarios():
        outcome = crawl(scenario, asked.minutes)
        refused = outcome.refused / outcome.requests
        print(
            f"| {scenario.name} | {scenario.settings.concurrency} "
            f"| {60 * outcome.delivered / outcome.virtual_s:,.0f} | {refused:.1%} "
            f"| {outcome.broken.total()} | {scenario.bottleneck} |",
            flush=True,
        )
    if asked.resources:
        resources()


def resources() -> None:
    """Crawl 600 real servers with 512 requests in flight, and print what that takes."""
    from mannerly.demo import DemoWeb, plain_sites

    from ._process import measured

    cores = os.sched_getaffinity(0)
    with DemoWeb(plain_sites(600, pages=200)) as web, tempfile.TemporaryDirectory() as place:
        seeds = Path(place) / "seeds.txt"
        seeds.write_text("\n".join(web.seeds()), "utf-8")
        words = [sys.executable, "-m", "mannerly", "crawl", str(seeds), "--concurrency", "512"]
        words += ["--data-dir", str(Path(place) / "crawl"), "--quiet", "--json"]
        words += ["--seeding-strategy", "none", "--duration", "40", "--max-rate", "unlimited"]
        words += ["--start-rate", "20", "--user-agent", "bench/1"]
        usage = measured(words, cores=cores, cwd=Path(place), environment=os.environ)
    told = json.loads(usage.printed)
    print(f"\n512 workers, {len(cores)} cores, servers beside it on the same cores:")
    pages = told["fetched"]
    print(f"pages      {pages:,} in {usage.wall_s:.0f} s: {pages / usage.wall_s:,.0f}/s")
    print(f"memory     {usage.peak_mb:.0f} MB at its peak, all processes")
    print(f"CPU        {usage.cpu_s / usage.wall_s / len(cores):.0%} of {len(cores)} cores")
    print(f"network    {told['bytes'] * 8 / usage.wall_s / 1e6:.0f} Mbit/s of bodies")


if __name__ == "__main__":
    run(sys.argv[1:])
