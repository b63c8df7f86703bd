"""Compare crawlers on webs that are written in different manners: CPU time a page.

    python -m bench webs                           four generated webs and small hosts
    python -m bench webs --only articles --rounds 3 --hosts 40
    python -m bench webs --web /usr/share/doc/python3.11/html    a real manual, too

    pages, articles, forum, shop     generated (`bench/web/manners.py`)
    manual                           a directory of the user's, served on several hosts
    hosts, hosts-tls                 5,000 small hosts of six pages. Over TLS each has a certificate
                                     of one authority that all crawlers are pointed to; hosts are
                                     loopback addresses, so nobody resolves a name

Each is crawled with and without gzip by mannerly with all its defaults on, a crawler in Go
(net/http and goquery; skipped where Debian's golang and golang-github-puerkitobio-goquery-dev are
not installed), and Scrapy and Crawlee with their links handled by hand (`peers.py`). In a round all
take turns; the figure is CPU time a page, and the ratios to mannerly's are taken within a round.
Every crawler must fetch the same pages, or its row says how many it has. Scrapy does not verify
certificates; Crawlee knows no other authorities, so it is left out of the hosts over TLS.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections import Counter
from math import prod
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from ._cores import two_cores
from ._figures import write
from ._pairs import ratio
from .peers import GO, PEERS, Crawl, environment_of, go_program, mannerly_crawl, peer_crawl
from .scale import temporary
from .web import WebSpec, served
from .web.manners import MANNERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROUNDS = 5
HOSTS, SMALL_HOSTS, MANUAL_HOSTS = 200, 5000, 4
SMALL = ("hosts", "hosts-tls")
PORT, TLS_PORT = 18085, 18445
OURS = "mannerly"
CRAWLERS = (OURS, GO, "scrapy-bare", "crawlee-bare")
# Later options win: nothing outside of the web is asked for, whatever a real manual links to.
OPTIONS = ("--processes", "1", "--scope", "host")


class Web(NamedTuple):
    """A web to crawl."""

    name: str
    spec: WebSpec
    crawlers: Sequence[str]


def webs(
    names: Sequence[str], hosts: int, manual: Path | None, crawlers: Sequence[str]
) -> Iterator[Web]:
    """Yield the webs with these names."""
    for kind in MANNERS:
        if kind in names:
            yield Web(kind, WebSpec.of_kind(kind, hosts=hosts, port=PORT), crawlers)
    if manual is not None and "manual" in names:
        spec = WebSpec(hosts=MANUAL_HOSTS, port=PORT, directory=str(manual))
        yield Web("manual", spec, crawlers)
    small = hosts * SMALL_HOSTS // HOSTS
    if "hosts" in names:
        yield Web("hosts", WebSpec(hosts=small, pages=6, port=PORT), crawlers)
    if "hosts-tls" in names:
        spec = WebSpec(hosts=small, pages=6, scheme="https", port=TLS_PORT)
        verifying = [name for name in crawlers if not name.startswith("crawlee")]
        yield Web("hosts-tls", spec, verifying)


def race(web: Web, rounds: int, *, compressed: bool) -> dict[str, list[Crawl]]:
    """Crawl a web with every crawler, in turn, so many times."""
    found: dict[str, list[Crawl]] = {name: [] for name in web.crawlers}
    mine, theirs = two_cores()
    with served(web.spec, core=theirs, compressed=compressed) as serving, temporary() as place:
        seeds = place / "seeds.txt"
        seeds.write_text("\n".join(web.spec.homes()))
        for number in range(rounds):
            for name in web.crawlers:
                directory = place / f"{name}-{number}"
                directory.mkdir()
                there = serving.environment
                found[name].append(
                    mannerly_crawl(seeds, directory, OPTIONS, cores={mine}, environment=there)
                    if name == OURS
                    else peer_crawl(name, seeds, directory, cores={mine}, environment=there)
                )
    return found


def told(web: Web, crawls: dict[str, list[Crawl]]) -> dict[str, dict[str, float]]:
    """Print a row a crawler; return the figures."""
    counts = Counter(crawl.pages for runs in crawls.values() for crawl in runs)
    expected = counts.most_common(1)[0][0] if web.spec.directory else web.spec.total
    ours = [crawl.cpu_s_per_1000 for crawl in crawls[OURS]]
    figures = {}
    for name, runs in crawls.items():
        costs = [crawl.cpu_s_per_1000 for crawl in runs]
        share = ratio(costs, ours)
        pages = {crawl.pages for crawl in runs}
        figures[name] = {
            "cpu_us_a_page": median(costs) * 1000,
            "peak_mb": median(crawl.peak_mb for crawl in runs),
            "pages": min(pages),
            **share.figures(),
        }
        wrong = "" if pages == {expected} else f"  {min(pages):,} pages of {expected:,}"
        print(
            f"  {name:<13}{median(costs) * 1000:8,.0f} µs a page, × {share}, "
            f"{figures[name]['peak_mb']:.0f} MB{wrong}",
            flush=True,
        )
    return figures


def run(options: Sequence[str] = ()) -> dict[str, dict[str, dict[str, float]]]:
    """Crawl all webs, print ratios and their means, write `.cache/bench/webs.json`."""
    parser = ArgumentParser(prog="python -m bench webs")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--web", type=Path, metavar="DIR", help="a directory with an index.html")
    parser.add_argument("--only", choices=(*MANNERS, "manual", *SMALL), action="append")
    parser.add_argument("--crawler", choices=CRAWLERS, action="append")
    parser.add_argument("--gzip", choices=("on", "off"), help="both unless one is given")
    given = parser.parse_args(list(options))
    crawlers = list(dict.fromkeys((OURS, *(given.crawler or CRAWLERS))))
    if GO in crawlers and go_program() is None:
        print("no Go: install golang and golang-github-puerkitobio-goquery-dev")
        crawlers.remove(GO)
    for name in crawlers:
        if name in PEERS:
            environment_of(PEERS[name])
    names = given.only or (*MANNERS, "manual", *SMALL)
    figures = {}
    for web in webs(names, given.hosts, given.web, crawlers):
        for gzip in ("off", "on"):
            if given.gzip in (None, gzip):
                title = f"{web.name}, gzip {gzip}"
                print(title, flush=True)
                figures[title] = told(web, race(web, given.rounds, compressed=gzip == "on"))
    for name in crawlers[1:]:
        ratios = [rows[name]["ratio"] for rows in figures.values() if name in rows]
        mean = prod(ratios) ** (1 / len(ratios))
        print(f"{name}: × {mean:.2f} in the geometric mean, {min(ratios):.2f} at the least")
    write("webs", figures)
    return figures


if __name__ == "__main__":
    run(sys.argv[1:])
