"""This checkout against an earlier revision: CPU seconds a page, in paired and alternating rounds.

    python -m bench against                        release 0.1 (commit c2e41fb), 12 rounds
    python -m bench against --base main~5 --rounds 16

The earlier revision is checked out beside this one (`git worktree`) for as long as it takes. Both
run in the same environment, so dependencies must suit both. The web and the options are those of
`bench peers`. A round is one crawl of each, and every second round begins with the other one.

Ratios of single runs move by a tenth on a shared machine. So the figure is the median of the
rounds' ratios with its 90 % interval (from the order statistics of the binomial distribution): a
bound is broken when the whole interval lies above it.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from contextlib import contextmanager
from math import comb
from statistics import median
from typing import TYPE_CHECKING

from ._cores import two_cores
from ._figures import write
from .peers import HERE, UNPACED
from .scale import temporary
from .web import WebSpec, served

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

RELEASE = "c2e41fb"
ROUNDS = 12
COVERED = 0.9


@contextmanager
def checked_out(revision: str, place: Path) -> Iterator[Path]:
    """The sources of a revision, for as long as the block runs."""
    tree = place / "base"
    git = ["git", "-C", str(HERE.parent), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
    try:
        yield tree / "src"
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def cost(source: Path, seeds: Path, directory: Path, core: int) -> tuple[float, float]:
    """One crawl with the code of a source tree: CPU microseconds a page, and its peak memory."""
    import json

    from ._process import measured

    directory.mkdir()
    command = [sys.executable, "-m", "mannerly", "crawl", str(seeds), *UNPACED]
    command += ["--processes", "1", "--data-dir", str(directory / "crawl")]
    environment = {"PYTHONPATH": str(source)}
    usage = measured(command, cores={core}, cwd=directory, environment=environment)
    return usage.cpu_s / json.loads(usage.printed)["fetched"] * 1e6, usage.peak_mb


def interval(ratios: Sequence[float], covered: float = COVERED) -> tuple[float, float]:
    """The narrowest symmetric pair of order statistics that covers the median so often."""
    ordered, count = sorted(ratios), len(ratios)
    outside = 0.0
    for rank in range(count // 2):
        outside += 2 * comb(count, rank) / 2**count
        if outside > 1.0 - covered:
            return ordered[max(0, rank - 1)], ordered[count - max(1, rank)]
    return ordered[(count - 1) // 2], ordered[count // 2]


def run(options: Sequence[str] = ()) -> dict[str, float]:
    """Compare, print the medians, and leave the figures in `.cache/bench/against.json`."""
    parser = ArgumentParser(prog="python -m bench against")
    parser.add_argument("--base", default=RELEASE, help="the earlier revision")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(list(options))
    mine, theirs = two_cores()
    sources = {"this": HERE.parent / "src"}
    costs: dict[str, list[float]] = {"this": [], "base": []}
    peaks: dict[str, list[float]] = {"this": [], "base": []}
    with (
        served(WebSpec(), core=theirs) as web,
        temporary() as place,
        checked_out(given.base, place) as base,
    ):
        sources["base"] = base
        print(f"{web.spec.total:,} pages, served by {web.server}; base is {given.base}")
        seeds = place / "seeds.txt"
        seeds.write_text("\n".join(web.spec.homes()))
        for name, source in sources.items():  # compiles the modules of both
            cost(source, seeds, place / f"warm-{name}", mine)
        for number in range(given.rounds):
            for name in sorted(sources, reverse=bool(number % 2)):
                microseconds, peak_mb = cost(sources[name], seeds, place / f"{name}-{number}", mine)
                costs[name].append(microseconds)
                peaks[name].append(peak_mb)
            ratio = costs["this"][-1] / costs["base"][-1]
            print(f"  round {number + 1}: {ratio:.3f}", flush=True)
    ratios = [one / other for one, other in zip(costs["this"], costs["base"], strict=True)]
    low, high = interval(ratios)
    figures = {
        "cpu_us_a_page": median(costs["this"]),
        "base_cpu_us_a_page": median(costs["base"]),
        "ratio": median(ratios),
        "ratio_low": low,
        "ratio_high": high,
        "peak_mb": median(peaks["this"]),
        "base_peak_mb": median(peaks["base"]),
    }
    print(
        f"\nCPU a page: {figures['cpu_us_a_page']:.0f} µs, "
        f"base {figures['base_cpu_us_a_page']:.0f} µs; "
        f"ratio {figures['ratio']:.3f} (90 %: {low:.3f} to {high:.3f})"
        f"\npeak memory: {figures['peak_mb']:.0f} MB, base {figures['base_peak_mb']:.0f} MB"
    )
    write("against", figures)
    return figures
