"""Cron expressions: the next instant, in local time."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.service.jobs.model import ScheduleError, next_due


def test_next_instant_is_in_local_time() -> None:
    """Three in the morning is three o'clock where the service runs."""
    start = datetime(2026, 3, 1, 12, 0)  # noqa: DTZ001 - local time is meant

    due = next_due("0 3 * * *", start.timestamp())

    assert datetime.fromtimestamp(due) == datetime(2026, 3, 2, 3, 0)  # noqa: DTZ001, DTZ006


@given(st.floats(0, 4e9))
def test_next_instant_is_later(after: float) -> None:
    """Otherwise a job would be started again and again."""
    assert next_due("*/5 * * * *", after) > after


@pytest.mark.parametrize("text", ["", "daily", "0 3 * *", "61 * * * *", "0 0 30 2 *"])
def test_nonsense_is_refused_with_an_example(text: str) -> None:
    """The error says how to write it."""
    with pytest.raises(ScheduleError, match="every day at 3:00"):
        next_due(text, 0.0)
