"""Rivals take turns in short rounds, and a ratio is the median of the rounds' ratios.

A busy machine slows whoever is running; over a minute it slows everybody alike, and within one
round it slows neighbours alike. So a ratio comes from two neighbours of one round, and the median
drops the rounds that somebody else disturbed. It is not the quotient of the two medians.
"""

from __future__ import annotations

import gc
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Rounds:
    """Seconds per item of each rival in each round; a measure is told the round's number."""

    def __init__(self, measures: Mapping[str, Callable[[int], float]], rounds: int) -> None:
        self._seconds: dict[str, list[float]] = {name: [] for name in measures}
        for number in range(rounds):
            for name, measure in measures.items():
                gc.collect()  # nobody pays for the rubbish of the one before
                self._seconds[name].append(measure(number))

    def microseconds(self, name: str) -> float:
        """The median round."""
        return median(self._seconds[name]) * 1e6

    def ratio(self, name: str, to: str) -> float:
        """How many times as long as `to` this one takes."""
        pairs = zip(self._seconds[name], self._seconds[to], strict=True)
        return median(one / other for one, other in pairs)
