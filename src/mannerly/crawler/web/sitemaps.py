"""Reads sitemaps as streams; after an error the URLs read so far are kept, with the problem.

Five formats, recognised by how they begin: a `<urlset>`, a `<sitemapindex>`, a feed (`feeds`), a
text file with one URL per line, and any of these in gzip. Broken sitemaps are often cut short, so
an error near the end must not lose the beginning.

The work is bounded: 50,000 URLs and 50 MB after decompression (both from the sitemap protocol),
decompressed in pieces and never held whole; what XML may hold is bounded by `safe_xml`.

The caller decides how deep an index may lead (two levels). URLs are returned as they were written.
This module does no I/O and knows no URL rules.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol
from xml.parsers import expat

from .feeds import FEED_ROOTS, FeedPart
from .safe_xml import MAX_TEXT, Listed, SafeXml, SitemapProblem, StopReading

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_URLS = 50_000
MAX_BYTES = 50 * 1024 * 1024

_CHUNK = 64 * 1024
# Concatenated gzip members are legal; thousands of empty ones are an attack.
_MAX_MEMBERS = 100
GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = 31
_XML_SPACE = b" \t\r\n"
_FIELDS = frozenset({"loc", "lastmod", "priority"})


@dataclass(frozen=True, slots=True)
class SitemapContents:
    """The URLs that could be read. `children` are the sitemaps that an index names."""

    urls: list[Listed] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    problem: SitemapProblem | None = None
    size: int = field(default=0, compare=False)  # bytes that were read, after decompression


class _Reader(Protocol):
    @property
    def urls(self) -> list[Listed]: ...
    @property
    def children(self) -> list[str]: ...

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
    except StopReading as stop:
        problem = stop.problem
    except expat.ExpatError:
        problem = SitemapProblem.MALFORMED
    if reader is None:
        return SitemapContents(problem=problem, size=size)
    return SitemapContents(reader.urls, reader.children, problem, size)


def _reader_for(start: bytes, max_urls: int) -> _Reader:
    # UTF-16 XML begins with a byte order mark, which expat understands.
    if start.startswith((b"<", b"\xff\xfe", b"\xfe\xff")):
        return SafeXml(partial(_part_for, max_urls=max_urls))
    return _TextReader(max_urls)


def _chunks(body: bytes, max_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed bytes in pieces; after `max_bytes` stop with TOO_LARGE."""
    pieces = _inflate(body) if body.startswith(GZIP_MAGIC) else _slices(body)
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > max_bytes:
            raise StopReading(SitemapProblem.TOO_LARGE)
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
                raise StopReading(SitemapProblem.BAD_GZIP)
        at -= len(member.unused_data)
        if not body.startswith(GZIP_MAGIC, at):
            return  # trailing bytes are ignored, as gzip does
    raise StopReading(SitemapProblem.BAD_GZIP)


def _decompressed(member: zlib._Decompress, pending: bytes) -> bytes:
    try:
        return member.decompress(pending, _CHUNK)
    except zlib.error as error:
        raise StopReading(SitemapProblem.BAD_GZIP) from error


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
            raise StopReading(SitemapProblem.NOT_A_SITEMAP)

    def _take(self, line: bytes) -> None:
        loc = line.strip()
        if len(loc) > MAX_TEXT or not loc.lower().startswith((b"http://", b"https://")):
            return
        if len(self.urls) >= self._max_urls:
            raise StopReading(SitemapProblem.TOO_MANY_URLS)
        self.urls.append(Listed(loc.decode("utf-8", "replace")))


class _SitemapPart:
    """Reads `urlset` and `sitemapindex` by local names: namespaces are often wrong.

    Only a `loc` that is a child of `url` or `sitemap` counts; images and videos have theirs deeper.
    """

    def __init__(self, max_urls: int) -> None:
        self.urls: list[Listed] = []
        self.children: list[str] = []
        self._max_urls = max_urls
        self._fields: dict[str, str] = {}

    def started(self, path: list[str], _attributes: dict[str, str]) -> bool:
        if len(path) == 2:
            self._fields = {}
        return len(path) == 3 and path[-1] in _FIELDS

    def ended(self, path: list[str], text: str | None) -> None:
        if len(path) == 3 and text is not None:
            self._fields.setdefault(path[-1], text)
        elif len(path) == 2:
            self._take(path[-1])

    def _take(self, kind: str) -> None:
        loc = self._fields.get("loc")
        if not loc or kind not in ("url", "sitemap"):
            return
        if len(self.urls) + len(self.children) >= self._max_urls:
            raise StopReading(SitemapProblem.TOO_MANY_URLS)
        if kind == "sitemap":
            self.children.append(loc)
        else:
            lastmod = self._fields.get("lastmod") or None
            self.urls.append(Listed(loc, lastmod, _priority(self._fields.get("priority"))))


def _part_for(root: str, max_urls: int) -> _SitemapPart | FeedPart:
    if root in FEED_ROOTS:
        return FeedPart(max_urls)
    if root in ("urlset", "sitemapindex"):
        return _SitemapPart(max_urls)
    raise StopReading(SitemapProblem.NOT_A_SITEMAP)


def _priority(text: str | None) -> float | None:
    """The number in the text if it is from 0 to 1, as the protocol requires."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None
