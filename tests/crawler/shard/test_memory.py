"""A shard keeps no body: what a page leaves behind is a record and its links."""

from __future__ import annotations

import tracemalloc

from tests.crawler.shard.shard_world import ShardWorld

BODY_BYTES = 200_000
PAGES = 60


def test_bodies_leave_memory_with_their_pages() -> None:
    """Sixty pages of 200 KB each, 12 MB in all: afterwards a tenth of that is held, at most."""
    world = ShardWorld(*(f"https://a.example/{number}" for number in range(PAGES)))
    world.pass_robots()

    tracemalloc.start()
    for number in range(PAGES):
        world.wait(1.0)
        (request,) = world.start()
        world.answer(request, body=bytes([number]) * BODY_BYTES)
        world.shard.commit(world.now)
    del request
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert world.store.counts().fetched == PAGES
    assert held < PAGES * BODY_BYTES / 10
