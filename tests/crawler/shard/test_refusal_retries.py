"""Refusals of one URL: retried for as long as its host may be asked, or as often as told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.crawler.shard.shard_world import BRISK, ShardWorld, brisk, flight_of

from mannerly.crawler.model import PageRecord

if TYPE_CHECKING:
    from mannerly.politeness import Settings

BUSY, QUIET = "https://a.example/busy", "https://a.example/quiet"


@pytest.mark.parametrize(("retries", "status", "requests"), [(3, 429, 4), (0, 429, 1), (9, 200, 6)])
def test_retries_of_a_refused_url_are_counted(retries: int, status: int, requests: int) -> None:
    """A page that is refused five times is given up after as many retries, or fetched."""
    asked = crawl(replace(BRISK, refusal_retries=retries), status)

    assert asked == requests


def test_refusals_are_retried_without_a_count_by_default() -> None:
    """Neither five refusals nor three attempts end the URL: only its host is given up."""
    assert crawl(replace(BRISK, max_attempts=3), 200) == 6


def crawl(politeness: Settings, status: int) -> int:
    """Refuse one page five times; return how often it was asked for, and check its record."""
    settings = brisk(politeness=politeness, ignore_robots=True)
    world = ShardWorld(BUSY, QUIET, settings=settings)
    asked = 0
    for _ in range(400):
        for request in world.start(room=1):
            is_busy = flight_of(request).item.url == BUSY
            asked += is_busy
            world.answer(request, 429 if is_busy and asked <= 5 else 200, b"here")
        world.shard.commit(world.now)
        world.wait(1.0)
        if world.shard.is_idle:
            break
    record, other = world.store.find(BUSY), world.store.find(QUIET)
    assert isinstance(record, PageRecord)
    assert isinstance(other, PageRecord)
    assert (record.status, other.status) == (status, 200)
    return asked
