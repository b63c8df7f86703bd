"""Measure how the CPU time of a page divides among the stages of a real crawl.

    python -m bench profile                     print the table, some minutes
    python -m bench profile --web forum         of one web only, half a minute
    python -m bench profile --web hosts --web hosts-tls     what the first contact with a host costs
    python -m bench profile --write             and write it to docs/explanation/performance.md

The crawls have everything on: 100 hosts of 60 pages of each generated web (`bench/web/manners.py`),
compressed by the server, no delays, SQLite, one process on one core and the server on another.
Functions are timed from outside (`_stageclock.py`), in CPU time and without the timed functions
that they call. The crawl as a whole is one of the timed functions, so nothing is left out.

*hosts* and *hosts-tls* have one page a host, so each page has a connection, a robots.txt and a host
record for itself: what a stage costs beyond that of *pages* is the first contact.

Every round crawls twice, without and with timers. As a check, the stages of the timed crawl must
add up to the CPU time of the other one. The fastest crawl of each kind counts.

The least that some stages can cost is measured on the same pages: the one call in each of them that
is not ours, in a loop of nothing else. On a machine where the server shares a processor's
caches and units with the crawler, a crawl is slower than such a loop by a third.
"""

# ruff: noqa: A005 - `bench.profile` is always imported with its package's name

from __future__ import annotations

import argparse
import gc
import gzip
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import chain
from math import inf
from multiprocessing import get_context
from pathlib import Path
from time import process_time_ns, thread_time_ns
from typing import TYPE_CHECKING, NamedTuple

from xxhash import xxh3_128_hexdigest

from mannerly.crawler.fetch.decoding import decode
from mannerly.crawler.page import ParsedPage, parse_page, scan
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.web.choices import ScopeMode
from mannerly.politeness import Settings

from . import _figures
from ._stageclock import Overhead, Probe, StageClock, find_all, install
from .web import WebSpec, ensure, served
from .web.manners import MANNERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

# In the order of a URL's way. A function is not charged for other functions of the table.
STAGES: Mapping[str, Sequence[str]] = {
    "frontier: whose turn is it?": (
        "mannerly.crawler.frontier.core:Frontier.take",
        "mannerly.crawler.frontier.core:Frontier.done",
        "mannerly.crawler.frontier.core:Frontier.add",
        "mannerly.crawler.frontier.core:Frontier.committed",
        "mannerly.crawler.frontier.core:Frontier.refill",
        "mannerly.crawler.frontier.core:Frontier.next_due",
    ),
    "robots.txt: may it be fetched?": (
        "mannerly.crawler.robots.gate:RobotsGate.judge",
        "mannerly.crawler.robots.gate:RobotsGate.answered",
    ),
    "politeness: may it be now, what was learned": (
        "mannerly.politeness.core:Politeness.reserve",
        "mannerly.politeness.core:Politeness.ready_at",
        "mannerly.politeness.core:Politeness.sent",
        "mannerly.politeness.core:Politeness.report",
        "mannerly.politeness.core:Politeness.drain",
    ),
    "request: made, and handed to curl": (
        "mannerly.crawler.shard.requests:RequestMaker.__call__",
        "mannerly.crawler.fetch.curl:CurlFetcher.start",
    ),
    "curl and the kernel's sockets": ("mannerly.crawler.fetch.curl:CurlFetcher.wait",),
    "answer: status, headers, body": ("mannerly.crawler.fetch.transfer:Transfer.finish",),
    "body: undo its compression": ("mannerly.crawler.shard.reading:readable",),
    "scan: bytes to elements": (
        "mannerly.crawler.page.html:parse_page",
        "mannerly.crawler.page.scan:read",
    ),
    "tree, where a scan is not enough": ("mannerly.crawler.page.tree:read",),
    "walk: the elements that matter": (
        "mannerly.crawler.page.html:_Collector.walk",
        "mannerly.crawler.page.html:_Collector.page",
    ),
    "links: hrefs to canonical URLs": ("mannerly.crawler.page.links:resolve_links",),
    "dedup: not seen lately": (
        "mannerly.crawler.web.recent:Recent.others",
        "mannerly.crawler.shard.routes:Routes.links",
    ),
    "scope and candidates": ("mannerly.crawler.page.harvest:found_links",),
    "record of the page, with its digest": (
        "mannerly.crawler.page.harvest:harvest",
        "mannerly.crawler.page.record:page_record",
    ),
    "counts of the host": (
        "mannerly.crawler.host.records:HostRecords.count",
        "mannerly.crawler.host.records:HostRecords.changes",
    ),
    "events and statistics": ("mannerly.crawler.events:Events.emit",),
    "store: commits and look-ups": (
        "mannerly.crawler.store.sqlite.shard:SqliteStore.commit",
        "mannerly.crawler.store.sqlite.shard:SqliteStore.counts",
        "mannerly.crawler.store.sqlite.shard:SqliteStore.host",
        "mannerly.crawler.store.sqlite.shard:SqliteStore.robots",
    ),
    "shard and engine: the rest of the loop": (
        "mannerly.crawler.shard.shard:Shard.start_due",
        "mannerly.crawler.shard.judge:Judge.__call__",
        "mannerly.crawler.shard.shard:Shard.answered",
        "mannerly.crawler.shard.shard:Shard.to_commit",
        "mannerly.crawler.shard.shard:Shard.committed",
        "mannerly.crawler.shard.shard:Shard.tick",
        "mannerly.crawler.runtime.engine:Engine.turn",
    ),
    "the crawl's start and end": ("mannerly.crawler.crawl:run_crawl",),
}

