"""selectolax (lexbor) as the other reader: the check on turbohtml, and what to fall back on.

Lexbor builds the same tree, but its time grows with the square of the nesting depth (488 KB of open
`<div>`: 21 s) and of the number of attributes of one tag. So the text is scanned first, in linear
time, and a page that could hurt is refused. Formatting is always disarmed (`page/tree.py`).

The scan is rough on purpose. It counts tags that are open at once, leaving out those that close
themselves (`<br>`) or each other (`<li>`), and takes tags inside scripts for tags: it may refuse a
strange page, but normal ones nest some tens of levels.

Unlike turbohtml it does not look inside `<template>`.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from mannerly.crawler.page.parsed import from_tree
from mannerly.crawler.page.tree import disarmed

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

    from mannerly.crawler.page.parsed import Elements

# At these bounds lexbor's square is still some tens of milliseconds.
MAX_DEPTH = 512
MAX_ATTRIBUTES = 512

_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)([^>]*)")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_BETWEEN_ATTRIBUTES = re.compile(r"[\s/]+")

# Void elements, and elements whose end tag may be left out: neither nests on its own.
_FLAT = frozenset(
    {
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source",
        "track", "wbr",
        "body", "colgroup", "dd", "dt", "head", "html", "li", "optgroup", "option", "p", "rp",
        "rt", "tbody", "td", "tfoot", "th", "thead", "tr",
    }
)  # fmt: skip


class TooComplex(Exception):  # noqa: N818 - a verdict on a page, not a fault of ours
    """The page could make lexbor slow, so it was not parsed."""


def read(body: bytes, codec: str, limit: int) -> Elements:
    """Parse a whole document, or raise `TooComplex`."""
    text = body.decode(codec, "replace")
    _refuse_hostile(text)
    document = LexborHTMLParser(disarmed(text))
    titles = (node.text() for node in document.css("title") if not _is_in_svg(node))
    headings = (text for node in document.css("h1") if (text := node.text().strip()))
    return from_tree(next(titles, None), partial(_find, document, limit), next(headings, None))


class _Element:
    """A lexbor node with the one question that the collector asks."""

    __slots__ = ("_attributes",)

    def __init__(self, node: LexborNode) -> None:
        self._attributes = node.attributes

    def attr(self, name: str, /) -> str | None:
        """Lexbor has None for an attribute without a value; browsers have an empty one."""
        if name not in self._attributes:
            return None
        return self._attributes[name] or ""


def _find(document: LexborHTMLParser, limit: int, tag: str) -> list[_Element]:
    return [_Element(node) for node in islice(document.css(tag), limit)]


def _is_in_svg(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.tag != "svg":
        parent = parent.parent
    return parent is not None


def _refuse_hostile(text: str) -> None:
    depth = 0
    for tag in _TAG.finditer(text):
        closing, name, rest = tag.groups()
        if len(rest) > MAX_ATTRIBUTES and _attributes(rest) > MAX_ATTRIBUTES:
            raise TooComplex(f"a tag with more than {MAX_ATTRIBUTES} attributes")
        if name.lower() in _FLAT:
            continue
        depth = max(0, depth - 1) if closing else depth + 1
        if depth > MAX_DEPTH:
            raise TooComplex(f"more than {MAX_DEPTH} elements inside each other")


def _attributes(rest: str) -> int:
    """How many attributes a tag may have at most; values in quotes hold spaces and slashes too."""
    return len(_BETWEEN_ATTRIBUTES.split(_QUOTED.sub("", rest)))
