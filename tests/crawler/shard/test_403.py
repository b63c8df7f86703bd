"""What the 403s of a host mean is found out by asking again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.crawler.shard.shard_world import BRISK, ShardWorld, brisk, flight_of

from mannerly.crawler.model import PageRecord

PACE = replace(BRISK, strategy="learned", max_attempts=5)
URLS = [f"https://a.example/{number}" for number in range(40)]
PENDING = "https://b.example/"  # asked for again when its Retry-After is over


def crawl(world: ShardWorld, *, is_given_later: bool) -> int:
    """Answer 403 to every second page, and to its retries unless it is given later; count waits."""
    refused: set[str] = set()
    for _ in range(4000):
        for request in world.start(room=1):
            url = flight_of(request).item.url
            is_refused = int(url.rpartition("/")[2]) % 2 == 1
            if is_refused and not (is_given_later and url in refused):
                refused.add(url)
                world.answer(request, 403)
            else:
                world.answer(request, 200, b"here")
        world.shard.commit(world.now)
        world.wait(1.0)
        if world.shard.is_idle:
            break
    return sum(
        isinstance(record := world.store.find(url), PageRecord) and record.status == 200
        for url in URLS
    )


def test_a_403_that_is_given_later_means_too_fast_however_often() -> None:
    """Pages of a host with such a limit are asked for again."""
    world = ShardWorld(*URLS, settings=brisk(politeness=PACE, ignore_robots=True))

    given = crawl(world, is_given_later=True)

    assert given == len(URLS)
    assert world.stats.requests.retries > 3


def test_forbidden_pages_are_asked_for_again_until_three_have_stayed_so() -> None:
    """One more may be on its way when the third has answered."""
    world = ShardWorld(*URLS, settings=brisk(politeness=PACE, ignore_robots=True))

    given = crawl(world, is_given_later=False)

    assert given == len(URLS) // 2
    assert world.stats.requests.retries <= 4


def test_a_429_that_is_given_later_says_nothing_about_403s() -> None:
    """Pages that stay forbidden cost three requests more, although refused ones are given later."""
    world = ShardWorld(*URLS, PENDING, settings=brisk(politeness=PACE, ignore_robots=True))
    asked: Counter[str] = Counter()

    for _ in range(4000):
        for request in world.start(room=1):
            url = flight_of(request).item.url
            asked[url] += 1
            status = status_of(url, is_first=asked[url] == 1)
            headers = {"retry_after": "500"} if url == PENDING and status == 403 else {}
            world.answer(request, status, b"here" if status == 200 else b"", **headers)
        world.shard.commit(world.now)
        world.wait(1.0)
        if world.shard.is_idle:
            break

    forbidden = [url for url in URLS if status_of(url, is_first=False) == 403]
    assert world.shard.is_idle
    assert sum(asked[url] for url in forbidden) <= len(forbidden) + 4


def status_of(url: str, *, is_first: bool) -> int:
    """Return the answer: of four pages one is forbidden, and one is refused at first."""
    if url == PENDING:
        return 403 if is_first else 200
    kind = int(url.rpartition("/")[2]) % 4
    return 403 if kind == 1 else 429 if kind == 0 and is_first else 200
