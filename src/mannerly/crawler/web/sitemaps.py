"""Reads sitemaps as streams; after an error the URLs read so far are kept, with the problem.

Four formats, recognised by their first bytes: a `<urlset>`, a `<sitemapindex>`, a text file with
one URL per line, and any of these in gzip. Broken sitemaps are often cut short, so an error near
the end must not lose the beginning.

The work is bounded: 50,000 URLs and 50 MB after decompression (both from the sitemap protocol),
decompressed in pieces and never held whole; no document type with declarations of its own, which
rules out entities ("billion laughs", reading of local files) and default values that a file of 8 KB
multiplies to gigabytes; nesting of sixteen levels, where a valid file has three; names of elements
up to 200 characters; and no single tag, comment or attribute of more than a megabyte.

The caller decides how deep an index may lead (two levels). URLs are returned as they were written.
This module does no I/O and knows no URL rules.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol
from xml.parsers import expat

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_URLS = 50_000
MAX_BYTES = 50 * 1024 * 1024
MAX_DEPTH = 16
MAX_NAME = 200

# A location past the 2,048 characters of the protocol is dropped; a little slack for white space.
_MAX_TEXT = 4096
_CHUNK = 64 * 1024
# expat before 2.6 parses an unfinished token again with every piece: quadratic, so it is bounded.
_MAX_TOKEN = 1024 * 1024
# Concatenated gzip members are legal; thousands of empty ones are an attack.
_MAX_MEMBERS = 100
GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = 31
_XML_SPACE = b" \t\r\n"
_FIELDS = frozenset({"loc", "lastmod", "priority"})


class SitemapProblem(StrEnum):
    """The reason why reading stopped before the end."""

    MALFORMED = "malformed"
    NOT_A_SITEMAP = "not_a_sitemap"
    DTD = "dtd"
    TOO_DEEP = "too_deep"
    TOO_MANY_URLS = "too_many_urls"
    TOO_LARGE = "too_large"
    BAD_GZIP = "bad_gzip"


class Listed(NamedTuple):
    """One page in a sitemap, with its optional fields."""

    loc: str
    lastmod: str | None = None
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class SitemapContents:
    """The URLs that could be read. `children` are the sitemaps that an index names."""

    urls: list[Listed] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    problem: SitemapProblem | None = None
    size: int = field(default=0, compare=False)  # bytes that were read, after decompression


class _Stop(Exception):  # noqa: N818 - ends a stream early, for a reason that is kept
    def __init__(self, problem: SitemapProblem) -> None:
        super().__init__(problem)
        self.problem = problem


class _Reader(Protocol):
    urls: list[Listed]
    children: list[str]

    def feed(self, data: bytes) -> None: ...
    def close(self) -> None: ...


def read_sitemap(
    body: bytes, *, max_urls: int = MAX_URLS, max_bytes: int = MAX_BYTES
) -> SitemapContents:
    """Read one sitemap of any format. No content of the body makes it raise."""
    reader: _Reader | None = None
    problem: SitemapProblem | None = None
    size = 0
    try:
        for chunk in _chunks(body, max_bytes):
            size += len(chunk)
            if reader is None:
                chunk = chunk.removeprefix(b"\xef\xbb\xbf").lstrip(_XML_SPACE)
                if not chunk:
                    continue
                reader = _reader_for(chunk, max_urls)
            reader.feed(chunk)
        if reader is None:
            problem = SitemapProblem.NOT_A_SITEMAP
        else:
            reader.close()
    except _Stop as stop:
        problem = stop.problem
    except expat.ExpatError:
        problem = SitemapProblem.MALFORMED
    if reader is None:
        return SitemapContents(problem=problem, size=size)
    return SitemapContents(reader.urls, reader.children, problem, size)


def _reader_for(start: bytes, max_urls: int) -> _Reader:
    # UTF-16 XML begins with a byte order mark, which expat understands.
    if start.startswith((b"<", b"\xff\xfe", b"\xfe\xff")):
        return _XmlReader(max_urls)
    return _TextReader(max_urls)


def _chunks(body: bytes, max_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed bytes in pieces; after `max_bytes` stop with TOO_LARGE."""
    pieces = _inflate(body) if body.startswith(GZIP_MAGIC) else _slices(body)
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > max_bytes:
            raise _Stop(SitemapProblem.TOO_LARGE)
        yield piece


def _slices(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _CHUNK):
        yield body[start : start + _CHUNK]


