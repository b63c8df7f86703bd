"""Memory is bounded by the hosts that are active, not by the hosts that were ever met."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import pytest
from tests.crawler.shard.shard_world import EPOCH_S, brisk
from virtual.store.memory import MemoryStore

from mannerly.crawler.events import Events
from mannerly.crawler.frontier import addresses
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.host.inflight import flight_of
from mannerly.crawler.model import Candidate, Entry, Fetched, Now
from mannerly.crawler.page.links import LinkRules
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store.base import Batch, Committed
from mannerly.crawler.web.urls import site_of
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

ACTIVE = 1_000


class ForgetfulStore(MemoryStore):
    """A store whose records take no memory: every link is new, and nothing is kept."""

    def __init__(self) -> None:
        super().__init__(frontier_limit=10**9)
        self._seq = 0

    def commit(self, batch: Batch) -> Committed:
        new = []
        for url, host, depth, priority, parent, hops, kind, _ in batch.found:
            self._seq += 1
            new.append(Entry(self._seq, url, host, depth, priority, parent, hops, kind))
        return Committed(new, 0)


def crawl(hosts: int) -> Iterator[tuple[int, Shard]]:
    """Fetch one page of each host, `ACTIVE` of them at a time; yield how many were met."""
    pace = Settings(strategy="fixed", delay_s=1.0, seed=1, max_hosts=ACTIVE, idle_ttl_s=1.0)
    settings = brisk(politeness=pace, ignore_robots=True)
    rules = LinkRules(settings.scope_of(["https://h.example/"]), "mannerly", 5)
    now = Now(0.0, EPOCH_S)
    options = {"is_resumed": False, "now": now, "events": Events()}
    shard = Shard(0, ForgetfulStore(), Sharding(1), settings, rules, **options)
    for met in range(0, hosts, ACTIVE):
        names = [f"h{number}.example" for number in range(met, met + ACTIVE)]
        shard.offer([Candidate(f"https://{name}/", name, 0, 0, None) for name in names])
        done = 0
        while done < ACTIVE:
            shard.commit(now)
            now = Now(now.mono + 2.0, now.wall + 2.0)
            for request in shard.start_due(now, 256):
                shard.sent(flight_of(request), now.mono)
                shard.answered(flight_of(request), Fetched(request, 404), now)
                done += 1
        shard.commit(now)
        shard.tick(now)
        yield met + ACTIVE, shard


def blocks() -> int:
    site_of.cache_clear()  # it has a limit of its own
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize("hosts", [30_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_memory_is_flat_after_the_first_ten_thousand_hosts(
    hosts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many objects as then, however many hosts follow.

    Sites whose names were admitted lately have a limit of their own, which is larger.
    """
    monkeypatch.setattr(addresses, "_MAX_SITES", ACTIVE)
    before = 0
    for met, shard in crawl(hosts):
        if met == 10_000:
            before = blocks()
        last = shard
    after = blocks()

    assert after - before < 0.02 * before
    assert len(last.hosts) <= ACTIVE + 1
    assert len(last.hosts.budgets) <= ACTIVE + 1
    last.frontier.check()
