"""Read lists of URLs in XML from servers that cannot be trusted: sitemaps and feeds.

No document type with declarations of its own, which rules out entities ("billion laughs", reading
of local files) and default values that a file of 8 KB multiplies to gigabytes; nesting of sixteen
levels, where a valid file has four; names of elements up to 200 characters; and no single tag,
comment or attribute of more than a megabyte. Elements are given to a `Part`, which is chosen by the
name of the root.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol
from xml.parsers import expat

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 16
MAX_NAME = 200
# A location past the 2,048 characters of the protocol is dropped; a little slack for white space.
MAX_TEXT = 4096
# expat before 2.6 parses an unfinished token again with every piece: quadratic, so it is bounded.
_MAX_TOKEN = 1024 * 1024


class SitemapProblem(StrEnum):
    """The reason why reading stopped before the end."""

    MALFORMED = "malformed"
    NOT_A_SITEMAP = "not_a_sitemap"
    DTD = "dtd"
    TOO_DEEP = "too_deep"
    TOO_MANY_URLS = "too_many_urls"
    TOO_LARGE = "too_large"
    BAD_GZIP = "bad_gzip"


class StopReading(Exception):  # noqa: N818 - ends a stream early, for a reason that is kept
    """Reading ends here."""

    def __init__(self, problem: SitemapProblem) -> None:
        super().__init__(problem)
        self.problem = problem


class Listed(NamedTuple):
    """One page in a sitemap or a feed, with its optional fields."""

    loc: str
    lastmod: str | None = None
    priority: float | None = None


class Part(Protocol):
    """Takes the elements of one kind of document."""

    urls: list[Listed]
    children: list[str]

    def started(self, path: list[str], attributes: dict[str, str]) -> bool:
        """Note a start tag, the last of `path`; return whether its text is wanted."""

    def ended(self, path: list[str], text: str | None) -> None:
        """Take an element that has ended, with its text if it was wanted and is not too long."""


class SafeXml:
    """A parser that is fed in pieces. `choose` returns the part for the local name of a root."""

    def __init__(self, choose: Callable[[str], Part]) -> None:
        self._choose = choose
        self._part: Part | None = None
        self._path: list[str] = []
        self._text: list[str] | None = None
        self._text_depth = self._text_length = 0
        self._fed = 0
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.specified_attributes = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters

    @property
    def part(self) -> Part | None:
        """The part that takes the elements; None before the root."""
        return self._part

    @property
    def urls(self) -> list[Listed]:
        """The pages so far."""
        return [] if self._part is None else self._part.urls

    @property
    def children(self) -> list[str]:
        """The sitemaps so far that an index names."""
        return [] if self._part is None else self._part.children

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        self._parser.Parse(data, False)
        self._fed += len(data)
        if self._fed - self._parser.CurrentByteIndex > _MAX_TOKEN:
            raise StopReading(SitemapProblem.MALFORMED)

    def close(self) -> None:
        """End the document."""
        self._parser.Parse(b"", True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if self._part is None:
            self._part = self._choose(local)
        if len(self._path) >= MAX_DEPTH:
            raise StopReading(SitemapProblem.TOO_DEEP)
        if len(name) > MAX_NAME:
            raise StopReading(SitemapProblem.MALFORMED)
        self._path.append(local)
        if self._part.started(self._path, attributes):
            self._text, self._text_depth, self._text_length = [], len(self._path), 0

    def _characters(self, data: str) -> None:
        is_wanted = self._text is not None and len(self._path) == self._text_depth
        if is_wanted and self._text_length <= MAX_TEXT:
            assert self._text is not None
            self._text.append(data)
            self._text_length += len(data)

    def _end(self, _name: str) -> None:
        assert self._part is not None
        text = None
        if self._text is not None and len(self._path) == self._text_depth:
            if self._text_length <= MAX_TEXT:
                text = "".join(self._text).strip()
            self._text = None
        self._part.ended(self._path, text)
        self._path.pop()

    def _doctype(
        self, _name: str, _system_id: str | None, _public_id: str | None, has_internal_subset: int
    ) -> None:
        if has_internal_subset:
            raise StopReading(SitemapProblem.DTD)
