"""Removes the formatting tags that would be copied without end, and keeps all others.

`disarm` removes every formatting tag. That is right for links, but content and selectors need
`<code>` and `<em>`. What explodes is formatting that stays open while blocks begin and end: it is
copied into each of them. So one pass follows what is open:

    closed before any block begins or ends      kept: it can be copied nowhere
    open when a block begins or ends            kept while few of such are open at once
    never closed, or not certainly              kept, and counts as open until the end

"Few" is `MAX_COPIES` divided by the tags of the page: this product bounds the elements that copying
can add. A start tag beyond it becomes `<wbr>`, as in `disarm`.

The pass is no parser, and errs on one side: it sees every start tag that a parser can see, and
those in comments and scripts too. An end tag closes something only if all tags since its start tag
are written as they should be and cannot hide it. Anything else (a comment, an `<object>`, a quote
that is left open) makes what is open count to the end of the page.
"""

from __future__ import annotations

import re

from .disarm import FORMATTING_START

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
