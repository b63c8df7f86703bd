"""Where hosts are counted that wait."""

from __future__ import annotations

from mannerly.crawler.stats import BROKEN, HELD, PACED
from mannerly.politeness.model import Reason


def test_every_reason_to_wait_for_an_instant_is_told() -> None:
    """A reason in no list would make its hosts vanish from the progress line."""
    without_instant = (Reason.IN_FLIGHT, Reason.PAUSED, Reason.RETIRED)

    assert sorted([*PACED, *HELD, *BROKEN, *without_instant]) == sorted(Reason)
