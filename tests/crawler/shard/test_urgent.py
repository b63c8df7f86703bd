"""A pause that a crash must not forget is committed before anything else is done."""

from __future__ import annotations

import pytest
from tests.crawler.shard.shard_world import ShardWorld


@pytest.mark.parametrize(
    ("status", "retry_after", "is_urgent"), [(429, "100", True), (200, "100", False)]
)
def test_a_fresh_retry_after_is_urgent_until_it_is_committed(
    status: int, retry_after: str, is_urgent: bool
) -> None:
    """The next request of the crawl may come after a kill: the pause must be on disk by then."""
    world = ShardWorld("https://a.example/")
    world.pass_robots()
    world.wait(1.0)
    (request,) = world.start()
    before = world.shard.left.is_urgent

    world.answer(request, status, retry_after=retry_after)
    answered = world.shard.left.is_urgent
    world.shard.commit(world.now)

    assert (before, answered, world.shard.left.is_urgent) == (False, is_urgent, False)
