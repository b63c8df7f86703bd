"""--max-per-host, with requests of one host side by side."""

from __future__ import annotations

from tests.crawler.shard.shard_world import ShardWorld, brisk

from mannerly.politeness import Settings

URLS = [f"https://a.example/{page}" for page in range(4)]


def unpaced(limit: int) -> ShardWorld:
    """A world in which all pages of a host could go at once."""
    settings = brisk(
        ignore_robots=True, max_per_host=limit, politeness=Settings(enabled=False, max_attempts=1)
    )
    world = ShardWorld(*URLS, settings=settings)
    assert world.start(room=0) == []
    return world


def test_no_more_pages_go_than_there_is_room_for() -> None:
    """What goes counts at once, what found no room does not, and other hosts are not concerned."""
    world = unpaced(2)

    first = world.start(room=1)
    second = world.start()
    third = world.start()
    world.offer("https://b.example/")
    elsewhere = world.start()

    assert [len(each) for each in (first, second, third, elsewhere)] == [1, 1, 0, 1]


def test_a_page_that_failed_makes_room_and_one_that_came_takes_it() -> None:
    """Held back is not dropped: only pages that were fetched use the quota up."""
    world = unpaced(1)
    (first,) = world.start()
    while_under_way = world.start()

    world.answer(first, 500)
    (second,) = world.start()
    world.answer(second)
    came = world.start()
    world.shard.commit(world.now)

    assert while_under_way == came == []
    assert world.stats.skipped == {"max_per_host": 2}
