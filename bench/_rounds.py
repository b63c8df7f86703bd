"""Compare candidates in short rounds; a ratio is the median of the ratios of all rounds.

Other load on the machine slows the candidate that is running. Within one short round it slows all
candidates about equally. So a ratio is taken within each round, and the median ignores the rounds
that were disturbed. It is not the quotient of the two medians.
"""

from __future__ import annotations

import gc
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Rounds:
    """Return seconds per item of each candidate and round; a measure gets the round's number."""

    def __init__(self, measures: Mapping[str, Callable[[int], float]], rounds: int) -> None:
        self._seconds: dict[str, list[float]] = {name: [] for name in measures}
        for number in range(rounds):
            for name, measure in measures.items():
                gc.collect()  # so that no candidate pays for the garbage of the one before
                self._seconds[name].append(measure(number))

    def microseconds(self, name: str) -> float:
        """Return the median of the rounds."""
        return median(self._seconds[name]) * 1e6

    def ratio(self, name: str, to: str) -> float:
        """Return how many times as long as `to` this candidate takes."""
        pairs = zip(self._seconds[name], self._seconds[to], strict=True)
        return median(one / other for one, other in pairs)
