"""This checkout against an earlier revision: CPU seconds a page, both at once on one core.

    python -m bench against                        release 0.1 (commit c2e41fb), 12 rounds
    python -m bench against --base main~5 --rounds 16
    python -m bench against --base 1971ab0 --handler  a handler that yields nothing; of the base an
                                                  extract function that returns nothing

The earlier revision is checked out beside this one (`git worktree`) for as long as it takes. Both
run in the same environment, so dependencies must suit both. The web and the options are those of
`bench peers`. A round is one crawl of each; why they run at the same time is in `_pairs.py`.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from ._cores import two_cores
from ._figures import write
from ._pairs import ROUNDS, at_once, ratio
from .peers import HERE, UNPACED
from .scale import temporary
from .web import WebSpec, served

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

RELEASE = "c2e41fb"


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


FUNCTION = "def nothing(page):\n    return None\n"
SPIDER = """import mannerly

empty = mannerly.Spider()


@empty.on("*")
def nothing(page):
    return None
"""


def cost(
    source: Path, seeds: Path, directory: Path, core: int, words: Sequence[str] = ("crawl",)
) -> tuple[float, float]:
    """One crawl with the code of a source tree: CPU microseconds a page, and its peak memory.

    `words` begin the command.
    """
    import json

    from ._process import measured

    directory.mkdir()
    command = [sys.executable, "-m", "mannerly", *words, str(seeds), *UNPACED]
    command += ["--processes", "1", "--data-dir", str(directory / "crawl")]
    # Each has a memory of hosts of its own: crawls that share one wait for each other's turns.
    environment = {"PYTHONPATH": str(source), "XDG_STATE_HOME": str(directory)}
    usage = measured(command, cores={core}, cwd=directory, environment=environment)
    return usage.cpu_s / json.loads(usage.printed)["fetched"] * 1e6, usage.peak_mb


def run(options: Sequence[str] = ()) -> dict[str, float]:
    """Compare, print the medians, and leave the figures in `.cache/bench/against.json`."""
    parser = ArgumentParser(prog="python -m bench against")
    parser.add_argument("--base", default=RELEASE, help="the earlier revision")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--handler", action="store_true", help="with one that yields nothing")
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
        words: dict[str, tuple[str, ...]] = dict.fromkeys(sources, ("crawl",))
        if given.handler:
            (place / "function.py").write_text(FUNCTION)
            (place / "spider.py").write_text(SPIDER)
            words["base"] = ("crawl", "--extract", f"{place / 'function.py'}:nothing")
            words["this"] = ("run", str(place / "spider.py"))
        for name, source in sources.items():  # compiles the modules of both
            cost(source, seeds, place / f"warm-{name}", mine, words[name])
        for number in range(given.rounds):
            done = at_once(
                {
                    name: partial(
                        cost, source, seeds, place / f"{name}-{number}", mine, words[name]
                    )
                    for name, source in sources.items()
                }
            )
            for name, (microseconds, peak_mb) in done.items():
                costs[name].append(microseconds)
                peaks[name].append(peak_mb)
            print(f"  round {number + 1}: {costs['this'][-1] / costs['base'][-1]:.3f}", flush=True)
    found = ratio(costs["this"], costs["base"])
    figures = {
        "cpu_us_a_page": median(costs["this"]),
        "base_cpu_us_a_page": median(costs["base"]),
        **found.figures(),
        "peak_mb": median(peaks["this"]),
        "base_peak_mb": median(peaks["base"]),
    }
    print(
        f"\nCPU a page: {figures['cpu_us_a_page']:.0f} µs, "
        f"base {figures['base_cpu_us_a_page']:.0f} µs; "
        f"ratio {found}"
        f"\npeak memory: {figures['peak_mb']:.0f} MB, base {figures['base_peak_mb']:.0f} MB"
    )
    write("against-handler" if given.handler else "against", figures)
    return figures
