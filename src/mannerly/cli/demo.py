"""`mannerly demo`: crawl a built-in web of hosts with hidden limits, and let them judge us.

Everything happens on this machine's loopback addresses, so it works offline and hurts nobody. The
table at the end is made from the servers' own logs: what each host would have allowed, what we
settled at, how often it refused, and the smallest gap between two of our requests.
"""

from __future__ import annotations

from typing import Annotated

import typer

GOOD_SHARE = 0.8


def demo(
    *,
    seconds: Annotated[
        float, typer.Option(min=1.0, help="How long to crawl; half a minute settles every host.")
    ] = 30.0,
    processes: Annotated[int, typer.Option(min=1, help="Processes to crawl with.")] = 1,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the demo web; 0: any.")] = 0,
) -> None:
    """Crawl a built-in web of a dozen hosts with hidden limits, and show what they say of us."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from mannerly.crawler.crawl import run_crawl
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.web.scope import ScopeMode
    from mannerly.demo import DemoError, DemoWeb, demo_sites
    from mannerly.demo.log import table

    from .progress import Progress
    from .summary import summary

    settings = CrawlSettings(scope=ScopeMode.HOST, duration_s=seconds, processes=processes)
    try:
        with DemoWeb(demo_sites(), port=port) as web, TemporaryDirectory() as folder:
            typer.echo(
                f"crawling {len(web.hosts)} demonstration hosts for {seconds:g} s …", err=True
            )
            with Progress() as progress:
                result = run_crawl(settings, web.seeds(), Path(folder) / "crawl", watch=progress)
            # The ceiling of 8 requests a second is the shortest gap that the settings allow.
            verdicts = web.verdicts(least_gap_s=1.0 / settings.politeness.rate_ceiling)
    except DemoError as error:
        typer.echo(f"mannerly demo: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(summary(result), err=True)
    typer.echo(table(verdicts))
    impolite = [verdict for verdict in verdicts if not verdict.is_polite]
    for verdict in impolite:
        typer.echo(f"{verdict.name}: {'; '.join(verdict.broken)}", err=True)
    if impolite:
        raise typer.Exit(1)
    typer.echo("no host was asked faster than it, its robots.txt or the settings allow", err=True)
