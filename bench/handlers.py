"""Measure `mannerly extract`: pages a second of one core, with a handler that returns nothing.

    python -m bench handlers
    python -m bench handlers --rounds 5 --hosts 170      about 10,000 pages

The web of `bench.web` is crawled once with --keep-bodies, compressed as most servers do it. Then
the handler runs over all kept pages, with one helper process, on one core: the CPU time of the
command, its helper and its start included.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from statistics import median
from typing import TYPE_CHECKING

from ._cores import two_cores
from ._figures import write
from ._process import measured
from .peers import UNPACED
from .scale import temporary
from .web import WebSpec, served

if TYPE_CHECKING:
    from collections.abc import Sequence

NOTHING = """\
import mannerly

nothing = mannerly.Spider("http://127.0.0.1/")


@nothing.on("*")
def page(page):
    return None
"""


def run(options: Sequence[str] = ()) -> dict[str, float]:
    """Measure, print the speed, and leave it in a file."""
    parser = ArgumentParser(prog="python -m bench handlers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=60)
    given = parser.parse_args(list(options))
    mine, theirs = two_cores()
    ours = [sys.executable, "-m", "mannerly"]
    speeds, walls = [], []
    with temporary() as place:
        (place / "nothing.py").write_text(NOTHING)
        with served(WebSpec(hosts=given.hosts), core=theirs, compressed=True) as web:
            seeds = place / "seeds.txt"
            seeds.write_text("\n".join(web.spec.homes()))
            crawl = [*ours, "crawl", str(seeds), *UNPACED, "--keep-bodies"]
            command = [*crawl, "--processes", "1", "--data-dir", "crawl"]
            usage = measured(command, cores={mine}, cwd=place, environment={})
            pages = json.loads(usage.printed)["fetched"]
        for _ in range(given.rounds):
            command = [*ours, "extract", "crawl", "nothing.py", "-o", "-", "--processes", "1"]
            usage = measured(command, cores={mine}, cwd=place, environment={})
            speeds.append(pages / usage.cpu_s)
            walls.append(usage.wall_s)
    figures = {"pages": float(pages), "pages_a_core_s": median(speeds), "wall_s": median(walls)}
    print(
        f"{pages:,} pages: {median(speeds):,.0f} pages/s of one core "
        f"(CPU; {median(walls):.1f} s on this machine now)"
    )
    write("handlers", figures)
    return figures
