"""The rows of docs/requirements.md, and the mutants that state them.

A row says what was asked for, where it is and which test shows it. Its mutant is that capability
made wrong; a test that the row names must notice it. A row without a mutant says why.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .run import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .model import Mutant

PAGE = ROOT / "docs" / "requirements.md"

# Rows that state no code of their own: a figure is measured, and a measurement fails no test.
NO_CODE = {
    "A17": "none: a figure",
    "H6": "none: declined",
    "K7": "none: a figure",
    "K8": "none: a figure",
}

_ROW = re.compile(r"^\| ([A-K]\d+) \| (.*) \| ([^|]*) \|$", re.MULTILINE)
_TEST = re.compile(r"`(?:tests/)?(test_\w+|[\w/]+\.py)`")


def rows(page: str) -> dict[str, set[str]]:
    """Return the names of the tests, or of their files, that each row has."""
    return {row: set(_TEST.findall(words)) for row, words, _ in _ROW.findall(page)}


def mutants_of(row: str, mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return the mutants that state a row."""
    return [each for each in mutants if row in each.rows]


def is_named(mutant: Mutant, tests: set[str]) -> bool:
    """Return whether a row with these tests names all that may notice the mutant."""
    return all(test.rpartition("::")[2] in tests for test in mutant.tests)


def filled(page: str, mutants: Iterable[Mutant]) -> str:
    """Return the page with the mutants of each row in its last column."""
    known = list(mutants)

    def line(found: re.Match[str]) -> str:
        row, words, _ = found.groups()
        names = "; ".join(each.name for each in mutants_of(row, known))
        return f"| {row} | {words} | {names or NO_CODE.get(row, '')} |"

    return _ROW.sub(line, page)
