"""Strategies that set the request rate of a host, behind one protocol; default `learned`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .aimd import AimdStrategy
from .base import Effect, Lesson, PaceChange, Strategy
from .fixed import FixedStrategy
from .gradient import GradientStrategy
from .learned import LearnedStrategy
from .linear import LinearStrategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..settings import Settings

STRATEGY_CLASSES: dict[str, Callable[[Settings], Strategy]] = {
    "learned": LearnedStrategy,
    "linear": LinearStrategy,
    "aimd": AimdStrategy,
    "gradient": GradientStrategy,
    "fixed": FixedStrategy,
    "leaky": FixedStrategy,
}

__all__ = [
    "STRATEGY_CLASSES",
    "AimdStrategy",
    "Effect",
    "FixedStrategy",
    "GradientStrategy",
    "LearnedStrategy",
    "Lesson",
    "LinearStrategy",
    "PaceChange",
    "Strategy",
]
