"""Reads any page by building its tree with turbohtml, the fastest parser that resists attacks.

It builds the tree that browsers build, in 0.2 ms for a page of 45 KB, and needs 0.01–0.06 s for the
nested and attribute-heavy pages on which lexbor takes up to 26 s. It is a young package, so in the
tests lexbor reads the same pages beside it.

One attack it does not resist: formatting that is copied into every block (below). Its trees are 512
levels deep at most, so n tags make 512·n elements at worst. Up to `MAX_TAGS` that is 0.04 s and 50
MB, and such a page is parsed as it is. A larger one is disarmed first for its links; for its
content and for selectors only the formatting goes that could be copied too often (below). A NUL
takes 50 times the memory of another character, so a page with many of them is read without them.

Links inside `<template>` count, because scripts put them on the page. A wrong link costs one check
later; a missed link is lost.

`disarmed` removes formatting tags, which one rule of HTML would copy into every later block. By the
rules of HTML, `<p><b id=1>…<b id=500>` makes each later `<p>x` hold five hundred new `<b>`. That is
how browsers read old pages, and how 150 KB become fifteen million elements, 8 seconds and 2 GB in
turbohtml, and worse in lexbor. Counting open tags does not detect such a page, because a comment or
an `<object>` can hide the end tags from a scan or from the parser.

But a crawler reads links, and formatting has none. So its start tags become `<wbr>`, which holds
nothing and is never copied; every parser ignores end tags without a start tag. `<a>` stays: only
one can be open at a time. The cost: a literal `<b>` inside a title or inside a link is changed.

`bounded` removes only the formatting tags that would be copied without end. Removing all of them is
right for links, but content and selectors need `<code>` and `<em>`. What explodes is formatting
that stays open while blocks begin and end: it is copied into each of them. So one pass follows what
is open:

    closed before any block begins or ends      kept: it can be copied nowhere
    open when a block begins or ends            kept while few of such are open at once
    never closed, or not certainly              kept, and counts as open until the end

"Few" is `MAX_COPIES` divided by the tags of the page: this product bounds the elements that copying
can add. A start tag beyond it becomes `<wbr>`, as in `disarmed`.

The pass is no parser, and errs on one side: it sees every start tag that a parser can see, and
those in comments and scripts too. An end tag closes something only if all tags since its start tag
are written as they should be and cannot hide it. Anything else (a comment, an `<object>`, a quote
that is left open) makes what is open count to the end of the page.
"""

from __future__ import annotations

import re
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from turbohtml import Namespace, parse

from mannerly.crawler.web.charset import decoded

from .elements import HEADING_ENDS, KEPT_TAGS, MAX_TEXT
from .parsed import from_tree

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


# ---------------------------------------------------------------------- formatting removed


# The first letter decides nearly every tag; both cases are spelled out because IGNORECASE doubles
# the time. 50 ns a tag, against 130 ns for parsing it.
FORMATTING_START = re.compile(
    r"<(?=[bBcCeEfFiInNsStTuU])(?:"
    r"[bB](?:[iI][gG])?|[cC][oO][dD][eE]|[eE][mM]|[fF][oO][nN][tT]|[iIuU]|[nN][oO][bB][rR]|"
    r"[sS](?:[mM][aA][lL][lL]|[tT][rR][iI][kK][eE]|[tT][rR][oO][nN][gG])?|[tT][tT]"
    r")(?=[\s/>])"
)


def disarmed(text: str) -> str:
    """Return the document without formatting; its links are the same. Linear, in one pass."""
    return FORMATTING_START.sub("<wbr", text)


# ---------------------------------------------------------------------- formatting bounded


MAX_COPIES = 100_000  # elements that copies may add to a page: 15 MB
_MAX_OPEN = 64  # elements that are followed at once
_MAX_BLOCKS = 6  # that an end tag may pass over: the rules of HTML give up at eight
_LONG_TAG = 100  # characters; a copy has the attributes, too, so a longer tag counts for several

_VALUE = r"""=[\t\n\f\r ]*+(?:"[^<>"]*+"|'[^<>']*+'|[^\t\n\f\r <>"']*+)"""
_REST = rf"""(?=[\t\n\f\r />])[^<>"'=]*+(?:{_VALUE}[^<>"'=]*+)*+>"""
_TAG = re.compile(rf"<(?:(/?+)([a-zA-Z][a-zA-Z0-9-]*+){_REST}|(?![a-zA-Z/!?]))")
# Formatting that holds text, or text in spans, as nearly all does: passed over at once.
_ORDINARY = re.compile(rf"<([a-zA-Z]++){_REST}[^<]*+(?:<span{_REST}[^<]*+</span>[^<]*+)*+</\1>")

