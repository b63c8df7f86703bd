"""Every row of the hostile web has a test, and a line in docs/explanation/reliability.md."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.hostile.table import PAGE
from tests.hostile.threats import ROWS

TESTS = Path(__file__).parents[1]
FAULTS, THREATS = 33, 31


@cache
def _names(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_row_is_there() -> None:
    """F1 to F33 and S1 to S31, each once and in order."""
    ids = [f"F{n}" for n in range(1, FAULTS + 1)] + [f"S{n}" for n in range(1, THREATS + 1)]

    assert [row.id for row in ROWS] == ids


def test_every_row_has_a_test_or_waits_for_something() -> None:
    """A row without a test says what has to exist first, and a claim has a test."""
    assert [row.id for row in ROWS if bool(row.tests) == bool(row.waits_for)] == []
    assert [row.id for row in ROWS if bool(row.tests) != bool(row.holds)] == []


def test_every_test_of_a_row_exists() -> None:
    """A test that was renamed or removed is missed here."""
    missing = [
        (row.id, test)
        for row in ROWS
        for test in row.tests
        if test.partition("::")[2] not in _names(test.partition("::")[0])
    ]

    assert missing == []


def test_page_has_every_row_as_it_is() -> None:
    """The generated page names each row, its claim and its tests."""
    text = PAGE.read_text("utf-8")
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if "|" in line}

    stale = [
        row.id
        for row in ROWS
        if row.tests
        and not (
            row.holds in lines.get(row.id, "")
            and all(f"`{test.partition('::')[2]}`" in lines[row.id] for test in row.tests)
        )
    ]
    assert stale == [], "run `make reliability`"
