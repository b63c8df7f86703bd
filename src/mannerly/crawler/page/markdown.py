"""Writes an element as Markdown: blocks here, the text in them in `markdown_text`.

We write it ourselves because turbohtml's own writer leaves HTML in its output (tables, `<div>`,
character references), flattens nested lists and knows no boxes and no languages of code.

    heading              # … ######
    list                 - or 1., nested by indentation
    code                 a fence, with the language that a class names (`code_blocks`)
    box                  > **Note** and its content as a quotation (`boxes`)
    table                a pipe table (`markdown_table`); a table for layout is read cell by cell
    term, definition     the term in bold, its definition below

The output is CommonMark with pipe tables, without any HTML. An element that is not known stands for
its content. Trees are up to 512 levels deep; below `_DEEPEST` only the text is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turbohtml import Element, Text

from .boxes import box_of
from .code_blocks import CODE_TABLES, fenced
from .markdown_table import cells_of, is_layout, pipe_table
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
