"""A crawl of the site with planted faults, made once for all tests of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.report.site import FAULTY, Server, served

from mannerly.crawler.crawl import Crawl
from mannerly.crawler.stored import open_crawl
from mannerly.report import Findings, find

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Crawled(NamedTuple):
    """A crawl on disk, and the server that it went to."""

    location: Path
    server: Server
    findings: Findings


def crawl_of(server: Server, location: Path, *, also: str = "", **options: object) -> Path:
    """Crawl a server as fast as it likes, with its links kept, and perhaps another URL."""
    pace = {"start_rate": 100.0, "max_rate": "unlimited"}
    seeds = [f"{server.home}/", *([also] if also else [])]
    with Crawl(seeds, data_dir=location, links=True, **pace, **options) as crawl:  # type: ignore[arg-type]
        crawl.start()
        crawl.wait(60)
    return location


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with served(FAULTY) as server:
        location = crawl_of(server, tmp_path_factory.mktemp("faulty") / "crawl", text_digest="all")
        with open_crawl(location) as crawl:
            yield Crawled(location, server, find(crawl))
