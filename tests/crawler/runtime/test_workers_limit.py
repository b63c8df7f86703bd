"""The limit of requests in flight over all hosts of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.test_parse_limit import Time
from tests.crawler.shard.shard_world import ShardWorld, brisk
from virtual.fetcher import FakeFetcher, FakeReply

from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.engine import Engine

if TYPE_CHECKING:
    from mannerly.crawler.fetch.base import Request

HOSTS = [f"https://h{number}.example/" for number in range(20)]


@pytest.mark.parametrize("workers", [1, 5, 20])
def test_no_more_requests_are_under_way_than_workers(workers: int) -> None:
    """Twenty hosts are due at once, and as many requests leave as there are workers."""
    time, asked = Time(), list[str]()

    def reply(request: Request) -> FakeReply:
        asked.append(request.url)
        return FakeReply(body=b"here")

    world = ShardWorld(*HOSTS, settings=brisk(ignore_robots=True))
    fetcher = FakeFetcher(time.clock, reply)
    engine = Engine(fetcher, [world.shard], time, PageBudget(None), concurrency=workers)

    engine.turn()
    at_once = len(asked)
    for _ in range(200):
        engine.turn()
    fetcher.close()

    assert at_once == workers
    assert sorted(asked) == sorted(HOSTS)
