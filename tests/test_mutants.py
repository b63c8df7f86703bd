"""The list of mutants: each can be applied, and each capability that was asked for has one."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutants.catalogue import MUTANTS
from mutants.model import SOURCE
from mutants.requirements import NO_CODE, PAGE, filled, is_named, mutants_of, rows

ROOT = Path(__file__).parents[1]
ROWS = rows(PAGE.read_text("utf-8"))


@pytest.mark.parametrize("file", sorted({each.file for each in MUTANTS}))
def test_mutants_can_be_applied(file: str) -> None:
    """The line of each mutant is in its file, once."""
    text = (ROOT / SOURCE / file).read_text("utf-8")

    for mutant in MUTANTS:
        if mutant.file == file:
            assert mutant.applied(text) != text, mutant.name


def test_names_of_mutants_are_theirs_alone() -> None:
    """The command finds a mutant by its name."""
    names = [each.name for each in MUTANTS]

    assert sorted(names) == sorted(set(names))


def test_every_row_that_states_code_has_a_mutant() -> None:
    """A row without one says why: it is a figure, or declined."""
    bare = [row for row in ROWS if not mutants_of(row, MUTANTS)]

    assert set(bare) == set(NO_CODE)


def test_mutants_of_a_row_are_noticed_by_a_test_that_it_names() -> None:
    """What shows a capability is what fails without it."""
    unnamed = [
        (row, mutant.name)
        for row, tests in ROWS.items()
        for mutant in mutants_of(row, MUTANTS)
        if not is_named(mutant, tests)
    ]

    assert unnamed == []


def test_page_of_requirements_names_the_mutants() -> None:
    """Its last column is what `python -m mutants --rows` writes."""
    page = PAGE.read_text("utf-8")

    assert filled(page, MUTANTS) == page
