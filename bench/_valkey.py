"""A server and a crawl in it, for benchmarks."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.crawler.store.valkey_server import LocalServer

from mannerly.crawler.model import Candidate
from mannerly.crawler.store.base import Manifest, ShardOptions
from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.store.base import Batch, Committed
    from mannerly.crawler.store.valkey.shard import ValkeyShard

HOSTS = 8  # of a shard


class Bench(NamedTuple):
    crawl: ValkeyCrawl
    shards: list[ValkeyShard]
    client: object

    def memory(self) -> int:
        return self.client.info("memory")["used_memory"]

    def cpu_s(self) -> float:
        spent = self.client.info("cpu")
        return spent["used_cpu_user"] + spent["used_cpu_sys"]


@contextmanager
def crawl_in_server(shards: int) -> Iterator[Bench]:
    manifest = Manifest.new(seeds=[], settings={}, shards=shards, created_at=0.0)
    with (
        LocalServer() as server,
        server.client() as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        crawl = ValkeyCrawl.create(f"{server.url}#bench", manifest)
        crawl.keep_in(Path(folder))
        try:
            options = ShardOptions(100_000_000)
            yield Bench(crawl, [crawl.claim(n, options) for n in range(shards)], client)
        finally:
            crawl.close()


def commit(shard: ValkeyShard, batch: Batch) -> Committed:
    """Commit, and again if the server did not answer in time: the machine may be busy."""
    while True:
        try:
            return shard.commit(batch)
        except StoreAway:
            continue


def link(shard: int, number: int) -> Candidate:
    """Return a link such as sites have: 34 characters of path, found on a page of its folder."""
    host = f"www.site-{shard}-{number % HOSTS}.example"
    folder = f"https://{host}/articles/2026/{number % 12 + 1:02}"
    url = f"{folder}/item-{number:08}.html"
    return Candidate(url, host, 3, 4 * 64 + 29, f"{folder}/page-{number // 40:06}.html")
