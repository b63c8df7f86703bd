"""Crawls that the command does not offer, for comparison with the one it does.

    python -m bench._unusual_crawl KIND SEEDS DIRECTORY

usual      what `mannerly crawl` does with the options of `bench.peers`, for reference
impolite   no pace, no breaker, no robots.txt
memory     the state in dictionaries: gone at the end, and with it what durability costs

Prints how many pages were fetched, as JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from mannerly.crawler.runtime import worker
from mannerly.crawler.runtime.run import crawl
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store.memory import MemoryStore
from mannerly.crawler.web.scope import ScopeMode
from mannerly.politeness import Settings

UNPACED = Settings(strategy="fixed", max_rate="unlimited")
USUAL = CrawlSettings(
    scope=ScopeMode.ANY, seeding="none", allow_net=("127.0.0.0/8",), politeness=UNPACED
)
IMPOLITE = replace(USUAL, ignore_robots=True, politeness=replace(UNPACED, enabled=False))
CRAWLS = {"usual": USUAL, "impolite": IMPOLITE, "memory": USUAL}


class Forgetful:
    """Opens dictionaries where the crawl asks for a file."""

    @staticmethod
    def open(
        _path: Path,
        number: int,
        *,
        shards: int,  # noqa: ARG004 - one, always
        frontier_limit: int,
        durable: bool,  # noqa: ARG004 - never
        check_limit: int,  # noqa: ARG004 - dictionaries are asked one by one
    ) -> MemoryStore:
        return MemoryStore(number, frontier_limit=frontier_limit)


def main(kind: str, seeds: str, directory: str) -> None:
    # The crawl takes no store from outside: nobody but this comparison wants another one.
    store = Forgetful if kind == "memory" else worker.SqliteStore
    urls = Path(seeds).read_text().split()
    with patch.object(worker, "SqliteStore", store):
        result = crawl(CRAWLS[kind], urls, Path(directory) / "crawl")
    print(json.dumps({"fetched": result.stats.fetched}))


if __name__ == "__main__":
    main(*sys.argv[1:])
