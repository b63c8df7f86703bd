"""Measure the store: per page, per URL, and at a restart; SQLite next to plain memory.

    python -m bench store

A generated crawl: 50 active hosts of 1,000, batches of 150 pages, each page with 2 new URLs and 10
known ones that the filter in front of the store was not sure about: half of them from a menu of 30
that all pages of the host share, half from anywhere on it. "90 % known" are batches of 10,000 links
drawn from all thousand hosts, which is the worst case for an index on disk. Wall time includes the
disk; CPU time is the share of a core. Everything is in a temporary directory that is removed.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from virtual.store.memory import MemoryStore

from mannerly.crawler.model import Candidate, Entry, HostRecord, PageRecord
from mannerly.crawler.store.base import Batch, ShardOptions, ShardStore
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOSTS = 1000
ACTIVE_HOSTS = 50
KNOWN_URLS = 1_000_000
OFFER = 10_000
BATCHES = 300
PAGES_A_BATCH = 150
NEW_A_PAGE = 2
DOUBTFUL_A_PAGE = 10
MENU = 30
LIMIT = 5_000_000


class Cost(NamedTuple):
    """Wall and CPU seconds of a piece of work."""

    wall_s: float
    cpu_s: float

    def each_us(self, count: int) -> str:
        return f"{self.wall_s / count * 1e6:8.1f} µs wall {self.cpu_s / count * 1e6:8.1f} µs CPU"


def measured(work: Callable[[], object]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def candidate(number: int) -> Candidate:
    """URLs in the order in which a crawl of many sites meets them."""
    host, page = f"www.site-{number % HOSTS}.example", number // HOSTS
    url = f"https://{host}/section/{page % 37}/some-article-title-{page}.html"
    return Candidate(url, host, 3, 3, f"https://{host}/section/{page % 37}/")


def record(entry: Entry) -> PageRecord:
    return PageRecord(
        url=entry.url,
        status=200,
        depth=entry.depth,
        parent=entry.parent,
        title="Some article title, as long as titles are",
        content_type="text/html; charset=utf-8",
        bytes=45_000,
        latency_ms=123.4,
        fetched_at=1.8e9,
        attempts=1,
        links=90,
        canonical=None,
        redirect_to=None,
        error=None,
        host=entry.host,
        digest=f"{entry.seq:032x}",
    )


def load(store: ShardStore) -> None:
    """A million URLs, ten thousand at a time."""
    for first in range(0, KNOWN_URLS, OFFER):
        store.commit(Batch(found=[candidate(number) for number in range(first, first + OFFER)]))


def batches(store: ShardStore) -> Iterator[Batch]:
    """Return the batches that a crawl of the active hosts commits."""
    rng = random.Random(7)
    fresh = KNOWN_URLS // HOSTS
    for _ in range(BATCHES):
        batch = Batch()
        share = PAGES_A_BATCH // ACTIVE_HOSTS
        for host in range(ACTIVE_HOSTS):
            name = f"www.site-{host}.example"
            entries = store.queued(name, after=(-1, -1), limit=share)
            batch.pages += [(entry, record(entry)) for entry in entries]
            batch.hosts.append(HostRecord(host=name, adaptive_delay_s=0.5, updated_at=1.8e9))
            for page in range(share * NEW_A_PAGE):
                batch.found.append(candidate((fresh + page) * HOSTS + host))
            for link in range(share * DOUBTFUL_A_PAGE):
                page = rng.randrange(MENU if link % 2 else fresh)
                batch.found.append(candidate(page * HOSTS + host))
        fresh += share * NEW_A_PAGE
        yield batch


def crawl(store: ShardStore) -> Cost:
    """Return the time of the commits, without making the batches."""
    wall = cpu = 0.0
    for batch in batches(store):
        cost = measured(lambda batch=batch: store.commit(batch))  # type: ignore[misc]
        wall, cpu = wall + cost.wall_s, cpu + cost.cpu_s
    return Cost(wall, cpu)


def offers(store: ShardStore) -> Cost:
    """Big batches of links of which nine in ten are known."""
    rng = random.Random(9)
    start = 2 * KNOWN_URLS
    wall = cpu = 0.0
    for first in range(start, start + 20 * OFFER // 10, OFFER // 10):
        batch = Batch(found=[candidate(first + number) for number in range(OFFER // 10)])
        batch.found += [candidate(rng.randrange(KNOWN_URLS)) for _ in range(OFFER * 9 // 10)]
        cost = measured(lambda batch=batch: store.commit(batch))  # type: ignore[misc]
        wall, cpu = wall + cost.wall_s, cpu + cost.cpu_s
    return Cost(wall, cpu)


def measure(name: str, store: ShardStore) -> Cost:
    loading = measured(lambda: load(store))
    pages = crawl(store)
    offered = offers(store)
    print(f"{name:<8} a new URL, loading     {loading.each_us(KNOWN_URLS)}")
    print(f"{name:<8} a page                 {pages.each_us(BATCHES * PAGES_A_BATCH)}")
    print(f"{name:<8} a URL, 90 % known      {offered.each_us(20 * OFFER)}")
    print(f"{name:<8} URLs offered a second  {20 * OFFER / offered.wall_s:>8,.0f}")
    return pages


def restart(directory: Path) -> None:
    """Open, read the totals, every host and its first window, and every URL for the filter."""

    def ready() -> None:
        for host, _ in store.queued_hosts():
            store.queued(host, after=(-1, -1), limit=16)
        store.counts()

    opening = time.perf_counter()
    store = SqliteStore(directory, 0, ShardOptions(LIMIT), shards=1)
    opened_s = time.perf_counter() - opening
    print(f"restart  open {opened_s:.3f} s", end="")
    print(f", windows of all hosts {measured(ready).wall_s:.3f} s", end="")
    print(f", all URLs {measured(lambda: sum(1 for _ in store.urls())).wall_s:.3f} s")
    store.close()


def run() -> None:
    """Measure both stores and print a table."""
    with TemporaryDirectory(prefix="mannerly-bench-") as name:
        directory = Path(name)
        create_shard(directory, 0, shards=1)
        store = SqliteStore(directory, 0, ShardOptions(LIMIT), shards=1)
        on_disk = measure("SQLite", store)
        store.close()
        restart(directory)
        size = sum(file.stat().st_size for file in directory.iterdir())
        print(f"on disk  {size / (1 << 20):,.0f} MB")
    in_memory = measure("memory", MemoryStore(frontier_limit=LIMIT))
    print(f"SQLite takes {on_disk.cpu_s / in_memory.cpu_s:.1f} × the CPU time of memory a page")


if __name__ == "__main__":
    run()
