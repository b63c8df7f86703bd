"""Reads any page by building its tree with turbohtml, the fastest parser that resists attacks.

It builds the tree that browsers build, in 0.2 ms for a page of 45 KB, and needs 0.01–0.06 s for the
nested and attribute-heavy pages on which lexbor takes up to 26 s. It is a young package, so in the
tests lexbor reads the same pages beside it.

One attack it does not resist: formatting that is copied into every block (`disarm.py`). Its trees
are 512 levels deep at most, so n tags make 512·n elements at worst. Up to `MAX_TAGS` that is 0.04 s
and 50 MB, and such a page is parsed as it is. A larger one is disarmed first for its links; for its
content and for selectors only the formatting goes that could be copied too often (`formatting.py`).
A NUL takes 50 times the memory of another character, so a page with many of them is read without
them.

Links inside `<template>` count, because scripts put them on the page. A wrong link costs one check
later; a missed link is lost.
"""

from __future__ import annotations

from functools import partial
from html import escape
from typing import TYPE_CHECKING

from turbohtml import Namespace, parse

from mannerly.crawler.web.charset import decoded

from .disarm import disarmed
from .elements import KEPT_TAGS, MAX_TEXT
from .formatting import bounded
from .parsed import from_tree
from .tags import HEADING_ENDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from turbohtml import Document

    from .parsed import Elements

MAX_TAGS = 1000
MAX_LENGTH = 50_000  # a copy of formatting has its attributes, too
MAX_NULS = 1000


def read(body: bytes, codec: str, limit: int) -> Elements:
    """Parse a whole document. The first `find` builds an index of it, the others are cheap."""
    return _elements(parsed(body, codec), limit)


def read_all(body: bytes, codec: str, limit: int) -> Elements:
    """Read the same elements, and keep those that readers of the links ask for (`elements`)."""
    document = parsed(body, codec)
    return _elements(document, limit)._replace(kept=_kept(document, limit))


def parsed(body: bytes, codec: str) -> Document:
    """Return the tree of a document without its formatting, bounded in the time that it takes."""
    return _parse(decoded(body, codec), disarmed)


def parse_text(text: str) -> Document:
    """Return the tree of a text with its formatting, bounded in the time that it takes."""
    return _parse(text, bounded)


def _parse(text: str, made_safe: Callable[[str], str]) -> Document:
    if text.count("\0") > MAX_NULS:
        text = text.replace("\0", "")
    if len(text) > MAX_LENGTH or text.count("<") > MAX_TAGS:
        text = made_safe(text)
    return parse(text, positions=False)


def _elements(document: Document, limit: int) -> Elements:
    find = partial(document.find_all, limit=limit)
    heading = next((text for each in find("h1") if (text := each.text.strip(HEADING_ENDS))), None)
    return from_tree(_title(document), find, heading)


def _kept(document: Document, limit: int) -> bytes:
    """Write the elements as the scan of an ordinary page finds them."""
    fields = ["utf-8"]
    for name, attributes in KEPT_TAGS.items():
        for each in document.find_all(name, limit=limit):
            given = [(key, value) for key in attributes if (value := each.attr(key)) is not None]
            values = "".join(f' {key}="{_quoted(value)}"' for key, value in given)
            text = each.text if name in ("a", "script") else ""
            if name == "script" and "ld+json" in (each.attr("type") or ""):
                fields += ["", f"<script{values}>{_without_nul(text)}"]
            elif name == "a":
                fields += [f"<a{values}", _quoted(text[:MAX_TEXT])]
            elif given:
                fields += [f"<{name}{values}", ""]
    return "\0".join(fields).encode("utf-8", "replace")


def _quoted(value: str) -> str:
    return escape(_without_nul(value))


def _without_nul(text: str) -> str:
    return text.replace("\0", "") if "\0" in text else text


def _title(document: Document) -> str | None:
    first = document.find("title")
    if first is None or first.namespace is Namespace.HTML:
        return None if first is None else first.text
    # The first may be the label of an SVG drawing; the title of the document is an HTML element.
    titles = document.find_all("title")
    return next((each.text for each in titles if each.namespace is Namespace.HTML), None)
