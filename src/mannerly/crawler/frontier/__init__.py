"""What to fetch next: see `core` for the scheduler, `window` for one host's queue."""

from __future__ import annotations

from .core import Frontier
from .model import Drop, Errand, First, FrontierSnapshot, Later, Refill, Ruling, Start, Taken
from .sharding import Sharding

__all__ = [
    "Drop",
    "Errand",
    "First",
    "Frontier",
    "FrontierSnapshot",
    "Later",
    "Refill",
    "Ruling",
    "Sharding",
    "Start",
    "Taken",
]
