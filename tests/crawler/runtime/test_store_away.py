"""A store that is away for a moment costs a shard its memory, not the run its accounts."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.test_body_memory import LINKS, engine_for
from tests.exports.stored_example import PAGES
from virtual.fetcher import VirtualClock
from virtual.store.memory import MemoryStore

from mannerly.crawler.control import Recrawl
from mannerly.crawler.fetch.body_memory import BodyMemory
from mannerly.crawler.model import Now
from mannerly.crawler.page.long_work import BIG_BYTES
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.delivery import Delivery
from mannerly.crawler.runtime.offload import Offload
from mannerly.crawler.store.base import Earlier, StoreError, StoreFull
from mannerly.crawler.store.fleet import LeaseLost, StoreAway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mannerly.crawler.runtime.delivery import Delivered
    from mannerly.crawler.runtime.engine import Engine
    from mannerly.crawler.shard.interfaces import PageReading

BIG = LINKS[: LINKS.index(b'<a href="/5"')] + b" " * BIG_BYTES


class Leaving(MemoryStore):
    """A store in which every page has a record, until it is away or the shard is lost."""

    is_away = False
    error: StoreError = StoreAway("the store does not answer")

    def earlier(self, seq: int) -> Earlier | None:
        if self.is_away:
            raise self.error
        return Earlier(PAGES[0]) if seq else None


@pytest.fixture
def helpers() -> Iterator[Offload[PageReading]]:
    """One parse helper."""
    offload: Offload[PageReading] = Offload(1)
    yield offload
    offload.close()


@pytest.fixture
def store() -> Leaving:
    return Leaving(frontier_limit=1000)


def recrawling(engine: Engine) -> Engine:
    """Return an engine whose pages are compared with their records."""
    (shard,) = engine.shards.all
    shard.control(1, Recrawl(1), Now(0.0, 0.0))
    return engine


def test_page_that_was_parsed_elsewhere_is_not_lost(
    store: Leaving, helpers: Offload[PageReading]
) -> None:
    """The run goes on without the shard, which can be taken again; page and memory are free."""
    memory, budget = BodyMemory(), PageBudget(10)
    engine = recrawling(engine_for(BIG, memory=memory, offload=helpers, store=store, budget=budget))
    run_until(engine, lambda: helpers.pending > 0)

    store.is_away = True
    while helpers.pending:
        assert select.select([helpers.descriptor], [], [], 30.0)[0]
        engine.turn()

    assert engine.away is not None
    assert engine.shards.may_add(0)
    assert (budget.used, memory.held) == (0, 0)


def test_page_that_a_program_acknowledges_is_not_lost(store: Leaving) -> None:
    """Neither are those that it acknowledges after the shard is lost."""
    memory, budget = BodyMemory(), PageBudget(10)
    out: list[Delivered] = []
    delivery = Delivery(out.extend, {})
    engine = recrawling(
        engine_for(LINKS, memory=memory, delivery=delivery, store=store, budget=budget)
    )
    run_until(engine, lambda: len(out) == 1)
    delivery.acknowledge([out.pop(0).token])
    run_until(engine, lambda: len(out) >= 3)

    store.is_away = True
    delivery.acknowledge([out[0].token])
    engine.turn()
    delivery.acknowledge([page.token for page in out[1:]])
    engine.turn()
    delivery.close()

    assert engine.away is not None
    assert engine.shards.may_add(0)
    assert (budget.used, memory.held) == (1, 0)


def test_refusals_of_a_lost_shard_take_no_budget_and_no_memory() -> None:
    """Their hosts are heard; the pages are fetched by the next owner, and are not of this run."""
    memory, budget = BodyMemory(), PageBudget(20)
    out: list[Delivered] = []
    delivery = Delivery(out.extend, {})
    engine = engine_for(LINKS, memory=memory, delivery=delivery, budget=budget, pages=0)
    run_until(engine, lambda: len(out) == 1)
    delivery.acknowledge([out.pop(0).token])
    run_until(engine, lambda: len(out) >= 3)

    engine.drop(0)
    delivery.flush()
    delivery.acknowledge([page.token for page in out])
    engine.turn()
    delivery.close()

    assert engine.shards.may_add(0)
    assert (budget.used, memory.held) == (1, 0)


@pytest.mark.parametrize("error", [StoreAway("no answer"), LeaseLost("another run has it")])
def test_a_shard_that_is_lost_while_it_is_handed_over_is_told_as_that(
    store: Leaving, error: StoreError
) -> None:
    """Its last answers are taken first, and the store is asked for their earlier records."""
    clock = VirtualClock()
    engine = recrawling(engine_for(LINKS, memory=BodyMemory(), store=store, clock=clock))
    run_until(engine, lambda: engine.in_flight > 1)
    clock.advance(1.0)
    store.is_away, store.error = True, error

    with pytest.raises(type(error)):
        engine.release(0)

    assert [shard.number for shard in engine.dropped] == [0]
    assert engine.shards.may_add(0)


def test_a_note_that_fails_inside_the_fetcher_is_treated_as_a_failed_commit() -> None:
    """A store that is away is waited for, and so is room on a disk; another error ends the run."""
    failures: list[StoreError] = [StoreAway("no answer"), StoreFull("no room"), StoreError("EIO")]
    engines = [engine_for(LINKS, memory=BodyMemory()) for _ in failures]
    for engine, failure in zip(engines, failures, strict=True):
        (shard,) = engine.shards.all
        told = iter([failure])
        shard.sent_once.take_failure = lambda told=told: next(told, None)

    away, full, broken = engines
    away.turn()
    full.turn()
    with pytest.raises(StoreError, match="EIO"):
        broken.turn()

    assert away.away is failures[0]
    assert full.stats().now.trouble == "no room"


def run_until(engine: Engine, is_so: Callable[[], bool]) -> None:
    for _ in range(200):
        if is_so():
            return
        engine.turn()
    pytest.fail("it did not come true in 200 turns")
