"""Whatever is done in whatever order, the store on disk and the one in memory stay the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import apsw
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.crawler.store.checkup import examine
from tests.crawler.store.store_crawl import SHARDS, create_stores, state
from tests.crawler.store.store_disk import FailingDisk

from mannerly.crawler.control import RetryUrls
from mannerly.crawler.model import HostRecord
from mannerly.crawler.store.base import Batch, ShardOptions, StoreFull
from mannerly.crawler.store.contract import START, candidate, page
from mannerly.crawler.store.memory import MemoryStore
from mannerly.crawler.store.sqlite.shard import SqliteStore

LIMIT = 6
shards = st.integers(0, SHARDS - 1)
urls = st.builds(
    candidate,
    st.integers(0, 12).map("/{}".format),
    st.sampled_from(["a.example", "b.example"]),
    priority=st.integers(0, 2),
    depth=st.integers(0, 3),
)
hosts = st.fixed_dictionaries(
    {
        "host": st.sampled_from(["a.example", "b.example", "c.example"]),
        "adaptive_delay_s": st.floats(0, 60),
        "is_proven": st.booleans(),
        "retired": st.none() | st.just("breaker"),
    }
).map(lambda values: HostRecord(**values))
retries = st.builds(
    RetryUrls,
    failed=st.booleans(),
    given_up=st.booleans(),
    missing=st.booleans(),
    host=st.none() | st.sampled_from(["a.example", "b.example"]),
)


class TwoStores(RuleBasedStateMachine):
    """A crawl of two shards, once on disk and once in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="mannerly-"))
        create_stores(self.directory)
        self.disk = FailingDisk(dies=False, error=apsw.FullError)
        self.stored = [self.open(shard) for shard in range(SHARDS)]
        self.models = MemoryStore.group(SHARDS, frontier_limit=LIMIT)

    def open(self, shard: int) -> SqliteStore:
        return SqliteStore(
            self.directory,
            shard,
            ShardOptions(LIMIT),
            shards=SHARDS,
            carry_over=4,
            vfs=self.disk.name,
        )

    @rule(
        shard=shards,
        found=st.lists(urls, max_size=5),
        sent=st.lists(urls, max_size=3),
        records=st.lists(hosts, max_size=1),
        share=st.tuples(st.integers(0, 3), st.integers(0, 2)),
        status=st.sampled_from([200, None]),
        reason=st.sampled_from(["robots", "host_retired: x"]),
        retries=st.lists(retries, max_size=1),
        fails_at=st.none() | st.integers(0, 8),
    )
    def commit(self, shard, found, sent, records, share, status, reason, retries, fails_at) -> None:
        model = self.models[shard]
        entries = [
            entry
            for host, _ in model.queued_hosts()
            for entry in model.queued(host, after=START, limit=4)
        ]
        fetched, dropped = share
        batch = Batch(
            pages=[(entry, page(entry, status=status)) for entry in entries[:fetched]],
            dropped=[(entry, reason) for entry in entries[fetched:][:dropped]],
            found=found,
            outgoing=[(1 - shard, url) for url in sent],
            hosts=records,
            retries=retries,
        )
        if fails_at is not None:
            self.disk.arm(fails_at)
        try:
            committed = self.stored[shard].commit(batch)
        except StoreFull:
            committed = self.stored[shard].commit(batch)
        self.disk.disarm()
        assert committed == model.commit(batch)
        self.bring_back(shard, 1 + len(found), fails_at)

    def bring_back(self, shard, limit, fails_at) -> None:
        """Do the orders at once: the two cut their slices in different places.

        Whether a URL comes back that is given up after the order is left open.
        """
        stored, model = self.stored[shard], self.models[shard]
        if fails_at is not None:
            self.disk.arm(fails_at)
        back = []
        while stored.counts().retries:
            try:
                back += stored.bring_back(limit).new
            except StoreFull:
                self.disk.disarm()
        self.disk.disarm()
        asked = []
        while model.counts().retries:
            asked += model.bring_back(limit).new
        assert back == asked

    @rule(shard=shards, room=st.integers(0, 4))
    def admit(self, shard, room) -> None:
        assert self.stored[shard].admit_waiting(room) == self.models[shard].admit_waiting(room)

    @rule(shard=shards)
    def deliver(self, shard) -> None:
        assert self.stored[shard].deliver() == self.models[shard].deliver()

    @rule(shard=shards, limit=st.integers(1, 4))
    def receive(self, shard, limit) -> None:
        assert self.stored[shard].receive(limit) == self.models[shard].receive(limit)

    @rule(shard=shards, asked=st.lists(urls, max_size=6))
    def ask(self, shard, asked) -> None:
        names = [url.url for url in asked]
        stored, model = self.stored[shard], self.models[shard]
        assert [stored.find(name) for name in names] == [model.find(name) for name in names]

    @rule(shard=shards)
    @precondition(lambda self: self.disk.operations)
    def reopen(self, shard) -> None:
        self.stored[shard].close()
        self.stored[shard] = self.open(shard)

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
