"""What is kept of a page once it has been read: a few facts and its links, and never the tree.

Links stay raw, as the author wrote them: turning them into URLs is `links.py`, and whether to
follow one is the crawl's. Text meant for people (titles, complaints of a parser) is cleaned here,
because it goes to exports, terminals and the dashboard, and a page may write anything.

This file knows no parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

# The relations of <link> that lead to a page somebody could read.
PAGE_RELATIONS = frozenset(
    {"alternate", "canonical", "contents", "first", "index", "last", "next", "prev", "previous"}
    | {"start", "up"}
)

MAX_LINE_LENGTH = 512
# A title of a megabyte is cut before it is cleaned: what is kept may hold much white space.
_RAW_LINE_LENGTH = 8 * MAX_LINE_LENGTH

# C0, DEL, C1 and the invisible marks that reorder or hide text.
_UNPRINTABLE = dict.fromkeys(
    (
        *range(0x20), *range(0x7F, 0xA0),
        0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF,
    )
)  # fmt: skip


class ParsedPage(NamedTuple):
    """One page as the crawl sees it. Not HTML: everything empty, and no error."""

    base: str  # what relative links are relative to: the page's URL or its <base href>
    title: str | None = None
    canonical: str | None = None  # raw href of link rel=canonical
    noindex: bool = False
    nofollow: bool = False  # of the whole page
    charset: str | None = None
    links: Sequence[str] = ()  # raw; in page order, but those of the head and of <a> first
    nofollow_links: Sequence[str] = ()  # those marked rel=nofollow, raw
    links_capped: bool = False  # reading stopped at the cap: there is more


class ParseFailed(NamedTuple):
    """The parser gave up on this one page. The crawl goes on without its links."""

    reason: str


class Element(Protocol):
    """The little that is asked of an element, whoever parsed it."""

    def attr(self, name: str, /) -> str | None:
        """The value of an attribute, empty if it has none, None if it is not there."""


class Elements(NamedTuple):
    """A document as far as anybody here asks, from its tree or without one.

    What says nothing to a crawler may be left out: a `<meta>`, a `<link>`, a rel of an `<a>`.
    """

    title: str | None
    hrefs: Sequence[str | None]  # of all `<a>`; empty places may stand between them
    rels: Mapping[int, str]  # of those that have one, by their place among the hrefs
    others: Mapping[str, Sequence[Element]]  # by tag, see `OTHER_TAGS`


OTHER_TAGS = ("base", "meta", "link", "area", "iframe", "frame")

Reader: TypeAlias = Callable[[bytes, str, int], Elements]
"""A parser seen from here: given bytes, their codec, and how many elements of a kind are enough. It
may raise what it likes: that is caught, for this page only."""


def from_tree(title: str | None, find: Callable[[str], Sequence[Element]]) -> Elements:
    """The elements of a tree that can be asked for all of one name."""
    anchors = find("a")
    hrefs = [each.attr("href") for each in anchors]
    rels = {place: rel for place, each in enumerate(anchors) if (rel := each.attr("rel"))}
    return Elements(title, hrefs, rels, {tag: find(tag) for tag in OTHER_TAGS})


def clean_line(raw: str) -> str:
    """At most 512 characters of valid UTF-8 on one line, without control characters."""
    text = " ".join(raw[:_RAW_LINE_LENGTH].split())
    if not (text.isascii() and text.isprintable()):
        text = text.translate(_UNPRINTABLE).encode("utf-8", "replace").decode()
    return text[:MAX_LINE_LENGTH].strip()
