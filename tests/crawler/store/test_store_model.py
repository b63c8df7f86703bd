"""Whatever is done in whatever order, the store on disk and the one in memory stay the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import apsw
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from tests.crawler.store.beside_memory import LIMIT, BesideMemory, shards
from tests.crawler.store.checkup import examine
from tests.crawler.store.store_crawl import SHARDS, create_stores, state
from tests.crawler.store.store_disk import FailingDisk

from mannerly.crawler.store.base import ShardOptions, StoreFull
from mannerly.crawler.store.sqlite.shard import SqliteStore


class TwoStores(BesideMemory):
    """A crawl of two shards, once on disk and once in memory."""

    failure = StoreFull
    keeps_order = True

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="mannerly-"))
        create_stores(self.directory)
        self.disk = FailingDisk(dies=False, error=apsw.FullError)
        super().__init__()

    def open(self, shard: int) -> SqliteStore:
        return SqliteStore(
            self.directory,
            shard,
            ShardOptions(LIMIT),
            shards=SHARDS,
            carry_over=4,
            vfs=self.disk.name,
        )

    def arm(self, fails_at: int | None) -> None:
        if fails_at is None:
            self.disk.disarm()
        else:
            self.disk.arm(fails_at)

    @rule(shard=shards, room=st.integers(0, 4))
    def admit(self, shard, room) -> None:
        assert self.stored[shard].admit_waiting(room) == self.models[shard].admit_waiting(room)

    @rule(shard=shards)
    def deliver(self, shard) -> None:
        assert self.stored[shard].deliver() == self.models[shard].deliver()

    @rule(shard=shards, limit=st.integers(1, 4))
    def receive(self, shard, limit) -> None:
        assert self.stored[shard].receive(limit) == self.models[shard].receive(limit)

    @rule(shard=shards)
    @precondition(lambda self: self.disk.operations)
    def reopen(self, shard) -> None:
        self.reopened(shard)

    @invariant()
    def they_are_the_same(self) -> None:
        for stored, model in zip(self.stored, self.models, strict=True):
            assert state(stored) == state(model)

    def teardown(self) -> None:
        for store in self.stored:
            store.close()
        try:
            assert [examine(self.directory, shard) for shard in range(SHARDS)] == [[], []]
        finally:
            shutil.rmtree(self.directory)


TestTwoStores = TwoStores.TestCase
TestTwoStores.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
