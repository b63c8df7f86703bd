"""Values of the politeness core: frozen, slotted, equal by type, hashable, picklable."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from datetime import time
from typing import Any

import pytest

from mannerly.politeness import GiveUp, Politeness, Retry, Settings, events
from mannerly.politeness.drivers.waiters import Waiting
from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.model import Reason
from mannerly.politeness.pace import Lesson
from mannerly.politeness.retry import GiveUpReason, RetryPolicy
from mannerly.politeness.robots import Explanation, RequestRate, RobotsVerdict, VisitTime

HOST = "example.com"
HOURS = VisitTime(time(6), time(8, 45))


def snapshots() -> list[Any]:
    core = Politeness(Settings(seed=1))
    core.reserve(HOST, now=0.0)
    snapshot = core.snapshot()
    return [snapshot, *snapshot.top]


VALUES: list[Any] = [
    *(
        kind(HOST, 1.0, *range(len(fields(kind)) - 2))
        for kind in vars(events).values()
        if is_dataclass(kind) and isinstance(kind, type)
    ),
    *snapshots(),
    Settings(max_rate="unlimited"),
    RetryPolicy(),
    Retry(2.0, 2, costs_attempt=True),
    GiveUp(GiveUpReason.BUDGET),
    Waiting(HOST, 1.0, 0.5, 3, Reason.PACE),
    Lesson(delay_s=0.5),
    Remembered(host=HOST, lesson=Lesson(concurrency=3)),
    HOURS,
    RequestRate(1, 60, HOURS),
    Explanation(RobotsVerdict.ALLOWED, "no rule matches"),
]


def test_all_values_are_covered() -> None:
    """The list holds each event and each other value once."""
    kinds = [type(value) for value in VALUES]

    assert len(kinds) == len(set(kinds)) == 29


def test_values_cannot_be_changed() -> None:
    """Assigning to a field raises, and there is no `__dict__` for new attributes."""
    for value in VALUES:
        name = fields(value)[0].name
        before = getattr(value, name)

        with pytest.raises(FrozenInstanceError):
            setattr(value, name, None)

        assert getattr(value, name) == before, value
        assert not hasattr(value, "__dict__"), value


def test_values_survive_copy_replace_and_pickle() -> None:
    """A value can be sent to another process, and comes back equal with an equal hash."""
    for value in VALUES:
        for again in (copy.deepcopy(value), replace(value), pickle.loads(pickle.dumps(value))):
            assert again == value, value
            assert hash(again) == hash(value), value


def test_values_of_different_types_are_never_equal() -> None:
    """Two events with the same fields are different events: Revived is not Closed."""
    assert events.Revived(HOST, 1.0) != events.Closed(HOST, 1.0)
    assert len({*VALUES}) == len(VALUES)


def test_values_are_matched_by_position_and_by_name() -> None:
    """`match` sees the fields of an event in order."""
    match events.Opened(HOST, 1.0, 6.0, 2):
        case events.Opened(host, at, until=until, times=times):
            found = (host, at, until, times)

    assert found == (HOST, 1.0, 6.0, 2)


def test_settings_are_made_by_name_only() -> None:
    """A number without a name is how two settings get swapped."""
    with pytest.raises(TypeError):
        Settings(True, "learned")  # type: ignore[misc]
