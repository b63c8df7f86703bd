"""Whatever is done in whatever order, and whatever answer is lost, Valkey and memory agree."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.crawler.store.store_crawl import SHARDS, State, state
from tests.crawler.store.test_store_model import LIMIT, hosts, retries, shards, urls
from tests.crawler.store.valkey_faults import FailingServer
from tests.crawler.store.valkey_server import new_location

from mannerly.crawler.store.base import Batch, ShardOptions, ShardStore
from mannerly.crawler.store.contract import START, new_manifest, page
from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.memory import MemoryStore
from mannerly.crawler.store.valkey.address import parse
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl

fails = st.none() | st.integers(0, 7)


def comparable(store: ShardStore) -> State:
    """Positions of records and the order of hosts are each store's own."""
    found = state(store)
    return found._replace(
        pages=[(0, record) for _, record in found.pages],
        hosts=sorted(found.hosts),
        skipped=sorted(found.skipped),
    )


class TwoStores(RuleBasedStateMachine):
    """A crawl of two shards, once in a server and once in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="mannerly-"))
        self.location = new_location()
        created = ValkeyCrawl.create(self.location, new_manifest(SHARDS))
        self.server = FailingServer(parse(self.location))
        self.crawl = ValkeyCrawl(self.server, created.manifest)
        created.close()
        self.crawl.keep_in(self.folder)
        self.stored = [self.claim(shard) for shard in range(SHARDS)]
        self.models = MemoryStore.group(SHARDS, frontier_limit=LIMIT)

    def claim(self, shard: int):
        return self.crawl.claim(shard, ShardOptions(LIMIT))

    def again(self, call, fails_at):
        """Do something, and once more if the connection failed meanwhile."""
        self.server.arm(fails_at)
        try:
            return call()
        except StoreAway:
            return call()
        finally:
            self.server.arm(None)

    @rule(
        shard=shards,
        found=st.lists(urls, max_size=5),
        sent=st.lists(urls, max_size=3),
        records=st.lists(hosts, max_size=1),
        share=st.tuples(st.integers(0, 3), st.integers(0, 2)),
        status=st.sampled_from([200, None]),
        reason=st.sampled_from(["robots", "host_retired: x"]),
        retries=st.lists(retries, max_size=1),
        fails_at=fails,
        late=st.lists(urls, max_size=2),
    )
    def commit(
        self, shard, found, sent, records, share, status, reason, retries, fails_at, late
    ) -> None:
        model = self.models[shard]
        entries = [
            entry
            for host, _ in model.queued_hosts()
            for entry in model.queued(host, after=START, limit=4)
        ]
        fetched, dropped = share
        known = model.counts()
        if (
            sum((known.queued, known.fetched, known.failed, known.given_up, len(found), len(late)))
            > LIMIT
        ):
            retries = []  # some would have to wait, and the two bring them back in another order
        batch = Batch(
            pages=[(entry, page(entry, status=status)) for entry in entries[:fetched]],
            dropped=[(entry, reason) for entry in entries[fetched:][:dropped]],
            found=list(found),
            outgoing=[(1 - shard, url) for url in sent],
            hosts=records,
            retries=retries,
            traffic={1: [2, 1]},
        )
        self.server.arm(fails_at)
        try:
            committed = self.stored[shard].commit(batch)
        except StoreAway:  # more has joined the batch when it is offered again
            batch.found += late
            batch.traffic[1][0] += 1
            committed = self.stored[shard].commit(batch)
        self.server.arm(None)
        assert committed == model.commit(batch)
        self.bring_back(shard, 1 + len(found), fails_at)

    def bring_back(self, shard, limit, fails_at) -> None:
        stored, model = self.stored[shard], self.models[shard]
        back, asked = [], []
        self.server.arm(fails_at)
        while stored.counts().retries:
            try:
                back += stored.bring_back(limit).new
            except StoreAway:
                back += stored.bring_back(limit).new
        self.server.arm(None)
        while model.counts().retries:
            asked += model.bring_back(limit).new
        assert sorted(back) == sorted(asked)

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

    @rule(shard=shards, asked=st.lists(urls, max_size=6))
    def ask(self, shard, asked) -> None:
        names = [url.url for url in asked]
        stored, model = self.stored[shard], self.models[shard]
        assert [stored.find(name) for name in names] == [model.find(name) for name in names]

    @rule(shard=shards)
    def reopen(self, shard) -> None:
        self.stored[shard].close()
        self.stored[shard] = self.claim(shard)

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
