"""Bytes of a known and of a queued URL in a Valkey server, and of one process that works on them.

python -m bench fleet-memory [--known 5000000] [--queued 1000000] [--shards 256]
"""

from __future__ import annotations

import argparse
import resource

from bench._valkey import commit, crawl_in_server, link
from mannerly.crawler.store.base import Batch

BATCH = 500
MOST_KNOWN, MOST_QUEUED = 12.0, 80.0  # bytes


def run(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench fleet-memory")
    parser.add_argument("--known", type=int, default=1_000_000, help="URLs that left the queue")
    parser.add_argument("--queued", type=int, default=200_000)
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
    print(f"{options.known:,} known, {options.queued:,} queued, {options.shards} shards")
    print(f"a known URL        {known:6.1f} B   (at most {MOST_KNOWN:g})")
    print(f"a queued URL       {queued:6.1f} B   (at most {MOST_QUEUED:g}; known included)")
    print(f"this process grew  {grown / 1024:6.1f} MB while URLs were queued")
    assert known <= MOST_KNOWN
    assert queued <= MOST_QUEUED
