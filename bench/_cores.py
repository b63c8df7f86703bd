"""Choose the CPU cores of child processes, which inherit them from their parent at the start."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def two_cores() -> tuple[int, int]:
    """Return a core for the crawler and one for its server; the same one if there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Run processes that are started in this block on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
