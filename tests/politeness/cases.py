"""A loop over many cases in one test, whose failure names the case."""

from __future__ import annotations

from contextlib import contextmanager
from reprlib import Repr
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_shown = Repr()
_shown.maxstring = _shown.maxother = 200  # some cases are a megabyte long


@contextmanager
def case(*values: object) -> Iterator[None]:
    """Add these values to the message of any failure in the block."""
    try:
        yield
    except BaseException as error:
        error.add_note("case: " + ", ".join(map(_shown.repr, values)))
        raise
