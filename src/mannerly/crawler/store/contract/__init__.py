"""The test suite that every store passes. To run it on yours, subclass it in a test module:

    import pytest
    from mannerly.crawler.store import SCHEMES
    from mannerly.crawler.store.contract import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def location(self, monkeypatch):
            monkeypatch.setitem(SCHEMES, "mine", "my_package.my_module:MyCrawl")
            return "mine:test"

`location` names a place where there is no crawl yet, another one for each test. Everything goes
through `mannerly.crawler.store` and the contracts of `base`, so a store that passes here can be
used by every command. Nothing of this package needs pytest to be imported.

    ShardContract   queue, pages, skipped URLs, hosts, robots.txt
    RetryContract   failed and given-up URLs, and bringing them back
    RecrawlContract a second crawl: records that stay, elements of pages, sitemaps
    LinkContract    links between shards
    ReportContract  checked links, and answers over time
    PayloadContract requests that carry something: identity, labels, what is sent once
    RequisiteContract what pages need to be shown: apart from pages, whatever its URL
    KeptContract    places of answers in segments, extracted items
    CrawlContract   creating, holding, claiming, readers, control records, worker heartbeats
    FleetContract   several runs on one crawl; only for stores that can be shared

A memory of hosts has a suite of its own (`mannerly.hosts.suite`).
"""

from __future__ import annotations

from .again import RecrawlContract
from .crawl import CrawlContract
from .fleet import FleetContract
from .kept import KeptContract
from .links import LinkContract
from .payloads import PayloadContract
from .report import ReportContract
from .requisites import RequisiteContract
from .retry import RetryContract
from .shard import ShardContract
from .values import START, candidate, counts, enter, new_manifest, offer, page

__all__ = [
    "START",
    "CrawlContract",
    "FleetContract",
    "KeptContract",
    "LinkContract",
    "PayloadContract",
    "RecrawlContract",
    "ReportContract",
    "RequisiteContract",
    "RetryContract",
    "ShardContract",
    "StoreContract",
    "candidate",
    "counts",
    "enter",
    "new_manifest",
    "offer",
    "page",
]


class StoreContract(
    ShardContract,
    RetryContract,
    RecrawlContract,
    ReportContract,
    LinkContract,
    PayloadContract,
    RequisiteContract,
    KeptContract,
    CrawlContract,
):
    """The whole suite, but for `FleetContract`."""
