"""A new crawl of a host with a known limit starts near that limit; without a memory it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from virtual.crawl import CrawlOutcome, simulate_crawl
from virtual.web import GeneratedWeb

from mannerly.crawler.settings import CrawlSettings

if TYPE_CHECKING:
    from pathlib import Path

MINUTE_S = 60.0


def crawl(limit: str, memory: Path | None, seed: int, seconds: float) -> CrawlOutcome:
    """Crawl one host of which a limit is hidden, and see how far that comes."""
    web = GeneratedWeb(hosts=1, pages=1500, limits=(limit,), is_listed=True)
    location = None if memory is None else str(memory)
    return simulate_crawl(
        web,
        CrawlSettings(),
        seed=seed,
        duration_s=seconds,
        check_every=10**9,
        memory=location,
        turn_s=0.25,
    )


@pytest.mark.parametrize(("limit", "rate"), [("bucket:2:4+retry-after", 2.0), ("bucket:4:8", 4.0)])
def test_a_known_limit_is_used_from_the_start(tmp_path: Path, limit: str, rate: float) -> None:
    """At least 60 % of it in the first minute, with at most 1 % refused."""
    memory = tmp_path / "hosts.sqlite"
    crawl(limit, memory, 1, 6 * MINUTE_S)

    again = crawl(limit, memory, 2, MINUTE_S)
    blank = crawl(limit, None, 2, MINUTE_S)

    assert again.requests >= 0.6 * rate * MINUTE_S
    assert again.refused <= 0.01 * again.requests
    assert again.broken.total() == 0
    is_slow = blank.requests < 0.6 * rate * MINUTE_S
    assert is_slow or blank.refused > 0.01 * blank.requests
