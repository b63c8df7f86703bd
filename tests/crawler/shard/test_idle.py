"""A crawl is finished when nothing is queued, under way, or on its way to another shard."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from tests.crawler.runtime.test_manners import Timepiece
from tests.crawler.shard.shard_world import EPOCH_S, brisk

from mannerly.crawler.fetch.fake import FakeFetcher, FakeReply, VirtualClock
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Candidate, Now
from mannerly.crawler.page.rules import LinkRules
from mannerly.crawler.runtime.budget import LocalBudget
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.runtime.worker import Worker
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, Manifest, ShardOptions
from mannerly.crawler.store.memory import MemoryStore
from mannerly.crawler.web.seeds import seed_candidates

if TYPE_CHECKING:
    from pathlib import Path

SHARDING = Sharding(2)
HERE, THERE = (
    next(
        host
        for host in (f"{letter}.example" for letter in "abcdefgh")
        if SHARDING.shard_of(host) == number
    )
    for number in (0, 1)
)
PAGE = f"<a href=http://{THERE}/linked>".encode()


def two_shards() -> tuple[list[Shard], list[MemoryStore]]:
    settings = brisk(ignore_robots=True)
    stores = MemoryStore.group(2, frontier_limit=99)
    rules = LinkRules(settings.scope_of([f"http://{HERE}/"]), settings.agent_token, 5)
    shards = [
        Shard(
            store.shard, store, SHARDING, settings, rules, is_resumed=False, now=Now(0.0, EPOCH_S)
        )
        for store in stores
    ]
    return shards, stores


def crawl_home(shards: list[Shard]) -> Engine:
    """Fetch the page of the first shard, which links to the second, and commit it."""
    shards[0].offer(seed_candidates([f"http://{HERE}/"]))
    fetcher = FakeFetcher(
        VirtualClock(), lambda _: FakeReply(200, PAGE, {"content-type": "text/html"})
    )
    clock = Timepiece(fetcher.clock)
    engine = Engine(fetcher, shards[:1], clock, LocalBudget(None), workers=4, tick_s=1e9)
    engine.commit()
    while shards[0].store.counts().queued:
        engine.turn()
    return engine


def test_a_shard_with_links_to_deliver_is_not_idle() -> None:
    """They are in its outbox: nothing is queued here, and the crawl is not finished."""
    shards, _ = two_shards()
    shards[0].offer(seed_candidates([f"http://{THERE}/seed"]))
    shards[0].commit(Now(0.0, EPOCH_S))

    counts = shards[0].store.counts()
    before = shards[0].is_idle
    shards[0].tick(Now(1.0, EPOCH_S + 1.0))

    assert (counts.queued, counts.outgoing) == (0, 1)
    assert not before
    assert shards[0].is_idle


def test_a_link_between_two_shards_is_always_somewhere() -> None:
    """In the outbox of one, then unread in the inbox of the other, then in its queue."""
    shards, stores = two_shards()
    crawl_home(shards)
    somewhere = []

    for step in (lambda: None, stores[0].deliver, lambda: shards[1].tick(NOW)):
        step()
        somewhere.append((not shards[0].is_idle, stores[1].has_unread, not shards[1].is_idle))

    assert somewhere[-1] == (False, False, True)
    assert all(any(places) for places in somewhere)


def test_a_worker_with_an_unread_inbox_is_not_idle(tmp_path: Path) -> None:
    """A link that another process has delivered is work, although this one has not looked yet."""
    manifest = Manifest.new(seeds=[f"http://{HERE}/"], settings={}, shards=2, created_at=0.0)
    link = Candidate(f"http://{THERE}/linked", THERE, 1, 0, f"http://{HERE}/")
    with closing(create_crawl(str(tmp_path / "crawl"), manifest)) as store:
        with closing(store.claim(0, ShardOptions(frontier_limit=9))) as other:
            other.commit(Batch(outgoing=[(1, link)]))
            worker = Worker(store, brisk(), [1], LocalBudget(0), is_resumed=False)
            before = worker.is_idle
            other.deliver()
        after = worker.is_idle
        worker.close()

    assert (before, after) == (True, False)


NOW = Now(9.0, EPOCH_S + 9.0)
