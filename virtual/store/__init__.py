"""Crawls in this process: `memory:NAME`, and `memory+shared:NAME` for several members.

    memory, memory_reader   a shard in plain dictionaries
    memory_crawl            a whole crawl of such shards
    memory_fleet            a crawl that several members share, with leases by a clock of the test

They pass the contract of stores, and are the model that the stores on disk and in a server are
compared with. Importing this package makes their locations known.
"""

from __future__ import annotations

from mannerly.crawler.store import SCHEMES

SCHEMES |= {
    "memory": "virtual.store.memory_crawl:MemoryCrawl",
    "memory+shared": "virtual.store.memory_fleet:SharedMemoryCrawl",
}
