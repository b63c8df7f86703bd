"""No body outlives its page, neither in memory nor in the account that bounds it."""

from __future__ import annotations

import gzip
import select
from typing import TYPE_CHECKING, Self

import pytest
from tests.crawler.runtime.test_manners import Timepiece
from virtual.fetcher import FakeFetcher, FakeReply, VirtualClock
from virtual.store.memory import MemoryStore

from mannerly.crawler.events import Events
from mannerly.crawler.fetch.body_memory import BodyMemory
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Now
from mannerly.crawler.page.long_work import BIG_BYTES
from mannerly.crawler.plugins import plugins_for
from mannerly.crawler.runtime.beginning import rules_of
from mannerly.crawler.runtime.body_accounting import READING
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.delivery import Delivery
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.runtime.offload import Offload
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store.base import Manifest
from mannerly.crawler.web.seeds import seed_candidates
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.model import Request
    from mannerly.crawler.runtime.delivery import Delivered
    from mannerly.crawler.shard.interfaces import PageReading

PAGES = 60
WORKERS = 8
LINKS = "".join(f'<a href="/{number}">{number}</a>' for number in range(PAGES)).encode()


class Body(bytes):
    """Bytes that are counted while they exist."""

    alive = 0

    def __new__(cls, content: bytes) -> Self:
        Body.alive += 1
        return super().__new__(cls, content)

    def __reduce__(self) -> tuple[type[bytes], tuple[bytes]]:
        return bytes, (bytes(self),)  # to another process

    def __del__(self) -> None:
        Body.alive -= 1


@pytest.fixture(autouse=True)
def _no_bodies() -> None:
    Body.alive = 0


@pytest.fixture
def helpers() -> Iterator[Offload[PageReading]]:
    """One parse helper."""
    offload: Offload[PageReading] = Offload(1)
    yield offload
    offload.close()


def engine_for(
    body: bytes,
    *,
    memory: BodyMemory,
    offload: Offload[PageReading] | None = None,
    delivery: Delivery | None = None,
    pages: int = PAGES,
    store: MemoryStore | None = None,
    budget: PageBudget | None = None,
    encoding: str = "identity",
    clock: VirtualClock | None = None,
) -> Engine:
    """Return an engine in virtual time, for a site whose pages all have this body."""

    def answer(request: Request) -> FakeReply:
        known = request.url.removeprefix("http://a.example/")
        if known and int(known) >= pages:
            return FakeReply(404)
        headers = {"content-type": "text/html", "content-encoding": encoding}
        return FakeReply(body=Body(body), headers=headers)

    seeds = ["http://a.example/"]
    pace = Settings(strategy="fixed", delay_s=0.01, max_rate="unlimited")
    settings = CrawlSettings(politeness=pace, seeding="none", ignore_robots=True)
    manifest = Manifest.new(seeds=seeds, settings={}, shards=1, created_at=0.0)
    fetcher, events = FakeFetcher(clock or VirtualClock(), answer), Events()
    store, rules = store or MemoryStore(frontier_limit=1000), rules_of(settings, manifest)
    shard = Shard(
        0,
        store,
        Sharding(1),
        settings,
        rules,
        is_resumed=False,
        now=Now(0.0, 0.0),
        events=events,
        reader=offload,
        consumer=delivery,
        plugins=plugins_for(settings, rules, store, events.emit),
    )
    engine = Engine(
        fetcher,
        [shard],
        Timepiece(fetcher.clock),
        budget or PageBudget(None),
        concurrency=WORKERS,
        events=events,
        memory=memory,
        offload=offload,
        delivery=delivery,
    )
    shard.offer(seed_candidates(seeds))
    engine.commit()
    return engine


def test_a_page_that_was_read_leaves_no_body_behind() -> None:
    """There are never more bodies than requests in flight, and none in the end."""
    memory, most = BodyMemory(), 0
    engine = engine_for(LINKS, memory=memory)

    while not engine.is_idle:
        engine.turn()
        most = max(most, Body.alive)

    assert engine.stats().fetched == PAGES + 1
    assert 0 < most <= WORKERS
    assert (Body.alive, memory.used) == (0, 0)


def test_a_page_that_a_helper_reads_is_counted_until_it_is_read(
    helpers: Offload[PageReading],
) -> None:
    """With the copies that reading it takes; then neither it nor its count is left."""
    memory, most = BodyMemory(), 0
    body = LINKS[: LINKS.index(b'<a href="/5"')] + b" " * BIG_BYTES
    engine = engine_for(body, memory=memory, offload=helpers)

    while not engine.is_idle:
        engine.turn()
        most = max(most, memory.held)
        if helpers.pending:
            assert select.select([helpers.descriptor], [], [], 30.0)[0]

    assert engine.stats().fetched == 6
    assert most >= READING * len(body)
    assert (Body.alive, memory.used) == (0, 0)


def test_a_compressed_page_is_not_decoded_while_memory_lacks() -> None:
    """It is asked for again, and read when there is room."""
    memory = BodyMemory(len(LINKS))
    engine = engine_for(gzip.compress(LINKS), memory=memory, encoding="gzip", pages=1)
    while not engine.in_flight:
        engine.turn()
    memory.held = len(LINKS)
    while engine.in_flight:
        engine.turn()
    assert (engine.stats().fetched, engine.stats().requests.retries) == (0, 1)

    memory.held = 0
    while not engine.is_idle:
        engine.turn()

    assert (engine.stats().statuses[200], engine.stats().requests.retries) == (2, 1)
    assert memory.used == 0


def test_pages_of_a_slow_program_count_until_it_is_done_with_them() -> None:
    """At half of the limit nothing new is started; it goes on when pages are acknowledged."""
    memory = BodyMemory(10 * len(LINKS))
    out: list[Delivered] = []
    delivery = Delivery(out.extend, {})
    engine = engine_for(LINKS, memory=memory, delivery=delivery)

    taken, most = 0, 0
    for _ in range(20 * PAGES):
        engine.turn()
        most = max(most, memory.held)
        if engine.waits_for_program or memory.is_scarce:
            assert out
            delivery.acknowledge([page.token for page in out])
            taken += len(out)
            out.clear()
    delivery.close()

    assert engine.is_idle
    assert taken == PAGES + 1
    assert most <= memory.limit / 2 + WORKERS * len(LINKS)
    assert (Body.alive, memory.used) == (0, 0)
