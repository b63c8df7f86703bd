"""Measure large crawls: the time to resume one, and its memory, which must not grow with it.

    python -m bench scale                all three, about ten minutes
    python -m bench scale --only resume  (or queued, or flat)

resume   1,000,000 known URLs, 100,000 of them queued over 1,000 hosts: seconds from the start of
         the process to the first request at a server. This includes the delay that a host is
         given after a crash (its usual delay, here one second).
queued   5,000,000 queued URLs over 1,000 hosts: resident memory of all processes while they crawl.
flat     one site of 200,000 pages, crawled completely without delays: resident memory meanwhile.

Crawls are processes of their own, servers are real ones on 127.0.0.0/8, and everything is in a
temporary directory that is removed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Candidate
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, Manifest, ShardOptions
from mannerly.crawler.web.priority import priority
from mannerly.demo import DemoWeb, plain_sites
from mannerly.demo.pages import path_of
from mannerly.politeness import Settings

from .store import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import ShardStore

HOSTS = 1000
KNOWN = 1_000_000
KNOWN_QUEUED = 100_000
QUEUED = 5_000_000
SITE_PAGES = 200_000
REPORT_EVERY = 20_000
BATCH = 10_000
CRAWL_S = 15.0

LOOPBACK = ("127.0.0.0/8",)
RESUME = CrawlSettings(duration_s=CRAWL_S, allow_net=LOOPBACK, seeding="none")
CROWDED = CrawlSettings(
    duration_s=CRAWL_S, allow_net=LOOPBACK, seeding="none", processes=2, frontier_limit=2 * QUEUED
)
UNPACED = Settings(strategy="fixed", max_rate="unlimited", min_delay_s=0.0, max_concurrency=64)
FLAT = CrawlSettings(politeness=UNPACED, allow_net=LOOPBACK, seeding="none")
CRAWLS = {"resume": RESUME, "queued": CROWDED, "flat": FLAT}


# ---------------------------------------------------------------------- a crawl in a process


def child(name: str, directory: str, *seeds: str) -> None:
    """Crawl, and print the resident memory of this process every so many pages."""
    reported = 0

    def watch(stats: Stats, elapsed_s: float) -> None:
        nonlocal reported
        if stats.fetched >= reported + REPORT_EVERY:
            reported += REPORT_EVERY
            print(stats.fetched, elapsed_s, resident_mb("self"), flush=True)

    crawl(CRAWLS[name], seeds, Path(directory), watch=watch)


def started(name: str, directory: Path, *seeds: str) -> subprocess.Popen[str]:
    words = repr((name, str(directory), *seeds))
    command = [sys.executable, "-c", f"from bench.scale import child; child(*{words})"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def resident_mb(process: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0  # it is ending


def family_mb(pid: int) -> float:
    """Resident memory of a process and its children."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        children = listed.read_text().split()
        return resident_mb(str(pid)) + sum(map(resident_mb, children))
    except (FileNotFoundError, ProcessLookupError):  # it is ending
        return 0.0


# ---------------------------------------------------------------------- a crawl made by hand


def candidates(hosts: Sequence[str], count: int) -> Iterator[Candidate]:
    """URLs of all hosts in turn, as a broad crawl meets them; every one can be fetched."""
    for number in range(count):
        host, page = hosts[number % len(hosts)], number // len(hosts)
        parent = f"http://{host}/"
        yield Candidate(f"http://{host}{path_of(page)}", host, 3, priority(3), parent)


def build(name: str, path: Path, hosts: Sequence[str], *, known: int, queued: int) -> None:
    """Make the directory of a crawl that knows that many URLs and has fetched all but `queued`."""
    settings = CRAWLS[name]
    manifest = Manifest.new(
        seeds=[f"http://{host}/" for host in hosts],
        settings=msgspec.to_builtins(settings),
        shards=settings.processes,
        created_at=time.time(),
    )
    sharding = Sharding(manifest.shards)
    crawl = create_crawl(path, manifest)
    for number in range(manifest.shards):
        mine = [host for host in hosts if sharding.shard_of(host) == number]
        store = crawl.claim(number, ShardOptions(settings.frontier_limit))
        share = len(mine) / len(hosts)
        fill(store, candidates(mine, int(known * share)), to_fetch=int((known - queued) * share))
    crawl.close()


def fill(store: ShardStore, urls: Iterator[Candidate], *, to_fetch: int) -> None:
    while found := [candidate for _, candidate in zip(range(BATCH), urls, strict=False)]:
        new = store.commit(Batch(found=found)).new
        done = new[: max(0, to_fetch)]
        to_fetch -= len(done)
        if done:
            store.commit(Batch(pages=[(entry, record(entry)) for entry in done]))


# ---------------------------------------------------------------------- the three figures


def resume() -> None:
    with DemoWeb(plain_sites(HOSTS, pages=KNOWN // HOSTS)) as web, temporary() as directory:
        build("resume", directory / "crawl", web.hosts, known=KNOWN, queued=KNOWN_QUEUED)
        began = time.monotonic()
        process = started("resume", directory / "crawl")
        process.communicate()
        records = web.log()
        first_s = records[0].t - began
        print(f"{KNOWN:,} known URLs, {KNOWN_QUEUED:,} queued, {HOSTS:,} hosts")
        print(f"  first request after {first_s:5.2f} s (target ≤ 5)")
        print(f"  {len(records):,} requests in {CRAWL_S:g} s")


def queued() -> None:
    sites = plain_sites(HOSTS, pages=QUEUED // HOSTS)
    with DemoWeb(sites) as web, temporary() as directory:
        build("queued", directory / "crawl", web.hosts, known=QUEUED, queued=QUEUED)
        process = started("queued", directory / "crawl")
        most_mb = 0.0
        while process.poll() is None:
            most_mb = max(most_mb, family_mb(process.pid))
            time.sleep(0.2)
        process.communicate()
        print(f"{QUEUED:,} queued URLs, {HOSTS:,} hosts, {CROWDED.processes} processes")
        print(f"  most resident memory of all processes {most_mb:5.0f} MB (target < 500)")
        print(f"  {len(web.log()):,} requests in {CRAWL_S:g} s")


def flat() -> None:
    with DemoWeb(plain_sites(1, pages=SITE_PAGES)) as web, temporary() as directory:
        process = started("flat", directory / "crawl", *web.seeds())
        assert process.stdout is not None
        print(f"a site of {SITE_PAGES:,} pages\n{'pages':>12}{'pages/s':>12}{'MB':>12}")
        for line in process.stdout:
            pages, elapsed_s, memory_mb = map(float, line.split())
            print(f"{pages:>12,.0f}{pages / elapsed_s:>12,.0f}{memory_mb:>12,.0f}", flush=True)
        process.wait()


def temporary() -> _Temporary:
    return _Temporary(prefix="mannerly-bench-")


class _Temporary(TemporaryDirectory[str]):
    """A temporary directory as a path."""

    def __enter__(self) -> Path:  # type: ignore[override]
        return Path(super().__enter__())


FIGURES: dict[str, Callable[[], None]] = {"resume": resume, "queued": queued, "flat": flat}


def run(options: Sequence[str] = ()) -> None:
    """Print all three figures, or one."""
    parser = ArgumentParser(prog="python -m bench scale")
    parser.add_argument("--only", choices=tuple(FIGURES))
    only = parser.parse_args(list(options)).only
    for name, figure in FIGURES.items():
        if only in (None, name):
            figure()


if __name__ == "__main__":
    run(sys.argv[1:])
