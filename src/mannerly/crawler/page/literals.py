"""Texts that the code of the user spells out, as opposed to those that it was given.

A reference to a secret is one only if the user has written it: a page may lead a program to any
text, but not into the source of the program.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType

_OURS = __name__.partition(".")[0]


def is_written_by_caller(text: str) -> bool:
    """Return whether a text is a literal of the code that calls into this package.

    That is each function under way up to the package's own that called it, and the whole file that
    it is in. Code without a file (typed in a shell) has the literals of its functions alone.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals):
        frame = frame.f_back
    while not _is_ours(frame.f_globals):
        code = frame.f_code
        if _has(code, text) or text in _literals_of(code.co_filename):
            return True
        if frame.f_back is None:
            break
        frame = frame.f_back
    return False


def _is_ours(names: dict[str, object]) -> bool:
    return str(names.get("__name__")).partition(".")[0] == _OURS


def _has(code: CodeType, text: str) -> bool:
    """Return whether a function, or one in it, has a text as a constant."""
    return any(
        text in each if isinstance(each, tuple) else text == each or _is_in_code(each, text)
        for each in code.co_consts
    )


def _is_in_code(constant: object, text: str) -> bool:
    return hasattr(constant, "co_consts") and _has(constant, text)  # type: ignore[arg-type]


def _literals_of(file: str) -> frozenset[str]:
    """Return the texts that a source file spells out; none if it cannot be read."""
    try:
        found = Path(file).stat()
        return _parsed(file, found.st_mtime_ns, found.st_size)
    except (OSError, SyntaxError, ValueError):
        return frozenset()


@lru_cache(maxsize=64)
def _parsed(file: str, _changed_at: int, _size: int) -> frozenset[str]:
    with tokenize.open(file) as source:
        tree = ast.parse(source.read())
    return frozenset(
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )
