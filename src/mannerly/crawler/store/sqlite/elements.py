"""The elements of pages (their links and what else a reader may ask for), many pages a row.

A page's elements are bytes to the store; `page.elements` makes and reads them. The menu of a site
is on each of its pages, so those of one commit are compressed together: a page of a documentation
site takes some 300 bytes, alone it would take five times as much. A commit of few pages, as in a
slow crawl, joins the last row instead of adding one, until that holds `FEW` pages.

Every page gets a number, `first` + its place in the row, and its record keeps the number. Elements
of a page that has changed since stay where they are: no record has their number any more.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .database import Database

FEW = 64  # pages
_LEVEL = 1  # three quarters of what level 6 saves, in a third of its time
_KEPT = 4  # rows that a reader keeps: those of pages that changed lie apart from the others

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[bytes]).decode

_LAST = "SELECT first, count FROM elements ORDER BY first DESC LIMIT 1"
_DATA = "SELECT data FROM elements WHERE first = ?"
_PUT = "INSERT OR REPLACE INTO elements (first, count, data) VALUES (?, ?, ?)"
_HOLDING = "SELECT first, data FROM elements WHERE first <= ? ORDER BY first DESC LIMIT 1"


def write_elements(
    database: Database, next_number: int, elements: Mapping[int, bytes]
) -> dict[int, int]:
    """Store the elements of pages, given by their seq; return the number of each."""
    if not elements:
        return {}
    first, parts = next_number, list(elements.values())
    if len(parts) < FEW:
        last = database.row(_LAST)
        if last is not None and last[1] + len(parts) <= FEW and sum(last) == next_number:
            row = database.row(_DATA, last[:1])
            assert row is not None
            first, parts = last[0], [*_unpacked(database, row[0]), *parts]
    database.execute(_PUT, (first, len(parts), zlib.compress(_encode(parts), _LEVEL)))
    return {seq: next_number + place for place, seq in enumerate(elements)}


class ElementsReader:
    """Reads elements by their numbers; those of pages in the order of commits are found fastest."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows: dict[int, list[bytes]] = {}  # by their first number

    def __call__(self, number: int) -> bytes | None:
        """Return the elements with a number; None if there are none (0)."""
        if number <= 0:
            return None
        for first, parts in self._rows.items():
            if first <= number < first + len(parts):
                return parts[number - first]
        row = self._database.row(_HOLDING, (number,))
        if row is None:
            return None
        first, parts = row[0], _unpacked(self._database, row[1])
        self._rows.pop(first, None)  # it has grown since
        if len(self._rows) >= _KEPT:
            del self._rows[next(iter(self._rows))]
        self._rows[first] = parts
        return parts[number - first] if number - first < len(parts) else None


def _unpacked(database: Database, data: object) -> list[bytes]:
    try:
        return _decode(zlib.decompress(data))  # type: ignore[arg-type]
    except (zlib.error, msgspec.MsgspecError, TypeError) as error:
        raise database.damaged(f"the links of some pages: {error}") from error
