"""Measure the cost of TLS, processes, many hosts, politeness, durability and a large state.

    python -m bench variants                              everything, three rounds, some minutes
    python -m bench variants --only wire --rounds 1       one comparison

wire        HTTP beside the same compressed by the server, HTTPS with kept-alive connections, HTTPS
            with a new connection for every page, and HTTP/2
processes   two processes beside one, the server on the same two cores
hosts       5,000 hosts of 6 pages beside 200 of 150
hosts-tls   the same over TLS, where each host has a certificate of its own
manners     pace, breaker and robots.txt on beside off
store       the durable store beside dictionaries
kept        links and metadata kept (--links), and the text of every page digested, beside neither
growth      a state of 1,000,000 URLs on 100,000 hosts beside an empty one, the same new pages

Within a comparison the variants take turns. A ratio is the median of the ratios of all rounds;
above 1 is better than the first variant. *Steady* does not include the start, loading a state and
the end. Crawler and server have one core each unless the list says otherwise.
"""

from __future__ import annotations

import json
import shutil
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from ._cores import two_cores
from ._figures import write
from ._known_state import KNOWN, make_known
from ._process import measured
from .peers import Crawl, figures_of, mannerly_crawl
from .scale import temporary
from .web import WebSpec, is_nginx_here, served

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .web import Serving

ROUNDS = 3
PLAIN = WebSpec()
SECURE = WebSpec(scheme="https", port=18443)
# The same number of pages on few hosts and on many.
FEW, CROWD = WebSpec(pages=150), WebSpec(hosts=5000, pages=6)
SECURE_FEW = WebSpec(pages=150, scheme="https", port=18443)
SECURE_CROWD = WebSpec(hosts=5000, pages=6, scheme="https", port=18443)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to crawl."""

    name: str
    spec: WebSpec = PLAIN
    keep_alive: bool = True
    http2: bool = False
    compressed: bool = False  # by the server, with gzip
    processes: int = 1
    shares_cores: bool = False  # crawler and server on the same two
    kind: str | None = None  # of `_unusual_crawl`; None: the command
    is_old: bool = False  # starts with a million known URLs
    options: tuple[str, ...] = ()  # of the command, besides those of all


COMPARISONS: dict[str, tuple[Variant, ...]] = {
    "wire": (
        Variant(name="http"),
        Variant(name="gzip", compressed=True),
        Variant(name="https", spec=SECURE),
        Variant(name="https cold", spec=SECURE, keep_alive=False),
        Variant(name="http2", spec=SECURE, http2=True),
    ),
    "processes": (
        Variant(name="one process", shares_cores=True),
        Variant(name="two processes", shares_cores=True, processes=2),
    ),
    "hosts": (Variant(name="200 hosts", spec=FEW), Variant(name="5,000 hosts", spec=CROWD)),
    "hosts-tls": (
        Variant(name="200 hosts, TLS", spec=SECURE_FEW),
        Variant(name="5,000 hosts, TLS", spec=SECURE_CROWD),
    ),
    "manners": (Variant(name="impolite", kind="impolite"), Variant(name="polite", kind="usual")),
    "store": (Variant(name="in memory", kind="memory"), Variant(name="durable", kind="usual")),
    "kept": (
        Variant(name="nothing kept"),
        Variant(name="links kept", options=("--links",)),
        Variant(name="text digested", options=("--text-digest", "all")),
    ),
    "growth": (Variant(name="empty start"), Variant(name="1,000,000 known", is_old=True)),
}


def crawl_once(variant: Variant, directory: Path, web: Serving) -> Crawl:
    """One crawl in a new directory, which may hold a state already."""
    mine, theirs = two_cores()
    cores = {mine, theirs} if variant.shares_cores else {mine}
    seeds = directory / "seeds.txt"
    seeds.write_text("\n".join(web.spec.homes()))
    if variant.kind is None:
        options = ("--processes", str(variant.processes), *variant.options)
        known = KNOWN if variant.is_old else 0
        return mannerly_crawl(
            seeds, directory, options, cores=cores, environment=web.environment, known=known
        )
    # The module is found from here; the crawl gets its own directory by name.
    command = [sys.executable, "-m", "bench._unusual_crawl", variant.kind]
    command += [str(seeds), str(directory)]
    usage = measured(command, cores=cores, cwd=None, environment=web.environment)
    pages = json.loads(usage.printed)["fetched"]
    return Crawl(pages, usage.wall_s, usage.cpu_s, usage.peak_mb)


class Comparison:
    """Variants in turn, several rounds, in one temporary directory."""

    def __init__(self, variants: Sequence[Variant], place: Path) -> None:
        self._variants = variants
        self._place = place
        self._crawls: dict[str, list[Crawl]] = {variant.name: [] for variant in variants}
        if any(variant.is_old for variant in variants):
            make_known(place / "known", PLAIN.homes())

    def turn(self, variant: Variant) -> None:
        directory = self._place / "turn"
        directory.mkdir()
        if variant.is_old:
            shutil.copytree(self._place / "known", directory / "crawl")
        core = None if variant.shares_cores else two_cores()[1]
        with served(
            variant.spec,
            core=core,
            keep_alive=variant.keep_alive,
            http2=variant.http2,
            compressed=variant.compressed,
        ) as web:
            crawl = crawl_once(variant, directory, web)
        self._crawls[variant.name].append(crawl)
        shutil.rmtree(directory)

    def figures(self) -> dict[str, dict[str, float]]:
        first = self._variants[0].name
        return {name: figures_of(runs, self._crawls[first]) for name, runs in self._crawls.items()}


def compare(name: str, rounds: int) -> dict[str, dict[str, float]]:
    """Run one comparison and print its table."""
    variants = COMPARISONS[name]
    if not is_nginx_here():
        variants = tuple(variant for variant in variants if not variant.http2)
        print("HTTP/2 is left out: it needs nginx (Debian: apt install nginx-light)")
    with temporary() as place:
        comparison = Comparison(variants, place)
        for _ in range(rounds):
            for variant in variants:
                comparison.turn(variant)
    rows = comparison.figures()
    print(f"\n{name:<18}{'pages':>8}{'pages/s':>9}{'CPU-s/1,000':>13}{'peak MB':>9}", end="")
    print(f"{'× speed':>9}{'× CPU':>8}{'× steady':>10}")
    for label, row in rows.items():
        print(f"{label:<18}{row['pages']:>8,}{row['pages_per_s']:>9,.0f}", end="")
        print(f"{row['cpu_s_per_1000']:>13.2f}{row['peak_mb']:>9.0f}", end="")
        steady = "–" if isnan(row["steady_ratio"]) else f"{row['steady_ratio']:.2f}"
        print(f"{row['speed_ratio']:>9.2f}{row['cpu_ratio']:>8.2f}{steady:>10}", flush=True)
    return rows


def run(options: Sequence[str] = ()) -> dict[str, dict[str, dict[str, float]]]:
    """Run all comparisons or some, and write the figures to `.cache/bench/variants.json`."""
    parser = ArgumentParser(prog="python -m bench variants")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", choices=tuple(COMPARISONS), action="append")
    given = parser.parse_args(list(options))
    figures = {name: compare(name, given.rounds) for name in given.only or COMPARISONS}
    write("variants", figures)
    return figures


if __name__ == "__main__":
    run(sys.argv[1:])
