"""A shard is idle only when nothing is left anywhere: queue, waiting room, wire, outbox."""

from __future__ import annotations

from tests.crawler.shard.shard_world import ShardWorld
from virtual.store.memory import MemoryStore

from mannerly.crawler.store.base import Batch
from mannerly.crawler.store.contract.values import START, candidate, enter

PAGE = "https://a.example/"


def _crawled(world: ShardWorld) -> None:
    world.pass_robots()
    world.wait(1.0)
    (request,) = world.start()
    world.answer(request)
    world.shard.commit(world.now)


def test_a_shard_without_anything_is_idle() -> None:
    """Its only page is fetched and committed."""
    world = ShardWorld(PAGE)

    _crawled(world)

    assert world.shard.is_idle


def test_a_shard_with_a_page_on_the_wire_is_not_idle() -> None:
    """Until the answer is committed; the page may lead on."""
    world = ShardWorld(PAGE)
    world.pass_robots()
    world.wait(1.0)

    (request,) = world.start()
    on_the_wire = world.shard.is_idle
    world.answer(request)
    answered = world.shard.is_idle
    world.shard.commit(world.now)

    assert (on_the_wire, answered, world.shard.is_idle) == (False, False, True)


def test_a_shard_that_asks_for_robots_without_a_queue_is_not_idle() -> None:
    """A request that belongs to no queued URL counts, too."""
    world = ShardWorld(PAGE)
    (request,) = world.start()
    (entry,) = world.store.queued("a.example", after=START, limit=9)

    world.shard.pending.drop([entry], "excluded")
    world.shard.commit(world.now)
    waiting = world.shard.is_idle
    world.answer(request, 404)
    world.shard.commit(world.now)

    assert world.store.counts().queued == 0
    assert (waiting, world.shard.is_idle) == (False, True)


def test_a_shard_with_urls_in_the_waiting_room_is_not_idle() -> None:
    """Nothing can be started before they are let in, and they are work all the same."""
    world = ShardWorld(PAGE, store=MemoryStore(frontier_limit=1))
    enter(world.store, candidate("/1"), candidate("/2"))

    _crawled(world)

    counts = world.store.counts()
    assert (counts.queued, counts.waiting) == (2, 2)
    assert not world.shard.is_idle


def test_a_shard_with_links_in_its_outbox_is_not_idle() -> None:
    """They are another shard's work, and only here until they are delivered."""
    store, _other = MemoryStore.group(2, frontier_limit=10)
    world = ShardWorld(PAGE, store=store)
    _crawled(world)
    nothing = world.shard.is_idle

    store.commit(Batch(outgoing=[(1, candidate("/x", host="b.example"))]))
    undelivered = world.shard.is_idle
    store.deliver()

    assert (nothing, undelivered, world.shard.is_idle) == (True, False, True)
