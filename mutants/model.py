"""A mutant, and the outcome of running its tests."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

SOURCE = "src/mannerly/"


class Mutant(NamedTuple):
    """One wrong line: `old` occurs exactly once in `file` and is replaced by `new`."""

    name: str  # a sentence in two to five words: what is broken
    promise: str  # P1 to P8, or the threat (S) that it lets in, or the first of its `rows`
    file: str  # below src/mannerly
    old: str
    new: str
    tests: tuple[str, ...]  # pytest's node ids, below tests/: at least one must fail
    rows: tuple[str, ...] = ()  # of docs/requirements.md: the capabilities that it breaks

    def applied(self, text: str) -> str:
        """Return the mutated text of its file.

        Raises:
            ValueError: the line is not there, or more than once: the list needs care.
        """
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.file} has the text of this mutant {count} times, not once")
        return text.replace(self.old, self.new)


class Fate(Enum):
    """The outcome for one mutant; only KILLED is well."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    TIMED = "KILLED BY A CLOCK"  # a deadline or a time-out noticed it, not a claim
    HUNG = "HUNG"
    BROKEN = "BROKEN"  # not applied, or its tests could not run


class Result(NamedTuple):
    """What became of a mutant, and which test noticed it."""

    mutant: Mutant
    fate: Fate
    detail: str
    seconds: float
