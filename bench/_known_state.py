"""Make the directory of a crawl with a large state: a million fetched pages on 100,000 hosts.

These hosts do not exist and none of their pages is queued. So a crawl in this directory fetches
only new pages, while every look-up, commit and filter has to handle the large state.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.model import Candidate
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Manifest, ShardOptions

from ._unusual_crawl import USUAL
from .scale import fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

KNOWN = 1_000_000
HOSTS = 100_000


def candidates() -> Iterator[Candidate]:
    for number in range(KNOWN):
        host, page = f"www.site-{number % HOSTS}.example", number // HOSTS
        url = f"https://{host}/section/{page % 7}/some-article-title-{page}.html"
        yield Candidate(url, host, 3, 3, f"https://{host}/")


def make_known(path: Path, seeds: Sequence[str]) -> None:
    """Make a crawl that has fetched everything but its seeds."""
    manifest = Manifest.new(
        seeds=list(seeds), settings=msgspec.to_builtins(USUAL), shards=1, created_at=time.time()
    )
    crawl = create_crawl(path, manifest)
    fill(crawl.claim(0, ShardOptions(USUAL.frontier_limit)), candidates(), to_fetch=KNOWN)
    crawl.close()