_FORMATTING = frozenset(
    ("b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u")
)
_INLINE = frozenset(
    (
        "a", "abbr", "acronym", "bdi", "bdo", "cite", "data", "del", "dfn", "ins", "kbd", "label",
        "mark", "q", "samp", "span", "sub", "sup", "time", "var",
    )
)  # fmt: skip
_EMPTY = frozenset(("area", "br", "col", "embed", "img", "input", "link", "meta", "source", "wbr"))
_TABLE = frozenset(("caption", "colgroup", "table", "tbody", "td", "tfoot", "th", "thead", "tr"))
_BLOCKS = _TABLE | frozenset(
    (
        "address", "article", "aside", "blockquote", "center", "dd", "details", "div", "dl", "dt",
        "fieldset", "figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6",
        "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "ul",
    )
)  # fmt: skip
_ENDS_OPTIONAL = frozenset(("dd", "dt", "li", "p"))


def bounded(text: str, copies: int = MAX_COPIES) -> str:
    """Return a document without the formatting that could be copied too often. Linear."""
    pieces: list[str] = []
    end = 0
    for place, name in _excess(text, copies // (text.count("<") + 1)):
        pieces += (text[end:place], "<wbr")
        end = place + 1 + len(name)
    return "".join((*pieces, text[end:]))


def _excess(text: str, room: int) -> list[tuple[int, str]]:
    """Return the places and names of the start tags that are too many, in order."""
    follower = _Follower(room)
    place = -1
    while True:
        place += 1
        if follower.is_idle:
            start = FORMATTING_START.search(text, place)
            while start is not None and (passed := _ORDINARY.match(text, start.start())):
                start = FORMATTING_START.search(text, passed.end())
            place = -1 if start is None else start.start()
        else:
            place = text.find("<", place)
        if place < 0:
            return sorted(follower.excess)
        tag = _TAG.match(text, place)
        if tag is None:
            follower.lose_sight()
            start = FORMATTING_START.match(text, place)
            if start is not None:  # of unknown length
                follower.excess.append((place, start[0][1:]))
        elif tag[2] is not None:
            follower.take(tag[2].lower(), place, tag.end() - place, is_end=tag[1] == "/")


def _is_hidden(name: str, inside: str) -> bool:
    """Return whether browsers ignore an end tag because an element inside is open."""
    if name in _TABLE:
        return inside == "table"
    return inside in _BLOCKS and (name not in _BLOCKS or inside not in _ENDS_OPTIONAL)


class _Open:
    """An element that is open; one that is no formatting costs nothing."""

    __slots__ = ("cost", "is_kept", "name", "place")

    def __init__(self, name: str, place: int, cost: int) -> None:
        self.name = name
        self.place = place
        self.cost = cost
        self.is_kept = cost == 0  # formatting: once it is decided


class _Follower:
    """Follows what is open, and decides which formatting stays."""

    def __init__(self, room: int) -> None:
        self.excess: list[tuple[int, str]] = []
        self._room = room
        self._open: list[_Open] = []

    @property
    def is_idle(self) -> bool:
        """True while nothing is open that is followed."""
        return not self._open

    def take(self, name: str, place: int, length: int, *, is_end: bool) -> None:
        """Follow one tag."""
        if name in _FORMATTING:
            if is_end:
                self._end_formatting(name)
            else:
                self._push(_Open(name, place, 1 + length // _LONG_TAG))
        elif name in _BLOCKS:
            self._decide()
            if is_end:
                self._end(name)
            elif name != "hr":
                self._push(_Open(name, place, 0))
        elif name in _INLINE or ("-" in name and name != "annotation-xml"):
            if is_end:
                self._end(name)
            else:
                self._push(_Open(name, place, 0))
        elif name not in _EMPTY:
            self.lose_sight()

    def lose_sight(self) -> None:
        """Count what is open to the end of the page: its end may be hidden from here on."""
        self._decide()
        self._open.clear()

    def _push(self, element: _Open) -> None:
        if len(self._open) >= _MAX_OPEN:
            self.lose_sight()
        if self._open or element.cost:
            self._open.append(element)

    def _decide(self) -> None:
        """Keep what is open as far as there is room: a block begins or ends in it."""
        for each in self._open:
            if each.is_kept or not each.cost:
                continue
            if each.cost <= self._room:
                each.is_kept = True
                self._room -= each.cost
            else:
                self.excess.append((each.place, each.name))
                each.cost = 0

    def _end(self, name: str) -> None:
        """End an element that is no formatting: formatting in it stays open."""
        opened = self._open
        for at in reversed(range(len(opened))):
            each = opened[at]
            if each.name == name:
                after = [other for other in opened[at + 1 :] if other.cost]
                if after:
                    self._decide()
                opened[at:] = after
                break
            if _is_hidden(name, each.name):
                break
        else:
            self._decide()
        if not any(each.cost for each in opened):
            opened.clear()

    def _end_formatting(self, name: str) -> None:
        opened = self._open
        blocks = 0
        for at in reversed(range(len(opened))):
            each = opened[at]
            if each.name == name and each.cost:
                if blocks or any(other.cost for other in opened[at + 1 :]):
                    self._decide()
                if blocks <= _MAX_BLOCKS and each.is_kept:
                    self._room += each.cost
                opened[at:] = [other for other in opened[at + 1 :] if other.name not in _INLINE]
                break
            if each.name in _TABLE:
                self.lose_sight()
                break
            blocks += each.name in _BLOCKS
        if not any(each.cost for each in opened):
            opened.clear()