HOSTS, PORT, TLS_PORT = 100, 18082, 18446
UNPACED = Settings(strategy="fixed", max_rate="unlimited", min_delay_s=0.0, max_concurrency=8)
SETTINGS = CrawlSettings(
    scope=ScopeMode.ANY, politeness=UNPACED, seeding="none", allow_net=("127.0.0.0/8",)
)
FIRST_CONTACTS = {
    "hosts": WebSpec(hosts=1000, pages=1, port=PORT),
    "hosts-tls": WebSpec(hosts=1000, pages=1, scheme="https", port=TLS_PORT),
}
PLACES = [place for places in STAGES.values() for place in places]
PROBED = "mannerly.crawler.page.harvest:harvest"  # once a page, in the middle of its way
LEAST_ROUNDS = 30
TOLERANCE = 0.1  # the stages must add up to the whole within this share
PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "performance.md"
BEGIN = "<!-- Written by `python -m bench profile --write` from here -->"
END = "<!-- to here -->"


class Spent(NamedTuple):
    """CPU time and timed calls, a page."""

    us: float
    calls: float


class Crawled(NamedTuple):
    """One crawl: CPU time a page of the process, and of the functions if they were timed."""

    us: float
    functions: dict[str, Spent]
    overhead: Overhead


def crawl_once(
    spec: WebSpec,
    is_timed: bool,  # noqa: FBT001
    core: int | None,
    environment: Mapping[str, str],
) -> Crawled:
    """Crawl a web once, in this process, which has to be a new one."""
    os.environ.update(environment)
    if core is not None:
        os.sched_setaffinity(0, {core})
    find_all(PLACES)  # what is imported now is not part of the crawl
    clock = StageClock()
    probe = Probe(clock)
    tallies = install(clock, probe, PLACES, PROBED) if is_timed else {}
    crawl = import_module("mannerly.crawler.crawl").run_crawl
    gc.collect()
    with tempfile.TemporaryDirectory() as directory:
        began_ns = process_time_ns()
        result = crawl(SETTINGS, spec.homes(), Path(directory) / "crawl")
        used_ns = process_time_ns() - began_ns
    pages = result.stats.fetched
    if pages != spec.total:
        raise RuntimeError(f"{pages:,} pages were fetched, not {spec.total:,}")
    overhead = probe.overhead if is_timed else Overhead(0.0, 0.0)
    functions = {
        place: Spent(tally.own_ns(overhead) / pages / 1000, tally.calls / pages)
        for place, tally in tallies.items()
    }
    return Crawled(used_ns / pages / 1000, functions, overhead)


class Profile(NamedTuple):
    """The fastest crawl of a web with timers, and without: other load can only add time."""

    plain_us: float
    functions: dict[str, Spent]
    overhead_us: float  # of a timed call

    @property
    def stages(self) -> dict[str, Spent]:
        return {stage: self._sum(places) for stage, places in STAGES.items()}

    @property
    def whole(self) -> Spent:
        return self._sum(self.functions)

    @property
    def quotient(self) -> float:
        """Share of the plain crawl's CPU time that the stages add up to."""
        return self.whole.us / self.plain_us

    def _sum(self, places: Iterable[str]) -> Spent:
        functions = [self.functions[place] for place in places]
        return Spent(sum(each.us for each in functions), sum(each.calls for each in functions))


def measure(spec: WebSpec, rounds: int) -> Profile:
    """Crawl a web plain and timed in turns, the one that goes first changing with every round."""
    cores = sorted(os.sched_getaffinity(0))
    own, other = (cores[0], cores[1]) if len(cores) > 1 else (None, None)
    crawls: dict[bool, list[Crawled]] = {False: [], True: []}
    with served(spec, core=other, compressed=True) as web:
        for number in range(rounds):
            for is_timed in (False, True) if number % 2 == 0 else (True, False):
                # A new process for each, without caches, timers or garbage of another crawl.
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                    crawled = process.submit(
                        crawl_once, spec, is_timed, own, web.environment
                    ).result()
                crawls[is_timed].append(crawled)
    timed = min(crawls[True], key=lambda crawled: crawled.us)
    plain_us = min(crawled.us for crawled in crawls[False])
    return Profile(plain_us, timed.functions, sum(timed.overhead) / 1000)


