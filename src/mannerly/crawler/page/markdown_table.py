"""A table of a page as a pipe table of Markdown.

A cell is one line there: paragraphs are joined by a space, items of a list by a semicolon. Cells
that reach over several columns leave the others empty; those that reach over several rows are
repeated, so that each row can be read alone. Where no row is marked as the header, the first one is
taken, because a pipe table needs one. A table for layout is none: see `is_layout`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turbohtml import Element

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_COLUMNS = 100
_LAYOUT = "table, pre, h1, h2, h3, ul ul, blockquote, article, form"


def is_layout(table: Element) -> bool:
    """Return whether a table only arranges what is in it."""
    if table.attr("role") in ("presentation", "none"):
        return True
    rows = list(_rows(table))
    if all(len(cells) <= 1 for cells in rows):
        return True
    if table.select_one("th") is not None:
        return table.select_one("table") is not None
    return table.select_one(_LAYOUT) is not None


def cells_of(table: Element) -> Iterator[Element]:
    """Yield the cells of a table, row by row, and its caption first."""
    caption = table.find("caption")
    if caption is not None:
        yield caption
    for cells in _rows(table):
        yield from cells


def pipe_table(table: Element, text_of: Callable[[Element], str]) -> str:
    """Return a table in Markdown; `text_of` returns a cell on one line."""
    rows = _filled(table, text_of)
    if not rows:
        return ""
    width = max(map(len, rows))
    if not _has_header(table) and not any(rows[0]):
        rows = rows[1:] or rows
    lines = [f"| {' | '.join((*row, *[''] * (width - len(row))))} |" for row in rows]
    return "\n".join((lines[0], "|" + " --- |" * width, *lines[1:]))


def _rows(table: Element) -> Iterator[list[Element]]:
    """Yield the cells of each row, the rows of the head first; not those of tables inside."""
    groups: dict[str, list[list[Element]]] = {"thead": [], "tbody": [], "tfoot": []}
    for child in table.children:
        if isinstance(child, Element) and child.tag in groups:
            for row in child.children:
                if isinstance(row, Element) and row.tag == "tr":
                    groups[child.tag].append(_cells(row))
    for rows in groups.values():
        yield from (cells for cells in rows if cells)


def _cells(row: Element) -> list[Element]:
    return [each for each in row.children if isinstance(each, Element) and each.tag in ("td", "th")]


def _has_header(table: Element) -> bool:
    return table.select_one("thead th, tr:first-child th") is not None


def _filled(table: Element, text_of: Callable[[Element], str]) -> list[list[str]]:
    found: list[list[str]] = []
    below: dict[int, tuple[int, str]] = {}  # column: rows that are still to come, text
    for cells in _rows(table):
        row: list[str] = []
        for cell in cells:
            _fill(row, below)
            text = text_of(cell)
            if (rows := _span(cell, "rowspan")) > 1:
                below[len(row)] = (rows - 1, text)
            row += [text, *[""] * (_span(cell, "colspan") - 1)]
        _fill(row, below)
        if any(row):
            found.append(row[:MAX_COLUMNS])
    return found


def _fill(row: list[str], below: dict[int, tuple[int, str]]) -> None:
    while (place := len(row)) in below:
        left, text = below.pop(place)
        if left > 1:
            below[place] = (left - 1, text)
        row.append(text)


def _span(cell: Element, name: str) -> int:
    given = cell.attr(name) or ""
    return min(int(given), MAX_COLUMNS) if given.isdecimal() and len(given) < 5 else 1
