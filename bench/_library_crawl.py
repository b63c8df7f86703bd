"""One crawl through the library, as a program of its own: see `library`.

    python _library_crawl.py WAY SEEDS DIRECTORY

It prints as JSON how many pages came, how long it took from the first page to the last, and with
asyncio how often a task beside the loop, which wakes up every 5 ms, was served in a second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import mannerly

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.options.values import CrawlOptions

TICK_S = 0.005

# The same as `peers.UNPACED`, as keywords.
UNPACED: CrawlOptions = {
    "scope": "any",
    "seeding_strategy": "none",
    "allow_net": "127.0.0.0/8",
    "strategy": "fixed",
    "max_rate": "unlimited",
    "processes": 1,
}

# What the body of the loop does with a page.
USES: dict[str, Callable[[mannerly.Page], object]] = {
    "loop": lambda page: page.status,
    "loop, html": lambda page: page.html,
    "loop, links": lambda page: page.links,
    "async": lambda page: page.status,
}


def loop(seeds: list[str], directory: str, use: Callable[[mannerly.Page], object]) -> list[float]:
    """Iterate; return when each page came."""
    times = []
    for page in mannerly.crawl(seeds, data_dir=directory, **UNPACED):
        use(page)
        times.append(time.monotonic())
    return times


async def aloop(
    seeds: list[str], directory: str, use: Callable[[mannerly.Page], object]
) -> list[float]:
    """Do the same with asyncio, beside a task that ticks."""
    times = []
    ticker = asyncio.create_task(tick())
    async for page in mannerly.acrawl(seeds, data_dir=directory, **UNPACED):
        use(page)
        times.append(time.monotonic())
    ticker.cancel()
    return times


ticks: list[float] = []


async def tick() -> None:
    """Note the time, for ever."""
    while True:
        await asyncio.sleep(TICK_S)
        ticks.append(time.monotonic())


def main(way: str, seeds: str, directory: str) -> None:
    """Crawl, and print the figures."""
    urls, use = Path(seeds).read_text().split(), USES[way]
    is_async = way.startswith("async")
    times = asyncio.run(aloop(urls, directory, use)) if is_async else loop(urls, directory, use)
    steady_s = times[-1] - times[0]
    ticked = sum(times[0] <= each <= times[-1] for each in ticks)
    print(json.dumps({"pages": len(times), "steady_s": steady_s, "ticks_per_s": ticked / steady_s}))


if __name__ == "__main__":
    main(*sys.argv[1:])
