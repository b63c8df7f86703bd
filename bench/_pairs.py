"""Compare the CPU time of whole processes: they run at the same time, and share one core.

A machine that others use is slower in one minute than in the next, so that ratios of runs one after
the other move by a tenth and more. Processes that take turns on one core every few milliseconds
meet the same machine, and their ratio stays within a few per cent. They pay for sharing its caches,
but all of them do.

The figure is the median of the rounds' ratios with its 90 % interval (from the order statistics of
the binomial distribution): a bound is broken when the whole interval lies above it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import comb
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")

ROUNDS = 12
COVERED = 0.9


class Ratio(NamedTuple):
    """A median of ratios, and the interval that holds it with a probability of 90 %."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} (90 %: {self.low:.3f} to {self.high:.3f})"

    def figures(self) -> dict[str, float]:
        """Return the three for a file of figures."""
        return {"ratio": self.median, "ratio_low": self.low, "ratio_high": self.high}


def at_once(measures: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Call all at the same time, in threads; each starts a process and waits for its end."""
    with ThreadPoolExecutor(len(measures)) as pool:
        begun = {name: pool.submit(measure) for name, measure in measures.items()}
    return {name: each.result() for name, each in begun.items()}


def ratio(ones: Sequence[float], others: Sequence[float]) -> Ratio:
    """Compare the figures of two candidates, round by round."""
    ratios = [one / other for one, other in zip(ones, others, strict=True)]
    return Ratio(median(ratios), *interval(ratios))


def interval(ratios: Sequence[float], covered: float = COVERED) -> tuple[float, float]:
    """Return the narrowest symmetric pair of order statistics that covers the median so often."""
    ordered, count = sorted(ratios), len(ratios)
    outside = 0.0
    for rank in range(count // 2):
        outside += 2 * comb(count, rank) / 2**count
        if outside > 1.0 - covered:
            return ordered[max(0, rank - 1)], ordered[count - max(1, rank)]
    return ordered[(count - 1) // 2], ordered[count // 2]
