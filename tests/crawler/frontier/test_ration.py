"""--max-per-host, without a crawl around it."""

from __future__ import annotations

from collections import Counter

from mannerly.crawler.frontier.quota import Ration
from mannerly.crawler.model import GO, Drop, Later

HELD_BACK = Later(None)
USED_UP = Drop("max_per_host")


def test_no_more_pages_go_than_there_is_room_for() -> None:
    """What was let go counts within a take, and what is under way until it is back."""
    ration = Ration(2, Counter[str]().__getitem__)

    ration.begin()
    first = [ration.judge("a") for _ in range(3)]
    ration.sent("a")  # the other one found no slot
    ration.begin()
    second = [ration.judge("a") for _ in range(2)]
    elsewhere = ration.judge("b")

    assert first == [GO, GO, HELD_BACK]
    assert second == [GO, HELD_BACK]
    assert elsewhere is GO


def test_a_page_that_failed_makes_room_and_one_that_came_takes_it() -> None:
    """Held back is not dropped: only pages that were fetched use the ration up."""
    fetched = Counter[str]()
    ration = Ration(1, fetched.__getitem__)
    ration.begin()
    ration.judge("a")
    ration.sent("a")
    ration.begin()
    under_way = ration.judge("a")

    ration.back("a")
    failed = ration.judge("a")
    fetched["a"] += 1
    ration.begin()
    came = ration.judge("a")

    assert (under_way, failed, came) == (HELD_BACK, GO, USED_UP)
