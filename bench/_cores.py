"""Which core runs what: a child inherits the cores that its parent has when it is started."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def two_cores() -> tuple[int, int]:
    """A core for the crawler and another for its server; the same, where there is but one."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """What is started in this block runs on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
