"""Writes an element as Markdown: blocks here, the text in them in `markdown_text`.

We write it ourselves because turbohtml's own writer leaves HTML in its output (tables, `<div>`,
character references), flattens nested lists and knows no boxes and no languages of code.

    heading              # … ######
    list                 - or 1., nested by indentation
    code                 a fence, with the language that a class names (`blocks`)
    box                  > **Note** and its content as a quotation (`blocks`)
    table                a pipe table (below); a table for layout is read cell by cell
    term, definition     the term in bold, its definition below

The output is CommonMark with pipe tables, without any HTML. An element that is not known stands for
its content. Trees are up to 512 levels deep; below `_DEEPEST` only the text is taken.

A cell of a pipe table is one line: paragraphs are joined by a space, items of a list by a
semicolon. Cells that reach over several columns leave the others empty; those that reach over
several rows are repeated, so that each row can be read alone. Where no row is marked as the header,
the first one is taken, because a pipe table needs one. A table for layout is none: see `is_layout`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turbohtml import Element, Text

from .blocks import CODE_TABLES, box_of, fenced
from .markdown_text import Inline, escaped_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from turbohtml import Document, Node


_DEEPEST = 120  # levels of blocks
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_PROSE = frozenset(("p", "li", "dd", "td", "th", "figcaption", "blockquote"))
_SMALL = frozenset(("a", "label", "small", "span", "time"))
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
BLOCKS = frozenset(
    (
        "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog",
        "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3",
        "h4", "h5", "h6", "header", "hgroup", "hr", "html", "li", "main", "nav", "p", "pre",
        "search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr",
        *_LISTS,
    )
)  # fmt: skip


def markdown(part: Element | Document, resolve: Callable[[str], str | None]) -> str:
    """Return an element as Markdown; `resolve` returns the absolute URL of a link, or None."""
    return "\n\n".join(_Blocks(Inline(resolve)).of(part)) + "\n"


class _Blocks:
    """Writes blocks; each is a text of one or more lines."""

    def __init__(self, inline: Inline) -> None:
        self._inline = inline
        self._depth = 0

    def of(self, parent: Node) -> list[str]:
        """Return the blocks of an element's content."""
        is_prose = isinstance(parent, Element) and parent.tag in _PROSE
        return self._of(parent.children if is_prose else _spaced(parent.children))

    def _of(self, nodes: Iterable[Node]) -> list[str]:
        found: list[str] = []
        loose: list[Node] = []  # text outside of any block
        for node in nodes:
            if isinstance(node, Element) and _is_block(node):
                self._end_loose(loose, found)
                found += self._block(node)
            elif isinstance(node, Element | Text):
                loose.append(node)
        self._end_loose(loose, found)
        return found

    def _end_loose(self, loose: list[Node], found: list[str]) -> None:
        if loose:
            text = self._inline.of(loose)
            if text:
                found.append(escaped_start(text))
            loose.clear()

    def _block(self, element: Element) -> list[str]:
        if self._depth >= _DEEPEST:
            text = " ".join(element.text.split())
            return [escaped_start(text)] if text else []
        self._depth += 1
        try:
            return self._written(element)
        finally:
            self._depth -= 1

    def _written(self, element: Element) -> list[str]:
        tag = element.tag
        if tag in _HEADINGS:
            text = self._inline.heading(element)
            return [f"{'#' * _HEADINGS[tag]} {text}"] if text else []
        if tag == "pre" or not CODE_TABLES.isdisjoint(_classes(element)):
            return fenced(element)
        if (box := box_of(element)) is not None:
            title = self._inline.line(box.title) if box.title is not None else box.kind
            title = box.kind if title == box.kind.lower() else title
            inside = self._of(box.content)
            is_said = box.title is None and bool(inside) and inside[0].startswith(f"**{box.kind}")
            return _quoted(inside if is_said else [f"**{title.strip('*: ')}**", *inside])
        if tag in _LISTS:
            return self._list(element)
        if tag == "table":
            return self._table(element)
        return self._plain(element)

    def _plain(self, element: Element) -> list[str]:
        tag = element.tag
        if tag == "hr":
            return ["---"]
        if tag == "blockquote":
            return _quoted(self.of(element))
        if tag in ("dt", "summary"):
            return self._term(element)
        if tag == "a":  # around whole blocks
            return self._inline.around(element, self.of(element))
        if tag == "li":  # outside of a list
            blocks = self.of(element)
            return [_item("- ", blocks)] if blocks else []
        return self.of(element)

    def _term(self, element: Element) -> list[str]:
        if "sig" in _classes(element):  # the signature of a function
            return [self._inline.code(element)]
        text = self._inline.line(element)
        is_marked = text.startswith(("**", "`")) and text.endswith(("**", "`"))
        return [text if is_marked else f"**{text}**"] if text else []

    def _list(self, element: Element) -> list[str]:
        number = _start(element) if element.tag == "ol" else None
        items: list[str] = []
        for child in element.children:
            if not isinstance(child, Element):
                continue
            if child.tag in _LISTS and items:  # a list in a list without an item of its own
                items[-1] += "\n" + _indented("\n".join(self._list(child)), "  ")
                continue
            blocks = self.of(child) if child.tag == "li" else self._block(child)
            if not blocks:
                continue
            marker = "- " if number is None else f"{number}. "
            items.append(_item(marker, blocks))
            number = None if number is None else number + 1
        return ["\n".join(items)] if items else []

    def _table(self, element: Element) -> list[str]:
        if is_layout(element):
            return [block for cell in cells_of(element) for block in self.of(cell)]
        found = []
        caption = element.find("caption")
        if caption is not None and (text := self._inline.line(caption)):
            found.append(text)
        table = pipe_table(element, self._inline.cell)
        return [*found, table] if table else found


def _spaced(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes, with a blank between small elements that only style sheets keep apart."""
    last: Node | None = None
    for node in nodes:
        is_small = isinstance(node, Element) and node.tag in _SMALL
        if is_small and isinstance(last, Element) and last.tag in _SMALL:
            yield Text(" ")
        last = node
        yield node


def _is_block(element: Element) -> bool:
    if element.tag in BLOCKS:
        return True
    return next(element.iter_elements(BLOCKS), None) is not None


def _classes(element: Element) -> list[str]:
    return (element.attr("class") or "").split()


def _start(element: Element) -> int:
    given = element.attr("start") or ""
    return int(given) if given.isdecimal() and len(given) < 7 else 1


def _item(marker: str, blocks: list[str]) -> str:
    """Return an item: a list or a short block after its first line follows without a blank line."""
    text = blocks[0]
    for block in blocks[1:]:
        is_list = block.startswith(("- ", "1. "))
        text += ("\n" if is_list else "\n\n") + block
    return marker + _indented(text, " " * len(marker)).lstrip()


def _indented(text: str, by: str) -> str:
    return "\n".join(by + line if line else line for line in text.split("\n"))


def _quoted(blocks: list[str]) -> list[str]:
    text = "\n\n".join(blocks)
    return ["\n".join(f"> {line}" if line else ">" for line in text.split("\n"))] if text else []


# ---------------------------------------------------------------------- tables


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
