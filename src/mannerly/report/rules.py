"""Rules of --fail-on: a number of the findings against a limit, for CI.

    broken>0       refused>1%       slow>2s       pages<100

A rule that cannot be read is refused with what is allowed, before anything is crawled.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from .findings import Numbers

_RULE = re.compile(r"\s*([a-z0-9_-]+)\s*(>=|<=|>|<)\s*([0-9]+(?:\.[0-9]+)?)\s*(%|ms|s|)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class RuleError(ValueError):
    """A rule that cannot be read. The message says what is allowed."""


class Measure(NamedTuple):
    """Something that a rule can be about."""

    help: str
    value: Callable[[Numbers], float]
    whole: Callable[[Numbers], float] | None = None  # what 100 % are; None: no percentage
    is_time: bool = False  # in seconds


def _pages(numbers: Numbers) -> float:
    return numbers.pages


MEASURES = {
    "broken": Measure("broken link targets", lambda each: each.broken, _pages),
    "failed": Measure("pages without an answer", lambda each: each.failed, _pages),
    "given-up": Measure("URLs of hosts that were given up", lambda each: each.given_up),
    "chains": Measure("chains of two redirects and more, and loops", lambda each: each.chains),
    "loops": Measure("redirects that never end", lambda each: each.loops),
    "duplicates": Measure(
        "groups of pages with the same title or text", lambda each: each.duplicates
    ),
    "unindexable": Measure(
        "pages that a search engine does not list", lambda each: each.not_indexable, _pages
    ),
    "refused": Measure(
        "refused requests", lambda each: each.proof.refused, lambda each: each.proof.requests
    ),
    "early": Measure("requests that broke a host's gap", lambda each: each.proof.early),
    "pages": Measure("pages", _pages),
    "slow": Measure(
        "time to first byte of the slowest page", lambda each: each.slowest_s, is_time=True
    ),
    "median": Measure("its median", lambda each: each.median_s, is_time=True),
    "p95": Measure(
        "the time within which 95 % of the pages answered", lambda each: each.p95_s, is_time=True
    ),
}


class FailRule(NamedTuple):
    """One rule of --fail-on, and what it was written as."""

    text: str
    name: str
    compare: str
    limit: float  # in seconds, per cent or pieces
    unit: str

    def value(self, numbers: Numbers) -> float:
        """Return the number that is compared."""
        measure = MEASURES[self.name]
        value = measure.value(numbers)
        if self.unit == "%" and measure.whole is not None:
            whole = measure.whole(numbers)
            return 100.0 * value / whole if whole else 0.0
        return value

    def broken(self, numbers: Numbers) -> str | None:
        """Return the rule with the number that broke it; None if it holds."""
        value = self.value(numbers)
        if not _COMPARE[self.compare](value, self.limit):
            return None
        return f"--fail-on {self.text}: {self.name} is {_shown(value, self.unit)}"


def parse_rule(text: str) -> FailRule:
    """Read a rule.

    Raises:
        RuleError: it is no rule.
    """
    match = _RULE.fullmatch(text)
    if match is None:
        raise RuleError(
            f"--fail-on {text}: write a name, a comparison and a number, such as broken>0, "
            f"refused>1% or slow>2s; {_allowed()}"
        )
    name, compare, number, unit = match.groups()
    name = name.replace("_", "-")
    measure = MEASURES.get(name)
    if measure is None:
        raise RuleError(f"--fail-on {text}: there is no {name}; {_allowed()}")
    if measure.is_time and unit not in ("s", "ms"):
        raise RuleError(f"--fail-on {text}: {name} is a time, so add s or ms, as in {name}>2s")
    if not measure.is_time and unit in ("s", "ms"):
        raise RuleError(f"--fail-on {text}: {name} is no time, so leave out {unit}")
    if unit == "%" and measure.whole is None:
        raise RuleError(f"--fail-on {text}: {name} is no share, so leave out %")
    limit = float(number) / 1000 if unit == "ms" else float(number)
    return FailRule(text.strip(), name, compare, limit, unit)


def _allowed() -> str:
    return f"allowed: {', '.join(MEASURES)}"


def _shown(value: float, unit: str) -> str:
    if unit == "%":
        return f"{value:.2f} %"
    if unit == "ms":
        return f"{value * 1000:,.0f} ms"
    return f"{value:.2f} s" if unit == "s" else f"{value:,.0f}"
