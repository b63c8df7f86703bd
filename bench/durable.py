"""Compare the CPU time of a Scrapy spider with its own memory queue, `Polite` and `Durable`.

    python -m bench durable
    python -m bench durable --rounds 3 --pages 1000

memory     Scrapy as it comes: its queue in memory, no pace
polite     with ADDONS = {"mannerly.adapters.scrapy.Polite": 0}
durable    with ADDONS = {"mannerly.adapters.scrapy.Durable": 0}

The spider, its settings and the small pages (ten links, one item) are those of `python -m bench
kills`; the pace is off. All three run at once on one core, and the site has the other (`_pairs`).
The whole process counts, its start included.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from ._cores import two_cores
from ._figures import write
from ._pairs import at_once, ratio
from ._process import measured
from .kills import DURABLE, Site, prepare_scrapy
from .scale import temporary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ROUNDS, PAGES = 5, 3000
SAME = "CONCURRENT_REQUESTS = 16\n"  # the add-ons set 128 if a project does not
WAYS = {
    "memory": SAME,
    "polite": SAME + DURABLE.replace("Durable", "Polite"),
    "durable": SAME + DURABLE,
}


def crawl(way: str, pages: int, place: Path, core: int) -> float:
    """Run the spider once; return its CPU microseconds a page."""
    place.mkdir()
    site = Site(pages)
    prepare_scrapy(WAYS[way])(place, site.url)
    command = [sys.executable, "-m", "scrapy", "crawl", "numbers", "-O", "items.jsonl"]
    usage = measured(command, cores={core}, cwd=place, environment={})
    site.server.shutdown()
    assert len(site.asked) == pages, f"{way} has asked for {len(site.asked)} of {pages} pages"
    return usage.cpu_s / pages * 1e6


def run(options: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Compare, print the ratios to the memory queue, and leave them in a file."""
    parser = ArgumentParser(prog="python -m bench durable")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--pages", type=int, default=PAGES)
    given = parser.parse_args(list(options))
    mine, _ = two_cores()
    costs: dict[str, list[float]] = {way: [] for way in WAYS}
    with temporary() as place:
        for number in range(given.rounds):
            done = at_once(
                {
                    way: partial(crawl, way, given.pages, place / f"{way}-{number}", mine)
                    for way in WAYS
                }
            )
            for way, microseconds in done.items():
                costs[way].append(microseconds)
    figures = {}
    for way, found in costs.items():
        share = ratio(found, costs["memory"])
        figures[way] = {"cpu_us_a_page": median(found), **share.figures()}
        print(f"{way:8} {median(found):6.0f} µs a page, ratio {share}")
    write("durable", figures)
    return figures
