"""Bytes of a known, a queued and a fetched URL in a Valkey server, and of one process with them.

python -m bench fleet-memory [--known 5000000] [--queued 1000000] [--fetched 200000] [--shards 256]
"""

from __future__ import annotations

import argparse
import resource

from bench._valkey import commit, crawl_in_server, link
from mannerly.crawler.store.base import Batch
from mannerly.crawler.store.contract import page

BATCH = 500
PAGES = 40
MOST_KNOWN, MOST_QUEUED = 12.0, 80.0  # bytes


def run(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench fleet-memory")
    parser.add_argument("--known", type=int, default=1_000_000, help="URLs that left the queue")
    parser.add_argument("--queued", type=int, default=200_000)
    parser.add_argument("--fetched", type=int, default=200_000, help="pages with a record")
    parser.add_argument("--shards", type=int, default=256)
    options = parser.parse_args(arguments or [])
    with crawl_in_server(options.shards) as bench:
        began = bench.memory()
        for number, shard in enumerate(bench.shards):
            each = options.known // options.shards
            for start in range(0, each, BATCH):
                urls = range(start, min(each, start + BATCH))
                entered = commit(shard, Batch(found=[link(number, n) for n in urls])).new
                commit(shard, Batch(dropped=[(entry, "robots") for entry in entered]))
        known = (bench.memory() - began) / options.known
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = bench.memory()
        for number, shard in enumerate(bench.shards):
            each = options.queued // options.shards
            for start in range(0, each, BATCH):
                urls = range(10_000_000 + start, 10_000_000 + min(each, start + BATCH))
                commit(shard, Batch(found=[link(number, n) for n in urls]))
        queued = (bench.memory() - before) / options.queued
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident
        before = bench.memory()
        for number, shard in enumerate(bench.shards):
            each = options.fetched // options.shards
            for start in range(0, each, PAGES):
                urls = range(20_000_000 + start, 20_000_000 + min(each, start + PAGES))
                entered = commit(shard, Batch(found=[link(number, n) for n in urls])).new
                commit(shard, Batch(pages=[(entry, page(entry)) for entry in entered]))
        fetched = (bench.memory() - before) / options.fetched - known
        fetched_by = f"{PAGES} pages a commit; known not included"
    print(
        f"{options.known:,} known, {options.queued:,} queued, {options.fetched:,} fetched, "
        f"{options.shards} shards"
    )
    print(f"a known URL        {known:6.1f} B   (at most {MOST_KNOWN:g})")
    print(f"a queued URL       {queued:6.1f} B   (at most {MOST_QUEUED:g}; known included)")
    print(f"a fetched page     {fetched:6.1f} B   ({fetched_by})")
    print(f"this process grew  {grown / 1024:6.1f} MB while URLs were queued")
    assert known <= MOST_KNOWN
    assert queued <= MOST_QUEUED
