"""Run a crawl with settings that the command does not offer, for comparison.

    python -m bench._unusual_crawl KIND SEEDS DIRECTORY

usual      what `mannerly crawl` does with the options of `bench.peers`, for reference
impolite   no pace, no breaker, no robots.txt
memory     the state in dictionaries: lost at the end, and without the cost of durability

Prints how many pages were fetched, as JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import virtual.store  # noqa: F401 - it makes crawls in memory known

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.web.choices import ScopeMode
from mannerly.politeness import Settings

UNPACED = Settings(strategy="fixed", max_rate="unlimited")
USUAL = CrawlSettings(
    scope=ScopeMode.ANY, seeding="none", allow_net=("127.0.0.0/8",), politeness=UNPACED
)
IMPOLITE = replace(USUAL, ignore_robots=True, politeness=replace(UNPACED, enabled=False))
CRAWLS = {"usual": USUAL, "impolite": IMPOLITE, "memory": USUAL}


def main(kind: str, seeds: str, directory: str) -> None:
    location = "memory:crawl" if kind == "memory" else Path(directory) / "crawl"
    result = crawl(CRAWLS[kind], Path(seeds).read_text().split(), location)
    print(json.dumps({"fetched": result.stats.fetched}))


if __name__ == "__main__":
    main(*sys.argv[1:])
