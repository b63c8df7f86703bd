"""A report of a crawl of 100,000 pages with 60 links each: seconds, memory, size of the file.

    python -m bench report [--pages 100000] [--links 60]

The crawl is made through the store, without a server: one page in a hundred is missing, one in
fifty is redirected, all of them link to a menu, to their neighbours and to some missing pages.
Targets: 60 s and 1 GB for 100,000 pages.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.model import Candidate, HostRecord, PageRecord
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, Manifest, ShardOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST = "www.example.org"
HOME = f"https://{HOST}"
AT_ONCE = 2000
BEGAN = 1_790_000_000.0
TARGET_S, TARGET_BYTES = 60.0, 1e9


def path(number: int) -> str:
    return f"/section-{number % 40}/page-{number:06}.html"


def record(number: int) -> PageRecord:
    is_missing, is_moved = number % 100 == 99, number % 50 == 49 and number % 100 != 99
    return PageRecord(
        url=HOME + path(number),
        status=404 if is_missing else 301 if is_moved else 200,
        depth=1 + number % 6,
        parent=f"{HOME}/",
        title=f"Page {number % 90_000} of the handbook, with a title of usual length",
        content_type="text/html; charset=utf-8",
        bytes=20_000 + number % 5000,
        latency_ms=80.0 + number % 900,
        fetched_at=BEGAN + number / 25,
        attempts=1,
        links=60,
        canonical=None,
        redirect_to=HOME + path(number + 1) if is_moved else None,
        error=None,
        host=HOST,
        digest=f"{number % 99_000:032x}",
        total_ms=100.0 + number % 900,
    )


def elements(number: int, links: int, pages: int) -> bytes:
    """What is kept of a page: hrefs with their texts, as a scan finds them."""
    menu = [(f"/menu/{each}", f"Menu entry {each}") for each in range(links // 2)]
    near = [(number + step) % pages for step in range(1, links - links // 2)]
    hrefs = [*menu, *((path(each), f"Chapter {each}, a text") for each in near)]
    return b"utf-8" + "".join(f"\0{href}\0{text}" for href, text in hrefs).encode()


def make(location: Path, pages: int, links: int) -> None:
    manifest = Manifest.new(
        seeds=[f"{HOME}/"],
        settings=msgspec.to_builtins(CrawlSettings(links=True)),
        shards=1,
        created_at=BEGAN,
    )
    options = ShardOptions(frontier_limit=10_000_000)
    with closing(create_crawl(location, manifest)) as crawl, crawl.claim(0, options) as store:
        for start in range(0, pages, AT_ONCE):
            numbers = range(start, min(pages, start + AT_ONCE))
            found = [Candidate(HOME + path(n), HOST, 1, 5, f"{HOME}/") for n in numbers]
            entries = store.commit(Batch(found=found)).new
            store.commit(
                Batch(
                    pages=[(each, record(n)) for each, n in zip(entries, numbers, strict=True)],
                    elements={
                        each.seq: elements(n, links, pages)
                        for each, n in zip(entries, numbers, strict=True)
                    },
                    hosts=[HostRecord(HOST, requests=start, fetched=start, updated_at=BEGAN)],
                    traffic={int(BEGAN + n / 25) // 10: [250, 0] for n in numbers},
                )
            )


def measure(location: Path) -> None:
    """Make the report in this process, and print what it took."""
    from mannerly.crawler.stored import open_crawl
    from mannerly.report import find, write_html
    from mannerly.report.table import write_csv_files

    began = time.monotonic()
    with open_crawl(location) as crawl:
        findings = find(crawl)
        write_html(findings, location.parent / "report.html", location.parent / "csv")
        html_s = time.monotonic() - began
        write_csv_files(findings, location.parent / "csv")
    total_s = time.monotonic() - began
    cpu_s = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = (location.parent / "report.html").stat().st_size
    print(findings.sentence)
    print(
        f"report.html  {html_s:.1f} s, with all CSV files {total_s:.1f} s (at most {TARGET_S:.0f})"
    )
    print(f"processor    {cpu_s:.1f} s")
    print(f"memory       {peak / 1e6:.0f} MB (at most {TARGET_BYTES / 1e6:.0f})")
    print(f"size         {size / 1e6:.1f} MB")


def run(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench report", description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--links", type=int, default=60)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(list(arguments))
    if given.measure:
        measure(given.measure)
        return
    with tempfile.TemporaryDirectory() as place:
        location = Path(place) / "crawl"
        began = time.monotonic()
        make(location, given.pages, given.links)
        took_s = time.monotonic() - began
        print(
            f"{given.pages:,} pages, {given.links} links each: made in {took_s:.0f} s", flush=True
        )
        command = [sys.executable, "-m", "bench", "report", "--measure", str(location)]
        subprocess.run(command, check=True)
