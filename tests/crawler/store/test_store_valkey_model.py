"""Whatever is done in whatever order, and whatever answer is lost, Valkey and memory agree."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from tests.crawler.store.beside_memory import LIMIT, BesideMemory, fails, shards
from tests.crawler.store.store_crawl import SHARDS, State, state
from tests.crawler.store.valkey_faults import FailingServer
from tests.crawler.store.valkey_server import new_location

from mannerly.crawler.store.base import ShardOptions, ShardReader, ShardStore
from mannerly.crawler.store.contract import new_manifest
from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.database.address import parse

if TYPE_CHECKING:
    from mannerly.crawler.model import Entry


def comparable(store: ShardReader) -> State:
    """Positions of records and the order of hosts are each store's own."""
    found = state(store)
    return found._replace(
        pages=[(0, record) for _, record in found.pages],
        hosts=sorted(found.hosts),
        skipped=sorted(found.skipped),
    )


class TwoStores(BesideMemory):
    """A crawl of two shards, once in a server and once in memory."""

    failure = StoreAway
    keeps_order = False

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mannerly-"))
        self.location = new_location()
        created = ValkeyCrawl.create(self.location, new_manifest(SHARDS))
        self.server = FailingServer(parse(self.location))
        self.crawl = ValkeyCrawl(self.server, created.manifest)
        created.close()
        self.crawl.keep_in(self.folder)
        self.told: list[list[Entry]] = [[], []]  # that owners learn of with `pass_links`
        super().__init__()

    def open(self, shard: int) -> ShardStore:
        return self.crawl.claim(shard, ShardOptions(LIMIT))

    def arm(self, fails_at: int | None) -> None:
        self.server.arm(fails_at)

    def again(self, call, fails_at):
        """Do something, and once more if the connection failed meanwhile."""
        self.server.arm(fails_at)
        try:
            return call()
        except StoreAway:
            return call()
        finally:
            self.server.arm(None)

    @rule(shard=shards, room=st.integers(0, 4), fails_at=fails)
    def admit(self, shard, room, fails_at) -> None:
        admitted = self.again(lambda: self.stored[shard].admit_waiting(room), fails_at)
        model = self.models[shard].admit_waiting(room)
        if fails_at is None:
            assert admitted == model

    @rule(shard=shards, limit=st.integers(0, 4), fails_at=fails)
    def pass_links(self, shard, limit, fails_at) -> None:
        passed = self.again(lambda: self.stored[shard].pass_links(limit), fails_at)
        told, count = self.told[shard], len(passed.new)
        assert passed.new == told[:count]
        assert min(limit, len(told)) <= count <= max(limit, len(told) // 2)
        del told[:count]

    @rule(shard=shards)
    def reopen(self, shard) -> None:
        self.reopened(shard)
        self.told[shard].clear()  # it reads its queue

    def committed(self, shard: int) -> None:
        """In a server links are in their shard with the commit."""
        other = 1 - shard
        self.models[shard].deliver()
        self.told[other] += self.models[other].receive(999).new
        self.stored[other].pass_links(0)  # so that it knows its totals

    @invariant()
    def they_are_the_same(self) -> None:
        for shard, (stored, model) in enumerate(zip(self.stored, self.models, strict=True)):
            with self.crawl.read(shard) as reader:
                assert comparable(reader) == comparable(model)
            assert list(stored.traffic()) == list(model.traffic())

    @invariant()
    def readers_see_what_the_owner_knows(self) -> None:
        for shard, stored in enumerate(self.stored):
            with self.crawl.read(shard) as reader:
                assert reader.counts() == stored.counts()

    def teardown(self) -> None:
        self.crawl.close()
        try:
            assert ValkeyCrawl.examine(self.location) == []
        finally:
            ValkeyCrawl.wipe(self.location)
            shutil.rmtree(self.folder)


TestTwoStores = TwoStores.TestCase
TestTwoStores.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
