"""Whatever is done in whatever order, and whatever answer is lost, Valkey and memory agree."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from tests.crawler.store.beside_memory import LIMIT, BesideMemory, fails, shards
from tests.crawler.store.store_crawl import SHARDS, State, state
from tests.crawler.store.valkey_faults import FailingServer
from tests.crawler.store.valkey_server import new_location

from mannerly.crawler.store.base import ShardOptions, ShardStore
from mannerly.crawler.store.contract import new_manifest
from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.address import parse
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl


def comparable(store: ShardStore) -> State:
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

    @rule(shard=shards, fails_at=fails)
    def deliver(self, shard, fails_at) -> None:
        delivered = self.again(self.stored[shard].deliver, fails_at)
        model = self.models[shard].deliver()
        assert delivered == model or fails_at is not None

    @rule(shard=shards, limit=st.integers(1, 4), fails_at=fails)
    def receive(self, shard, limit, fails_at) -> None:
        received = self.again(lambda: self.stored[shard].receive(limit), fails_at)
        assert received == self.models[shard].receive(limit)

    @rule(shard=shards)
    def reopen(self, shard) -> None:
        self.reopened(shard)

    @invariant()
    def they_are_the_same(self) -> None:
        for stored, model in zip(self.stored, self.models, strict=True):
            assert comparable(stored) == comparable(model)
            assert list(stored.traffic()) == list(model.traffic())

    @invariant()
    def readers_see_what_the_owner_knows(self) -> None:
        for shard, stored in enumerate(self.stored):
            stored.save_cursors()
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
