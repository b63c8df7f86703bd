"""How fast? Interchangeable strategies behind one protocol; `learned` is the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .aimd import Aimd
from .base import Effect, Lesson, Note, Pace
from .fixed import Fixed
from .gradient import Gradient
from .learned import Learned
from .linear import Linear

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..settings import Settings

PACES: dict[str, Callable[[Settings], Pace]] = {
    "learned": Learned,
    "linear": Linear,
    "aimd": Aimd,
    "gradient": Gradient,
    "fixed": Fixed,
}

__all__ = [
    "PACES",
    "Aimd",
    "Effect",
    "Fixed",
    "Gradient",
    "Learned",
    "Lesson",
    "Linear",
    "Note",
    "Pace",
]