def least(spec: WebSpec) -> dict[str, float]:
    """Return the CPU time a page of what other libraries do in some stages."""
    hosts = ensure(spec) / "hosts" / spec.address(0)
    bodies = [page.read_bytes() for page in sorted(hosts.rglob("*.html"))]
    packed = [gzip.compress(body, compresslevel=1) for body in bodies]
    pages = [parse_page(body, None, spec.origin(0) + "/") for body in bodies]
    hrefs = [page.links for page in pages if isinstance(page, ParsedPage)]
    works: dict[str, tuple[Callable[..., object], Sequence[Sequence[object]]]] = {
        "undo gzip": (decode, [(each, "gzip", 1 << 24) for each in packed]),
        "find the elements, nothing else": (
            scan._scanner.fields,
            [(each,) for each in bodies],
        ),
        "look all links up, if all are known": (
            set(chain(*hrefs)).issuperset,
            [(e,) for e in hrefs],
        ),
        "digest of the body": (xxh3_128_hexdigest, [(each,) for each in bodies]),
    }
    return {name: _us_a_page(work, pages) for name, (work, pages) in works.items()}


def _us_a_page(work: Callable[..., object], pages: Sequence[Sequence[object]]) -> float:
    best = inf
    for _ in range(LEAST_ROUNDS):
        began_ns = thread_time_ns()
        for page in pages:
            work(*page)
        best = min(best, thread_time_ns() - began_ns)
    return best / len(pages) / 1000


def table(profiles: Mapping[str, Profile], unit: str = "µs a page") -> str:
    """Markdown that can be read in a terminal, too: µs a page of each web, and their shares."""
    rows = [[unit, *profiles]]
    for stage in STAGES:
        rows.append([stage, *(_with_share(each, stage) for each in profiles.values())])
    rows.append(["**sum of the stages**", *(f"{each.whole.us:.0f}" for each in profiles.values())])
    plain = (f"{each.plain_us:.0f}" for each in profiles.values())
    rows.append(["**a crawl without timers**", *plain])
    return _aligned(rows)


def least_table(specs: Mapping[str, WebSpec]) -> str:
    """The least that some stages cost, on the pages of each web."""
    found = {kind: least(spec) for kind, spec in specs.items()}
    rows = [["µs a page, at the least", *found]]
    for name in next(iter(found.values())):
        rows.append([name, *(f"{each[name]:.1f}" for each in found.values())])
    return _aligned(rows)


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| "
        + " | ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in rows
    ]
    lines.insert(1, "|---|" + "---:|" * (len(widths) - 1))
    return "\n".join(lines)


def _with_share(profile: Profile, stage: str) -> str:
    us = profile.stages[stage].us
    return f"{us:.1f} ({100 * us / profile.whole.us:2.0f} %)"


def write_page(text: str) -> None:
    """Replace the text between the markers of the document."""
    page = PAGE.read_text(encoding="utf-8")
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} lacks its markers: {BEGIN} and {END}")
    PAGE.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")


def figures(profile: Profile) -> dict[str, object]:
    return {
        "sum_us": profile.whole.us,
        "plain_us": profile.plain_us,
        "quotient": profile.quotient,
        "overhead_us_a_call": profile.overhead_us,
        "stages": {stage: each._asdict() for stage, each in profile.stages.items()},
        "functions": {place: each._asdict() for place, each in profile.functions.items()},
    }


def run(options: Sequence[str] = ()) -> None:
    """Print the table, write the figures and, if asked to, the document."""
    parser = argparse.ArgumentParser(prog="python -m bench profile")
    parser.add_argument("--rounds", type=int, default=5, help="of two crawls each (5)")
    webs = (*MANNERS, *FIRST_CONTACTS)
    parser.add_argument("--web", choices=webs, action="append", help="all unless one is given")
    parser.add_argument("--write", action="store_true", help="put it into docs/")
    chosen = parser.parse_args(list(options))
    find_all(PLACES)  # or fail before a web is made
    wanted = chosen.web or webs
    specs = {
        kind: WebSpec.of_kind(kind, hosts=HOSTS, port=PORT) for kind in MANNERS if kind in wanted
    }
    contacts = {kind: spec for kind, spec in FIRST_CONTACTS.items() if kind in wanted}
    profiles = {kind: measure(spec, chosen.rounds) for kind, spec in (specs | contacts).items()}
    parts = []
    if specs:
        parts += [table({kind: profiles[kind] for kind in specs}), least_table(specs)]
    if contacts:
        parts.append(table({kind: profiles[kind] for kind in contacts}, "µs a host of one page"))
    tables = "\n\n".join(parts)
    print(tables)
    unused = set(PLACES)
    for kind, profile in profiles.items():
        print(
            f"{kind}: the stages are {profile.quotient:.3f} of a crawl without timers; "
            f"a timed call cost {profile.overhead_us:.1f} µs, which is taken off above"
        )
        unused -= {place for place, each in profile.functions.items() if each.calls}
    if unused:
        print(f"never called, so perhaps no longer in use: {', '.join(sorted(unused))}")
    all_figures = {kind: figures(profile) for kind, profile in profiles.items()}
    print(f"written to {_figures.write('profile', all_figures)}")
    if any(abs(profile.quotient - 1.0) > TOLERANCE for profile in profiles.values()):
        raise SystemExit(
            "it does not add up: try again on a quieter machine, or with more --rounds"
        )
    if chosen.write:
        write_page(tables)
        print(f"and to {PAGE.name}")
