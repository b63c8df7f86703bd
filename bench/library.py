"""Measure what it costs to read a crawl's pages in a program: the library against the command.

    python -m bench library                 five rounds, a few minutes
    python -m bench library --rounds 3 --only loop

The web, the options and the two cores are those of `bench peers`; the crawls of a round run one
after another. *loop* is `for page in mannerly.crawl(…)` with a body that looks at the status; the
others also use `page.html` or `page.links`, or iterate with `async for` beside a task that
wakes up every 5 ms. A ratio is the speed of
one way divided by that of the command in the same round, start of the interpreter included. The
goal for *loop* is 0.70: a page passes through two threads, and that it was acknowledged is written
down.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from statistics import median
from typing import TYPE_CHECKING

from ._cores import two_cores
from ._figures import write
from ._library_crawl import USES
from ._process import measured
from .peers import HERE, Crawl, mannerly_crawl
from .scale import temporary
from .web import WebSpec, served

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ROUNDS = 5
GOAL = 0.70
COMMAND = "command"


def library_crawl(way: str, seeds: Path, directory: Path, *, cores: set[int]) -> Crawl:
    """Crawl through the library, one way."""
    program = str(HERE / "_library_crawl.py")
    command = [sys.executable, program, way, str(seeds), str(directory / "crawl")]
    usage = measured(command, cores=cores, cwd=directory, environment={})
    said = json.loads(usage.printed)
    if said["ticks_per_s"]:
        print(f"  a task beside the loop ran {said['ticks_per_s']:.0f} times a second")
    return Crawl(said["pages"], usage.wall_s, usage.cpu_s, usage.peak_mb, said["steady_s"])


def race(ways: Sequence[str], rounds: int) -> dict[str, list[Crawl]]:
    """Crawl every way once per round, in turn."""
    crawls: dict[str, list[Crawl]] = {way: [] for way in (COMMAND, *ways)}
    mine, theirs = two_cores()
    with served(WebSpec(), core=theirs) as web, temporary() as place:
        print(f"{web.spec.total:,} pages on {web.spec.hosts} hosts, served by {web.server}")
        seeds = place / "seeds.txt"
        seeds.write_text("\n".join(web.spec.homes()))
        for number in range(rounds):
            for way, done in crawls.items():
                directory = place / f"{way.replace(', ', '-')}-{number}"
                directory.mkdir()
                crawl = (
                    mannerly_crawl(seeds, directory, cores={mine}, environment={})
                    if way == COMMAND
                    else library_crawl(way, seeds, directory, cores={mine})
                )
                done.append(crawl)
                print(f"  {way:<13}{crawl.pages:>8,} pages in {crawl.wall_s:6.1f} s", flush=True)
    return crawls


def figures_of(crawls: Sequence[Crawl], commands: Sequence[Crawl]) -> dict[str, float]:
    """Return medians over the rounds; ratios are taken within a round."""
    pairs = list(zip(crawls, commands, strict=True))
    return {
        "pages": min(crawl.pages for crawl in crawls),
        "pages_per_s": median(crawl.pages_per_s for crawl in crawls),
        "steady_pages_per_s": median(crawl.steady_pages_per_s for crawl in crawls),
        "cpu_s_per_1000": median(crawl.cpu_s_per_1000 for crawl in crawls),
        "peak_mb": median(crawl.peak_mb for crawl in crawls),
        "ratio": median(one.pages_per_s / other.pages_per_s for one, other in pairs),
        "cpu_ratio": median(one.cpu_s_per_1000 / other.cpu_s_per_1000 for one, other in pairs),
    }


def run(options: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Run all rounds, print a table, and write the figures to `.cache/bench/library.json`."""
    parser = ArgumentParser(prog="python -m bench library")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", choices=USES, action="append")
    given = parser.parse_args(list(options))
    crawls = race(given.only or list(USES), given.rounds)
    figures = {way: figures_of(runs, crawls[COMMAND]) for way, runs in crawls.items()}
    print(f"\n{'':<13}{'pages':>8}{'pages/s':>9}{'steady':>8}{'CPU-s/1,000':>13}", end="")
    print(f"{'peak MB':>9}{'× command':>11}{'× its CPU':>11}")
    for way, row in figures.items():
        print(f"{way:<13}{row['pages']:>8,}{row['pages_per_s']:>9,.0f}", end="")
        print(f"{row['steady_pages_per_s']:>8,.0f}{row['cpu_s_per_1000']:>13.2f}", end="")
        print(f"{row['peak_mb']:>9.0f}{row['ratio']:>11.2f}{row['cpu_ratio']:>11.2f}")
    if "loop" in figures:
        word = "reached" if figures["loop"]["ratio"] >= GOAL else "missed"
        print(f"\nthe goal of {GOAL:.2f} for `loop` is {word}")
    write("library", figures)
    return figures


if __name__ == "__main__":
    run(sys.argv[1:])
