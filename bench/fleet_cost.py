"""CPU of the server and of the client for one page: commits of 256 pages with 5 links each.

    python -m bench fleet-cost [--pages 50000] [--batch 256] [--foreign 1]

`--foreign`: how many of the links belong to other shards.
"""

from __future__ import annotations

import argparse
import time

from bench._valkey import crawl_in_server, link
from mannerly.crawler.model import HostRecord
from mannerly.crawler.store.base import Batch
from mannerly.crawler.store.contract import page

LINKS = 5
MOST_SERVER_US = 30.0


def run(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench fleet-cost")
    parser.add_argument("--pages", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--foreign", type=int, default=1)
    options = parser.parse_args(arguments or [])
    shards = 4
    with crawl_in_server(shards) as bench:
        queues = []
        for number, shard in enumerate(bench.shards):
            urls = range(options.pages // shards)
            queue = []
            for start in range(0, len(urls), 500):
                found = [link(number, n) for n in urls[start : start + 500]]
                queue += shard.commit(Batch(found=found)).new
            queues.append(queue)
        batches = []
        for number, queue in enumerate(queues):
            for start in range(0, len(queue), options.batch):
                part = queue[start : start + options.batch]
                batch = Batch(pages=[(entry, page(entry)) for entry in part])
                batch.hosts = [HostRecord(host) for host in {entry.host for entry in part}]
                for entry in part:
                    fresh = link(number, 5_000_000 + entry.seq)
                    batch.found += [fresh] + [link(number, n) for n in range(3 - options.foreign)]
                    other = (number + 1) % shards
                    batch.outgoing += [
                        (other, link(other, 6_000_000 + entry.seq)) for _ in range(options.foreign)
                    ]
                batches.append((number, batch))
        net = [bench.client.info("stats")[f"total_net_{way}_bytes"] for way in ("input", "output")]
        cpu, waited = bench.cpu_s(), bench.crawl.server.busy_s
        began, wall = time.process_time(), time.monotonic()
        for number, batch in batches:
            shard = bench.shards[number]
            shard.commit(batch)
            shard.pass_links(2000)
        client_us = (time.process_time() - began) / options.pages * 1e6
        server_us = (bench.cpu_s() - cpu) / options.pages * 1e6
        stats = bench.client.info("stats")
        sent, got = (
            stats["total_net_input_bytes"] - net[0],
            stats["total_net_output_bytes"] - net[1],
        )
        took_s, busy_s = time.monotonic() - wall, bench.crawl.server.busy_s - waited
    print(
        f"{options.pages:,} pages, {options.batch} a commit, {options.foreign} foreign links each"
    )
    print(f"server CPU   {server_us:6.1f} µs a page   (at most {MOST_SERVER_US:g})")
    print(f"client CPU   {client_us:6.1f} µs a page, records written to a file included")
    sent, got = sent / options.pages, got / options.pages
    print(f"traffic      {sent:6.0f} B to the server, {got:.0f} B back for a page")
    print(f"waiting      {busy_s / took_s:6.0%} of the time of a client that does nothing else")
    assert server_us <= MOST_SERVER_US
