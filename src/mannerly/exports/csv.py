"""Write comma-separated values (RFC 4180) in UTF-8, with a header line; CR LF ends a row.

A spreadsheet runs a cell that begins with = + - or @ as a formula, and the title of a page cannot
be trusted. So a text cell that begins with one of them, or with one of their other forms (full
width, small, superscript), gets an apostrophe in front: spreadsheets hide it, and other programs
can remove it. White space, control characters and invisible ones in front are skipped, since
some programs drop them first; a cell that begins with a tab or a line end is marked in any case.
Numbers stay as they are. `is_raw` turns this off, for programs that read cells to the letter.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_FORMULA = frozenset("=+-@\N{MINUS SIGN}\N{HYPHEN}")  # after NFKC, which folds their other forms
_DROPPED = "\t\r\n"
# Control and format characters, spaces and line ends, marks, and what is not assigned.
_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Zs", "Zl", "Zp", "Mn"})


def write_csv(
    rows: Iterable[Mapping[str, object]],
    fields: Sequence[str],
    file: BinaryIO,
    *,
    has_head: bool = True,
    is_raw: bool = False,
) -> int:
    """Write the rows under `fields`, whose names are the first line; return the number of rows.

    With `is_raw` no cell gets an apostrophe: a spreadsheet may run what a page has written.
    """
    cell = _unchanged if is_raw else _defused
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
    # With LF alone Python does not quote a cell that has a CR, and readers would see two rows.
    writer = csv.writer(text, lineterminator="\r\n")
    if has_head:
        writer.writerow([cell(field) for field in fields])
    count = 0
    for row in rows:
        writer.writerow([cell(row.get(field)) for field in fields])
        count += 1
    text.flush()
    text.detach()  # the file is the caller's to close
    return count


def _unchanged(value: object) -> object:
    return value


def _defused(value: object) -> object:
    if isinstance(value, str) and value and not value[0].isalnum() and _may_run(value):
        return "'" + value
    return value


def _may_run(text: str) -> bool:
    """Return whether a spreadsheet may take text for a formula."""
    if text[0] in _DROPPED:
        return True
    for character in text:
        if unicodedata.category(character) in _INVISIBLE:
            continue
        return unicodedata.normalize("NFKC", character)[:1] in _FORMULA
    return False
