"""Compare mannerly, Scrapy and Crawlee on the same web: pages/s, CPU, memory.

    python -m bench peers                          all of them, three rounds, a quarter of an hour
    python -m bench peers --rounds 1 --only scrapy

200 hosts of 60 pages on loopback (`bench.web`), delays off, robots.txt obeyed, from the 200 home
pages. The server has one core and the crawler the other. In every round the crawlers run one after
another, so that other load on the machine affects all of them. Every crawler writes at least
address, status, title and number of links of each page: Scrapy and Crawlee as JSON lines, mannerly
to its store, with all its defaults on (durable store, network guard, caps, redirects,
decompression).

Scrapy and Crawlee run in two variants. `scrapy` and `crawlee` have tuned settings and use their own
link extractor, duplicate filter and request queue. `…-bare` has that work written by hand for this
web (see `peer_programs`): an upper bound, and not what users have. Each has a virtual environment
below `.cache/bench-venvs` with pinned versions, which is made when it is missing.
All costs are measured from outside and include the start of the interpreter; *steady* is the speed
between the first page and the last, as in a longer crawl.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from argparse import ArgumentParser
from dataclasses import dataclass
from math import nan
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from mannerly.crawler.store import open_crawl

from ._cores import two_cores
from ._figures import write
from ._process import measured
from .scale import temporary
from .web import WebSpec, served

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROUNDS = 3
HERE = Path(__file__).resolve().parent
VENVS = HERE.parent / ".cache" / "bench-venvs"

REQUIREMENTS = {
    "scrapy": ("scrapy==2.19.0", "twisted==26.10.0", "lxml==6.1.3", "uvloop==0.23.0"),
    "crawlee": ("crawlee[parsel]==1.11.0", "impit==0.15.1", "lxml==6.1.3", "uvloop==0.23.0"),
}
# The crawler whose environment a program runs in.
PEERS = {
    "scrapy": "scrapy",
    "scrapy-bare": "scrapy",
    "crawlee": "crawlee",
    "crawlee-bare": "crawlee",
}
NAMES = ("mannerly", *PEERS)
GO = "go"  # only where Debian's golang and its goquery are installed: see `go_program`
GO_SOURCES = Path("/usr/share/gocode")

# Options to go as fast as the machine can; all others have their defaults.
UNPACED = (
    *("--scope", "any", "--seeding-strategy", "none", "--allow-net", "127.0.0.0/8"),
    *("--strategy", "fixed", "--max-rate", "unlimited", "--quiet", "--json"),
)


@dataclass(frozen=True, slots=True)
class Crawl:
    """The cost of one crawl."""

    pages: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    steady_s: float | None = None  # from the first page to the last; None: not known

    @property
    def steady_pages_per_s(self) -> float:
        return self.pages / self.steady_s if self.steady_s else nan

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.wall_s

    @property
    def cpu_s_per_1000(self) -> float:
        return self.cpu_s / self.pages * 1000


def environment_of(name: str) -> Path:
    """Return the interpreter of a peer's virtual environment; make it if missing or outdated."""
    folder = VENVS / name
    python, stamp = folder / "bin" / "python", folder / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS[name])
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"making the environment of {name}: {wanted.replace(chr(10), ', ')}", flush=True)
        venv.create(folder, clear=True, symlinks=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *REQUIREMENTS[name]], check=True, stderr=subprocess.DEVNULL)
        stamp.write_text(wanted)
    return python


def mannerly_crawl(
    seeds: Path,
    directory: Path,
    options: Sequence[str] = ("--processes", "1"),
    *,
    cores: set[int],
    environment: Mapping[str, str],
    known: int = 0,
) -> Crawl:
    """Run `mannerly crawl` as a user would, in a directory that may contain a crawl already."""
    command = [sys.executable, "-m", "mannerly", "crawl", str(seeds), *UNPACED, *options]
    command += ["--data-dir", str(directory / "crawl")]
    usage = measured(command, cores=cores, cwd=directory, environment=environment)
    pages = json.loads(usage.printed)["fetched"]
    steady_s = span_s(page_times(directory / "crawl", after=known))
    return Crawl(pages, usage.wall_s, usage.cpu_s, usage.peak_mb, steady_s)


def page_times(crawl: Path, *, after: int) -> list[float]:
    """Return when the pages of a crawl were fetched, without the first ones of each shard."""
    times = []
    store = open_crawl(crawl)
    for shard in range(store.manifest.shards):
        with store.read(shard) as reader:
            times += [record.fetched_at for _, record in reader.pages(after=after)]
    store.close()
    return times


def span_s(times: Sequence[float]) -> float:
    return max(times) - min(times)


def go_program() -> Path | None:
    """Return the crawler in Go, built if need be; None where it cannot be built."""
    if shutil.which("go") is None or not (GO_SOURCES / "src/github.com/PuerkitoBio").is_dir():
        return None
    source, program = HERE / "peer_programs" / "go_crawl.go", VENVS / "go_crawl"
    if not program.is_file() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        places = {"GO111MODULE": "off", "GOPATH": str(GO_SOURCES), "GOCACHE": str(VENVS / "go")}
        build = ["go", "build", "-o", str(program), str(source)]
        subprocess.run(build, check=True, env={**os.environ, **places})
    return program


def peer_crawl(
    name: str,
    seeds: Path,
    directory: Path,
    *,
    cores: set[int],
    environment: Mapping[str, str] | None = None,
) -> Crawl:
    """Run a peer's program; every line of its output is a page."""
    output = directory / "pages.jsonl"
    if name == GO:
        command = [str(go_program())]
    else:
        program = HERE / "peer_programs" / f"{name.replace('-', '_')}_crawl.py"
        command = [str(environment_of(PEERS[name])), str(program)]
    command += [str(seeds), str(output)]
    usage = measured(command, cores=cores, cwd=directory, environment=environment or {})
    pages = {page["url"]: page["at"] for page in map(json.loads, output.open())}
    steady_s = span_s(list(pages.values()))
    return Crawl(len(pages), usage.wall_s, usage.cpu_s, usage.peak_mb, steady_s)


def race(names: Sequence[str], rounds: int) -> dict[str, list[Crawl]]:
    """Run every crawler once per round, in turn."""
    crawls: dict[str, list[Crawl]] = {name: [] for name in names}
    mine, theirs = two_cores()
    for name in names:
        if name in PEERS:
            environment_of(PEERS[name])
    with served(WebSpec(), core=theirs) as web, temporary() as place:
        print(f"{web.spec.total:,} pages on {web.spec.hosts} hosts, served by {web.server}")
        seeds = place / "seeds.txt"
        seeds.write_text("\n".join(web.spec.homes()))
        for number in range(rounds):
            for name in names:
                directory = place / f"{name}-{number}"
                directory.mkdir()
                crawl = (
                    peer_crawl(name, seeds, directory, cores={mine})
                    if name in PEERS
                    else mannerly_crawl(seeds, directory, cores={mine}, environment={})
                )
                crawls[name].append(crawl)
                print(f"  {name:<13}{crawl.pages:>8,} pages in {crawl.wall_s:6.1f} s", flush=True)
    return crawls


def figures_of(crawls: Sequence[Crawl], beside: Sequence[Crawl]) -> dict[str, float]:
    """Return medians over the rounds; ratios are taken within a round, and more is better."""
    pairs = list(zip(crawls, beside, strict=True))
    return {
        "pages": min(crawl.pages for crawl in crawls),
        "pages_per_s": median(crawl.pages_per_s for crawl in crawls),
        "pages_per_s_best": max(crawl.pages_per_s for crawl in crawls),
        "steady_pages_per_s": median(crawl.steady_pages_per_s for crawl in crawls),
        "cpu_s_per_1000": median(crawl.cpu_s_per_1000 for crawl in crawls),
        "cpu_s_per_1000_best": min(crawl.cpu_s_per_1000 for crawl in crawls),
        "peak_mb": median(crawl.peak_mb for crawl in crawls),
        "speed_ratio": median(one.pages_per_s / other.pages_per_s for one, other in pairs),
        "steady_ratio": median(
            one.steady_pages_per_s / other.steady_pages_per_s for one, other in pairs
        ),
        "cpu_ratio": median(other.cpu_s_per_1000 / one.cpu_s_per_1000 for one, other in pairs),
    }


def run(options: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Run all rounds, print a table, and write the figures to `.cache/bench/peers.json`."""
    parser = ArgumentParser(prog="python -m bench peers")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", choices=NAMES, action="append")
    given = parser.parse_args(list(options))
    crawls = race(given.only or NAMES, given.rounds)
    reference = "scrapy" if "scrapy" in crawls else next(iter(crawls))
    figures = {name: figures_of(runs, crawls[reference]) for name, runs in crawls.items()}
    print(
        f"\n{'':<13}{'pages':>8}{'pages/s':>9}{'best':>7}{'steady':>8}{'CPU-s/1,000':>13}", end=""
    )
    print(f"{'best':>7}{'peak MB':>9}{f'× {reference}':>11}{'× steady':>10}{'× by CPU':>10}")
    for name, row in figures.items():
        print(f"{name:<13}{row['pages']:>8,}{row['pages_per_s']:>9,.0f}", end="")
        print(f"{row['pages_per_s_best']:>7,.0f}{row['steady_pages_per_s']:>8,.0f}", end="")
        print(f"{row['cpu_s_per_1000']:>13.2f}{row['cpu_s_per_1000_best']:>7.2f}", end="")
        print(
            f"{row['peak_mb']:>9.0f}{row['speed_ratio']:>11.1f}{row['steady_ratio']:>10.1f}", end=""
        )
        print(f"{row['cpu_ratio']:>10.1f}")
    write("peers", figures)
    return figures


if __name__ == "__main__":
    run(sys.argv[1:])
