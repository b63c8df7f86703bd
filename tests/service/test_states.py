"""The states of a job: one table, and late events that change nothing."""

from __future__ import annotations

import pytest

from mannerly.service.jobs import model
from mannerly.service.jobs.model import ENDED, TRANSITIONS, JobEvent, JobState, after


def test_table_of_the_docstring_is_the_table_of_the_code() -> None:
    """What the module says about itself is what it does."""
    rows = [line.split()[:3] for line in (model.__doc__ or "").splitlines() if "    " in line]
    told = {(row[0], row[1], row[2]) for row in rows if row and row[0] in set(JobState)}

    coded = {(state, event, to) for state, row in TRANSITIONS.items() for event, to in row.items()}

    assert told == {(state.value, event.value, to.value) for state, event, to in coded}


@pytest.mark.parametrize("state", JobState)
def test_every_state_can_be_left(state: JobState) -> None:
    """No job is stuck for good."""
    assert TRANSITIONS[state]


@pytest.mark.parametrize("state", sorted(ENDED))
@pytest.mark.parametrize("event", [JobEvent.FINISHED, JobEvent.FAILED, JobEvent.LOST])
def test_end_is_not_overwritten_by_a_late_event(state: JobState, event: JobEvent) -> None:
    """A process that ends after its job was stopped changes nothing."""
    assert after(state, event) is None
