"""Measure what keeping bodies, links and items costs: CPU seconds a page, all at once on one core.

    python -m bench kept                  12 rounds, some minutes
    python -m bench kept --rounds 4 --hosts 40 --only kept

plain      an ordinary crawl
kept       --keep-bodies: every answer as it was received, in WARC segments
links      --links: every link with its text
both       the two of them
extract    --extract with a function that returns nothing

The server compresses its pages (nginx, gzip), as most servers do when they are asked to. The figure
is the median of the rounds' ratios to `plain`, with its 90 % interval (`_pairs.py`). The speed that
is left is the inverse of the ratio.
"""

from __future__ import annotations

import json
import shutil
import sys
from argparse import ArgumentParser
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from ._cores import two_cores
from ._figures import write
from ._pairs import ROUNDS, at_once, ratio
from ._process import measured
from .peers import UNPACED
from .scale import temporary
from .web import WebSpec, served

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NOTHING = "def extract(page):\n    return None\n"
WAYS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "kept": ("--keep-bodies",),
    "links": ("--links",),
    "both": ("--keep-bodies", "--links"),
    "extract": ("--extract", "nothing.py:extract"),
}


def crawl(way: str, seeds: Path, directory: Path, core: int) -> tuple[float, float]:
    """Crawl once; return CPU microseconds a page, and bytes of the data directory a page."""
    directory.mkdir()
    (directory / "nothing.py").write_text(NOTHING)
    command = [sys.executable, "-m", "mannerly", "crawl", str(seeds), *UNPACED, *WAYS[way]]
    command += ["--processes", "1", "--data-dir", str(directory / "crawl")]
    usage = measured(command, cores={core}, cwd=directory, environment={})
    pages = json.loads(usage.printed)["fetched"]
    size = sum(file.stat().st_size for file in (directory / "crawl").iterdir())
    shutil.rmtree(directory)
    return usage.cpu_s / pages * 1e6, size / pages


def run(options: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Compare, print the ratios, and leave the figures in `.cache/bench/kept.json`."""
    parser = ArgumentParser(prog="python -m bench kept")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--only", choices=[way for way in WAYS if way != "plain"], action="append")
    given = parser.parse_args(list(options))
    ways = ["plain", *(given.only or [way for way in WAYS if way != "plain"])]
    mine, theirs = two_cores()
    costs: dict[str, list[float]] = {way: [] for way in ways}
    sizes: dict[str, float] = {}
    with (
        served(WebSpec(hosts=given.hosts), core=theirs, compressed=True) as web,
        temporary() as place,
    ):
        print(f"{web.spec.total:,} pages, served by {web.server}")
        seeds = place / "seeds.txt"
        seeds.write_text("\n".join(web.spec.homes()))
        for number in range(given.rounds):
            done = at_once(
                {way: partial(crawl, way, seeds, place / f"{way}-{number}", mine) for way in ways}
            )
            for way, (microseconds, size) in done.items():
                costs[way].append(microseconds)
                sizes[way] = size
    figures = {}
    for way, found in costs.items():
        share = ratio(found, costs["plain"])
        figures[way] = {
            "cpu_us_a_page": median(found),
            "bytes_a_page": sizes[way],
            **share.figures(),
        }
        print(
            f"{way:8} {median(found):6.0f} µs a page, ratio {share}, speed {1 / share.median:.0%}, "
            f"{sizes[way]:,.0f} B a page on disk"
        )
    write("kept", figures)
    return figures
