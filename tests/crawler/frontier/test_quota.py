"""--max-per-host, without a crawl around it."""

from __future__ import annotations

from collections import Counter

from mannerly.crawler.frontier.quota import HostQuota
from mannerly.crawler.model import GO, Drop, Later

HELD_BACK = Later(None)
USED_UP = Drop("max_per_host")


def test_no_more_pages_go_than_there_is_room_for() -> None:
    """What was let go counts within a take, and what is under way until it is back."""
    under_way = Counter[str]()
    quota = HostQuota(2, Counter[str]().__getitem__, under_way.__getitem__)

    quota.begin()
    first = [quota.judge("a") for _ in range(3)]
    under_way["a"] += 1  # the other one found no slot
    quota.begin()
    second = [quota.judge("a") for _ in range(2)]
    elsewhere = quota.judge("b")

    assert first == [GO, GO, HELD_BACK]
    assert second == [GO, HELD_BACK]
    assert elsewhere is GO


def test_a_page_that_failed_makes_room_and_one_that_came_takes_it() -> None:
    """Held back is not dropped: only pages that were fetched use the quota up."""
    fetched, under_way = Counter[str](), Counter[str]()
    quota = HostQuota(1, fetched.__getitem__, under_way.__getitem__)
    quota.begin()
    quota.judge("a")
    under_way["a"] += 1
    quota.begin()
    while_under_way = quota.judge("a")

    under_way["a"] -= 1
    failed = quota.judge("a")
    fetched["a"] += 1
    quota.begin()
    came = quota.judge("a")

    assert (while_under_way, failed, came) == (HELD_BACK, GO, USED_UP)
