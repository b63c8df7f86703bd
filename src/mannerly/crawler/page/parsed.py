"""The values of a page that has been read: a few facts and its links, never the tree.

Links stay raw, as the author wrote them, those marked nofollow with a mark in front: `links.py`
turns them into URLs, and the crawl decides which to follow. A fragment may be left out. Text for
people (titles, error messages of a parser) is cleaned here, because it goes to exports, terminals
and the dashboard, and a page may contain anything.

This module knows no parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

# The relations of <link> that lead to another page.
PAGE_RELATIONS = frozenset(
    {"alternate", "canonical", "contents", "first", "index", "last", "next", "prev", "previous"}
    | {"start", "up"}
)

MAX_LINE_LENGTH = 512
# A title of a megabyte is cut before it is cleaned; eight times the length, as it may hold blanks.
_RAW_LINE_LENGTH = 8 * MAX_LINE_LENGTH

# C0, DEL, C1 and the invisible marks that reorder or hide text.
_UNPRINTABLE = dict.fromkeys(
    (
        *range(0x20), *range(0x7F, 0xA0),
        0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF,
    )
)  # fmt: skip


MARK = '"'  # in front of links that are marked nofollow


class ParsedPage(NamedTuple):
    """The facts and links of one page. For content that is not HTML all fields are empty."""

    base: str  # base of relative links: the page's URL or its <base href>
    title: str | None = None
    canonical: str | None = None  # raw href of link rel=canonical
    noindex: bool = False
    nofollow: bool = False  # of the whole page
    charset: str | None = None
    links: Sequence[str] = ()  # raw, see `as_link`; those of the head first, of frames last
    links_capped: bool = False  # the page has more links than were read
    description: str | None = None
    h1: str | None = None
    lang: str | None = None
    elements: bytes | None = None  # what readers of the links ask for, if it is kept: `elements`


class ParseFailed(NamedTuple):
    """The parser failed on this page. The crawl goes on without its links."""

    reason: str


HELPER_DIED = ParseFailed("helper_died")
"""The result of work that ended every process that was asked to do it."""

LACKED_MEMORY = ParseFailed("no_memory")
"""The result of work for which there was no memory: that says nothing about the page."""


class CodeFailed(NamedTuple):
    """The user's code gave no result for a page: it took too long, or ended its process."""

    reason: str


class Element(Protocol):
    """One element, of any parser."""

    def attr(self, name: str, /) -> str | None:
        """Return the value of an attribute: "" if it has none, None without the attribute."""


class Elements(NamedTuple):
    """The elements of a document that a crawler needs, from its tree or without one.

    A `<meta>`, a `<link>` or a rel of an `<a>` that does not matter to a crawler may be left out.
    """

    title: str | None
    links: Sequence[str]  # of all `<a>` and `<area>`, see `as_link`; "" is no link
    others: Mapping[str, Sequence[Element]]  # by tag, see `OTHER_TAGS`
    heading: str | None = None  # the text of the first <h1> that has any
    description: str | None = None  # if it is known without a look at `others`
    lang: str | None = None  # the same
    canonical: str | None = None  # the same: a link that comes before those in `others`
    kept: bytes | None = None  # what readers of the links ask for, if it was asked for


OTHER_TAGS = ("html", "base", "meta", "link", "iframe", "frame")

Reader: TypeAlias = Callable[[bytes, str, int], Elements]
"""A parser: it takes bytes, their codec, and how many elements of a kind are enough. It may raise
any exception: `parse_page` catches it, and only this page is lost."""


def from_tree(
    title: str | None, find: Callable[[str], Sequence[Element]], heading: str | None = None
) -> Elements:
    """Return the elements of a tree; `find` returns all elements of a name."""
    links = [
        as_link(href, each.attr("rel"))
        for each in (*find("a"), *find("area"))
        if (href := each.attr("href"))
    ]
    return Elements(title, links, {tag: find(tag) for tag in OTHER_TAGS}, heading)


def as_link(href: str, rel: str | None = None) -> str:
    """Return an href as a link of a page: with a mark in front if it is not to be followed."""
    if is_nofollow(rel):
        return MARK + href
    # A blank in front changes no URL.
    return " " + href if href[:1] == MARK else href


def is_nofollow(rel: str | None) -> bool:
    """Return whether the rel attribute of a link says that it shall not be followed."""
    return rel is not None and "nofollow" in rel.lower().split()


def clean_line(raw: str) -> str:
    """Return at most 512 characters of valid UTF-8 on one line, without control characters."""
    if (
        len(raw) <= MAX_LINE_LENGTH
        and raw.isascii()
        and raw.isprintable()
        and "  " not in raw
        and raw == raw.strip(" ")
    ):
        return raw  # as nearly all titles are
    text = " ".join(raw[:_RAW_LINE_LENGTH].split())
    if not (text.isascii() and text.isprintable()):
        text = text.translate(_UNPRINTABLE).encode("utf-8", "replace").decode()
    return text[:MAX_LINE_LENGTH].strip()
