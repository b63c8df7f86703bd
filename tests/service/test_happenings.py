"""What happened to a host is said in words that are true, whatever the cause was."""

from __future__ import annotations

import pytest

from mannerly.politeness import events as polite
from mannerly.service.live_crawl import happening


@pytest.mark.parametrize(
    ("refusals", "why"),
    [(0, "an error or slow answers"), (1, "a refusal"), (3, "3 refusals")],
)
def test_the_cause_of_a_slower_pace_is_named(refusals: int, why: str) -> None:
    """A host that does not answer has not refused."""
    slowed = polite.Slowed("a.example", 1.0, 0.5, refusals)

    assert happening(slowed) == ("slowed", "a.example", f"slowed to 2/s after {why}")
