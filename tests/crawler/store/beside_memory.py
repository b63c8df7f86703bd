"""The rules of state machines that compare a store with the one in memory, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from tests.crawler.store.store_crawl import SHARDS
from virtual.store.memory import MemoryStore

from mannerly.crawler.control import RetryUrls
from mannerly.crawler.model import HostRecord
from mannerly.crawler.store.base import Batch, StoreError
from mannerly.crawler.store.contract import START, candidate, page

if TYPE_CHECKING:
    from mannerly.crawler.store.base import ShardStore

LIMIT = 6
shards = st.integers(0, SHARDS - 1)
fails = st.none() | st.integers(0, 8)
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


class BesideMemory(RuleBasedStateMachine):
    """A crawl of two shards, in a store that fails now and then (`arm`), and in memory."""

    failure: ClassVar[type[StoreError]]
    keeps_order: ClassVar[bool]  # whether URLs that wait come back in the order of the model

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[ShardStore] = [self.open(shard) for shard in range(SHARDS)]
        self.models = MemoryStore.group(SHARDS, frontier_limit=LIMIT)

    def open(self, shard: int) -> ShardStore:
        """Open a shard of the store."""
        raise NotImplementedError

    def arm(self, fails_at: int | None) -> None:
        """Let one of the next operations of the store fail; None: no more."""
        raise NotImplementedError

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
        stored, model = self.stored[shard], self.models[shard]
        entries = [
            entry
            for host, _ in model.queued_hosts()
            for entry in model.queued(host, after=START, limit=4)
        ]
        fetched, dropped = share
        known = model.counts()
        # Without `keeps_order` the same URLs come back, but failed ones first, then those that
        # were given up, then missing ones; in memory by number. So if not all of them fit into
        # the queue, others wait: such orders are left out.
        may_return = (known.fetched, known.failed, known.given_up)
        most = sum((known.queued, *may_return, len(found), len(late)))
        batch = Batch(
            pages=[(entry, page(entry, status=status)) for entry in entries[:fetched]],
            dropped=[(entry, reason) for entry in entries[fetched:][:dropped]],
            found=list(found),
            outgoing=[(1 - shard, url) for url in sent],
            hosts=records,
            retries=retries if self.keeps_order or most <= LIMIT else [],
            traffic={1: [2, 1]},
            elements={each.seq: b"%d %d" % (each.seq, len(found)) for each in entries[:fetched]},
        )
        self.arm(fails_at)
        try:
            committed = stored.commit(batch)
        except self.failure:  # more has joined the batch when it is offered again
            batch.found += late
            batch.traffic[1][0] += 1
            committed = stored.commit(batch)
        self.arm(None)
        assert committed == model.commit(batch)
        self.committed(shard)
        self.bring_back(shard, 1 + len(found), fails_at)

    def committed(self, shard: int) -> None:
        """Both have a batch of a shard."""

    def bring_back(self, shard, limit, fails_at) -> None:
        """Do the orders at once: the two cut their slices in different places.

        Whether a URL comes back that is given up after the order is left open.
        """
        stored, model = self.stored[shard], self.models[shard]
        back, asked = [], []
        self.arm(fails_at)
        while stored.counts().retries:
            try:
                back += stored.bring_back(limit).new
            except self.failure:
                self.arm(None)
        self.arm(None)
        while model.counts().retries:
            asked += model.bring_back(limit).new
        if not self.keeps_order:
            back, asked = sorted(back), sorted(asked)
        assert back == asked

    @rule(shard=shards, asked=st.lists(urls, max_size=6))
    def ask(self, shard, asked) -> None:
        names = [url.url for url in asked]
        stored, model = self.stored[shard], self.models[shard]
        assert [stored.find(name) for name in names] == [model.find(name) for name in names]

    def reopened(self, shard: int) -> None:
        """Close a shard and open it again."""
        self.stored[shard].close()
        self.stored[shard] = self.open(shard)