def _inflate(body: bytes) -> Iterator[bytes]:
    """Decompress in pieces, so that a gzip bomb never takes more memory than one piece."""
    at = 0
    for _ in range(_MAX_MEMBERS):
        member = zlib.decompressobj(_GZIP_WBITS)
        pending = b""
        while not member.eof:
            if not pending:
                pending = body[at : at + _CHUNK]
                at += len(pending)
            is_input_over = not pending
            piece = _decompressed(member, pending)
            pending = member.unconsumed_tail
            if piece:
                yield piece
            elif is_input_over:
                raise _Stop(SitemapProblem.BAD_GZIP)
        at -= len(member.unused_data)
        if not body.startswith(GZIP_MAGIC, at):
            return  # trailing bytes are ignored, as gzip does
    raise _Stop(SitemapProblem.BAD_GZIP)


def _decompressed(member: zlib._Decompress, pending: bytes) -> bytes:
    try:
        return member.decompress(pending, _CHUNK)
    except zlib.error as error:
        raise _Stop(SitemapProblem.BAD_GZIP) from error


class _TextReader:
    """Reads one URL per line. Lines that are not http(s) URLs are skipped."""

    def __init__(self, max_urls: int) -> None:
        self.urls: list[Listed] = []
        self.children: list[str] = []
        self._max_urls = max_urls
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        # A line without an end would otherwise grow with every piece.
        self._rest = rest if len(rest) <= _CHUNK else b""
        for line in lines:
            self._take(line)

    def close(self) -> None:
        self._take(self._rest)
        if not self.urls:
            raise _Stop(SitemapProblem.NOT_A_SITEMAP)

    def _take(self, line: bytes) -> None:
        loc = line.strip()
        if len(loc) > _MAX_TEXT or not loc.lower().startswith((b"http://", b"https://")):
            return
        if len(self.urls) >= self._max_urls:
            raise _Stop(SitemapProblem.TOO_MANY_URLS)
        self.urls.append(Listed(loc.decode("utf-8", "replace")))


class _XmlReader:
    """Reads `urlset` and `sitemapindex` by local names: namespaces are often wrong.

    Only a `loc` that is a child of `url` or `sitemap` counts; images and videos have theirs deeper.
    """

    def __init__(self, max_urls: int) -> None:
        self.urls: list[Listed] = []
        self.children: list[str] = []
        self._max_urls = max_urls
        self._path: list[str] = []
        self._fields: dict[str, str] = {}
        self._text: list[str] | None = None
        self._text_length = 0
        self._fed = 0
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.specified_attributes = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters

    def feed(self, data: bytes) -> None:
        self._parser.Parse(data, False)
        self._fed += len(data)
        if self._fed - self._parser.CurrentByteIndex > _MAX_TOKEN:
            raise _Stop(SitemapProblem.MALFORMED)

    def close(self) -> None:
        self._parser.Parse(b"", True)

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        path = self._path
        if not path and local not in ("urlset", "sitemapindex"):
            raise _Stop(SitemapProblem.NOT_A_SITEMAP)
        if len(path) >= MAX_DEPTH:
            raise _Stop(SitemapProblem.TOO_DEEP)
        if len(name) > MAX_NAME:
            raise _Stop(SitemapProblem.MALFORMED)
        path.append(local)
        if len(path) == 2:
            self._fields = {}
        elif len(path) == 3 and local in _FIELDS:
            self._text = []
            self._text_length = 0

    def _characters(self, data: str) -> None:
        if self._text is not None and len(self._path) == 3 and self._text_length <= _MAX_TEXT:
            self._text.append(data)
            self._text_length += len(data)

    def _end(self, _name: str) -> None:
        local = self._path.pop()
        depth = len(self._path)
        if depth == 2 and self._text is not None:
            if self._text_length <= _MAX_TEXT:
                self._fields.setdefault(local, "".join(self._text).strip())
            self._text = None
        elif depth == 1:
            self._take(local)

    def _take(self, kind: str) -> None:
        loc = self._fields.get("loc")
        if not loc or kind not in ("url", "sitemap"):
            return
        if len(self.urls) + len(self.children) >= self._max_urls:
            raise _Stop(SitemapProblem.TOO_MANY_URLS)
        if kind == "sitemap":
            self.children.append(loc)
        else:
            lastmod = self._fields.get("lastmod") or None
            self.urls.append(Listed(loc, lastmod, _priority(self._fields.get("priority"))))

    def _doctype(
        self, _name: str, _system_id: str | None, _public_id: str | None, has_internal_subset: int
    ) -> None:
        if has_internal_subset:
            raise _Stop(SitemapProblem.DTD)


def _priority(text: str | None) -> float | None:
    """The number in the text if it is from 0 to 1, as the protocol requires."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None
