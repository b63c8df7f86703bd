"""How often the owner of a shard asks the server: each exchange is a round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.store.valkey_server import new_location

from mannerly.crawler.model import RobotsRecord
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.store.contract import candidate, enter, new_manifest
from mannerly.crawler.store.valkey.address import parse
from mannerly.crawler.store.valkey.client import ValkeyServer
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SHARDS = 8
OPTIONS = ShardOptions(1000)


class _CountingServer(ValkeyServer):
    exchanges = 0

    def _exchange(self, commands: Iterable[Any], options: Any = None) -> list[Any]:
        self.exchanges += 1
        return super()._exchange(commands, options)


@pytest.fixture
def server() -> _CountingServer:
    return _CountingServer(parse(new_location()))


@pytest.fixture
def crawl(server: _CountingServer, tmp_path: Path) -> Iterator[ValkeyCrawl]:
    crawl = ValkeyCrawl.create(server.address.location, new_manifest(SHARDS), server)
    crawl.keep_in(tmp_path)
    yield crawl
    crawl.close()


def test_a_first_contact_needs_one_exchange(crawl: ValkeyCrawl, server: _CountingServer) -> None:
    """The host's record comes with the robots.txt of its origins; what is new is read again."""
    store = crawl.claim(0, OPTIONS)
    before = server.exchanges

    found: list[object] = [store.host("a.example"), store.robots("https://a.example")]
    found += [store.robots("http://a.example"), store.robots("https://a.example")]
    exchanges = server.exchanges - before
    record = RobotsRecord("https://a.example", 200, b"", 0.0, 9e9)
    store.commit(Batch(robots={"https://a.example": record}))

    assert (found, exchanges) == ([None] * 4, 1)
    assert store.robots("https://a.example") is not None


def test_commits_of_many_shards_are_one_exchange(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    stores = [crawl.claim(number, OPTIONS) for number in range(SHARDS)]
    enter(stores[0], candidate())  # the script is in the server from now on
    before = server.exchanges

    done = crawl.fleet.commit([(store, Batch(found=[candidate("/x")])) for store in stores])

    assert [len(each.new) for each in done] == [1] * SHARDS  # type: ignore[union-attr]
    assert server.exchanges - before == 1


def test_a_commit_tells_whether_there_is_mail(crawl: ValkeyCrawl, server: _CountingServer) -> None:
    """So it is not asked for."""
    store = crawl.claim(0, OPTIONS)
    enter(store, candidate())
    before = server.exchanges

    store.receive(10)

    assert server.exchanges == before
