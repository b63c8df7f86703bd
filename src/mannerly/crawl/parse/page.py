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


class Page(NamedTuple):
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


class Find(Protocol):
    """Asks a document for its elements of one name."""

    def __call__(self, tag: str, /, *, limit: int) -> Sequence[Element]:
        """The first of them, in the order of the page, at most `limit`.

        A `<meta>` or `<link>` that says nothing to a crawler may be left out.
        """


class Anchors(Protocol):
    """Asks a document for its `<a>`, which are more than all others together."""

    def __call__(self, *, limit: int) -> tuple[Sequence[str | None], Mapping[int, str]]:
        """The hrefs of the first of them, and the rels of those that have one, by position.

        Empty places may stand between them, and do not count. A rel that does not say `nofollow`
        may be left out.
        """


def with_rels(anchors: Sequence[Element]) -> tuple[list[str | None], dict[int, str]]:
    """The answer of `Anchors`, from elements."""
    rels = {position: rel for position, each in enumerate(anchors) if (rel := each.attr("rel"))}
    return [each.attr("href") for each in anchors], rels


class Elements(NamedTuple):
    """A document as far as anybody here asks, from its tree or without one."""

    title: str | None
    anchors: Anchors
    find: Find


Reader: TypeAlias = Callable[[bytes, str], Elements]
"""A parser seen from here: given bytes and their codec. It may raise what it likes: that is caught,
for this page only."""


def clean_line(raw: str) -> str:
    """At most 512 characters of valid UTF-8 on one line, without control characters."""
    words = raw[:_RAW_LINE_LENGTH].split()
    text = " ".join(words).translate(_UNPRINTABLE)
    return text[:MAX_LINE_LENGTH].encode("utf-8", "replace").decode().strip()
