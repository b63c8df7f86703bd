"""Write comma-separated values (RFC 4180) in UTF-8, with a header line; CR LF ends a row.

A spreadsheet runs a cell that begins with = + - or @ as a formula, and the title of a page cannot
be trusted. So a text cell that begins with one of them, or with a tab or a carriage return (which
some programs drop first), gets an apostrophe in front: spreadsheets hide it, and other programs can
remove it. Numbers stay as they are.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .rows import Row

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(rows: Iterable[Row], fields: Sequence[str], file: BinaryIO) -> int:
    """Write the rows under `fields`; return the number of rows."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
    # With LF alone Python does not quote a cell that has a CR, and readers would see two rows.
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(fields)
    count = 0
    for row in rows:
        writer.writerow([_cell(row.get(field)) for field in fields])
        count += 1
    text.flush()
    text.detach()  # the file is the caller's to close
    return count


def _cell(value: str | float | None) -> str | float | None:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return value
