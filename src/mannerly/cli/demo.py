"""`mannerly demo`: crawl built-in hosts with hidden limits, and check the crawler by their logs.

Everything uses this machine's loopback addresses, so it works offline and sends nothing to others.
The table at the end is made from the servers' logs: the rate that each host allows, the rate of the
crawler, the number of refusals, and the smallest gap between two requests.
"""

from __future__ import annotations

import sys
from typing import Annotated

import click

from mannerly.crawler.options.option import declaration

_VERDICT = "✓ No host was asked faster than it, its robots.txt or the settings allow."


def demo(
    *,
    seconds: Annotated[
        float,
        declaration(
            "Duration of the crawl in seconds; 30 is enough to reach every limit.", low=1.0
        ),
    ] = 30.0,
    processes: Annotated[int, declaration("Number of processes of the crawler.", low=1)] = 1,
    port: Annotated[
        int,
        declaration(
            "Port of the demo hosts; 0 means any free port, with --serve 8080.", low=0, high=65535
        ),
    ] = 0,
    verbose: Annotated[bool, declaration("Describe the hosts in the table.", short="-v")] = False,
    serve: Annotated[
        bool,
        declaration("Only serve the hosts, for crawls of your own, until Ctrl-C.", is_order=True),
    ] = False,
) -> None:
    """Crawl built-in hosts, and check the crawler by their logs.

    A dozen hosts on loopback addresses, each with a different hidden limit or feature.
    """
    if serve:
        from mannerly.demo.__main__ import main

        raise click.exceptions.Exit(main(["--port", str(port)] if port else []))

    from dataclasses import replace
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from mannerly.crawler.crawl import run_crawl
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.web.choices import ScopeMode
    from mannerly.demo import DemoError, DemoWeb, demo_sites
    from mannerly.demo.log import WIDE, table
    from mannerly.live.meter import Limits

    from .display import display_of, error_display
    from .progress import Progress
    from .summary import Ended, summary
    from .terminal import fail, note, show

    settings = CrawlSettings(scope=ScopeMode.HOST, duration_s=seconds, processes=processes)
    try:
        with DemoWeb(demo_sites(), port=port) as web, TemporaryDirectory() as folder:
            settings = replace(settings, memory=str(Path(folder) / "hosts.sqlite"))
            note(f"Crawling {len(web.hosts)} demo hosts for {seconds:g} s …")
            limits = Limits(duration_s=seconds, concurrency=settings.concurrency)
            with Progress(limits) as progress:
                result = run_crawl(settings, web.seeds(), Path(folder) / "crawl", watcher=progress)
            # The shortest gap that the settings allow: 1/8 s, by the default of 8 requests/s.
            verdicts = web.verdicts(least_gap_s=1.0 / settings.politeness.rate_ceiling)
    except DemoError as error:
        fail(f"the demo cannot run: {error}")
    note(summary(Ended(result, limit=f"--seconds {seconds:g}"), error_display()))
    show(table(verdicts, columns=WIDE if verbose else display_of(sys.stdout).columns))
    impolite = [verdict for verdict in verdicts if not verdict.is_polite]
    for verdict in impolite:
        note(f"{verdict.name}: {'; '.join(verdict.broken)}")
    if impolite:
        raise click.exceptions.Exit(1)
    note("")
    note(error_display().spelled(_VERDICT))
