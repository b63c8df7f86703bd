"""A case may state a figure; `python -m tests.hostile` writes it to reliability.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


class Figure(Protocol):
    def __call__(self, row: str, text: str) -> None: ...


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Return a function that notes what a row's case has measured."""

    def note(row: str, text: str) -> None:
        record_property(row, text)

    return note
