"""Boxes of a page: "Note", "Warning" and the like, as generators of documents mark them.

A box has a kind, mostly a title that says it, and content. It is recognised by its classes:
`admonition note` (Sphinx, MkDocs), `admonitionblock tip` (AsciiDoctor), `note` with a title
(DocBook), `theme-admonition-info` (Docusaurus), `markdown-alert-note` (GitHub), `alert
alert-warning`, `notecard warning`, `custom-block danger`, `hint`, `callout`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from turbohtml import Element, Text

if TYPE_CHECKING:
    from turbohtml import Node

_KINDS = (
    "note", "warning", "caution", "danger", "tip", "hint", "important", "attention", "error",
    "info", "seealso", "success", "example", "todo", "question", "abstract", "bug", "deprecated",
    "notice",
)  # fmt: skip
_KIND = re.compile(rf"(?:^|[\s_-])({'|'.join(_KINDS)})(?=$|[\s_-])", re.IGNORECASE)
_BOX = re.compile(
    r"(?:^|[\s_-])(?:admonition|admonitionblock|alert|notecard|custom-block|callout|hint|aside|box|"
    r"message|messagebox|panel|information-macro|notice|infobox|block)(?=$|[\s_-])",
    re.IGNORECASE,
)
_CLEAR = frozenset(("note", "warning", "caution", "danger", "tip", "important", "hint"))
_TITLE = re.compile(
    r"(?:title|heading|head|header|label)(?=$|[\s_-])|^admonition-title$", re.IGNORECASE
)
_TAGS = frozenset(("aside", "blockquote", "details", "div", "dl", "p", "section", "table"))
_LONG_TITLE = 100  # characters; more is content
_WORDS = {"seealso": "See also", "error": "Error"}


class Box(NamedTuple):
    """A box: the element that is its title, if it has one, and the nodes of its content."""

    kind: str
    title: Element | None
    content: list[Node]


def box_of(element: Element) -> Box | None:
    """Return an element as a box; None if it is none."""
    if element.tag not in _TAGS:
        return None
    classes = element.attr("class") or ""
    kinds = _KIND.findall(classes)
    if not kinds and "admonition" not in classes:
        return None
    kind = kinds[-1].lower() if kinds else "note"  # "hint hint-warning" is a warning
    body, content = element, list(element.children)
    if element.tag == "div" and "admonitionblock" in classes:
        return _in_cells(element, kind)
    title = _title(body)
    is_marked = _BOX.search(classes) is not None or element.attr("role") in ("alert", "note")
    if classes.strip().lower() == kind:  # nothing but its kind
        is_marked = element.tag in ("aside", "details") or (kind in _CLEAR and element.tag != "p")
    if not is_marked and not (_says(title, kind) and len(classes.split()) <= 2):
        return None
    if title is not None:
        content = _without(body, title)
    return Box(_WORDS.get(kind, kind.capitalize()), title, content)


def is_box(element: Element) -> bool:
    """Return whether an element is a box."""
    return box_of(element) is not None


def _title(element: Element) -> Element | None:
    """Return the first element of a box, if it is a title."""
    for child in element.children:
        if isinstance(child, Text) and child.data.strip():
            return None
        if isinstance(child, Element) and child.text.strip():
            if child.tag in ("h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt"):
                return child
            is_titled = _TITLE.search(child.attr("class") or "") is not None
            if is_titled and len(child.text) < _LONG_TITLE:
                return child
            if _says(child, *_KINDS):
                return child
            return None
    return None


def _says(title: Element | None, *kinds: str) -> bool:
    if title is None or len(title.text) > _LONG_TITLE:
        return False
    said = title.text.strip(" \t\r\n:!¶").lower().replace(" ", "")
    return said in kinds


def _without(element: Element, title: Element) -> list[Node]:
    return [child for child in element.children if child != title]


def _in_cells(element: Element, kind: str) -> Box:
    """Return a box of AsciiDoctor: a table with an icon or a title, and the content."""
    content = element.select_one("td.content")
    nodes = list(element.children) if content is None else list(content.children)
    return Box(kind.capitalize(), None, nodes)
