"""Write the pages of a site as a sitemap (sitemaps.org, version 0.9).

It lists the pages that a search engine should show: status 2xx, HTML, not marked noindex (by a meta
element or an X-Robots-Tag header), and no other canonical URL. A page with another canonical URL is
a copy. <lastmod> is what the server says in its Last-Modified header, else what the site's own
sitemap says; without either it is left out: the time of a fetch is not that of a change.

A file holds 50,000 URLs or 50 MB at most. Beyond that `sitemap.xml` becomes an index of
`sitemap-1.xml`, `sitemap-2.xml` …; the index is written last, so that it never names a file that
does not exist. It has to name them by URL: they are assumed at the root of the first page's site.
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, BinaryIO
from xml.sax.saxutils import escape

from mannerly.crawler.model import EXTRACT_FAILED
from mannerly.crawler.web.charset import HTML_TYPES, media_type

from .whole import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mannerly.crawler.model import PageRecord

MAX_URLS = 50_000
MAX_BYTES = 50 * 1024 * 1024
MAX_URL_LENGTH = 2047  # "less than 2,048 characters"

_HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def is_listed(record: PageRecord) -> bool:
    """Return whether a page belongs in a sitemap."""
    return (
        record.status is not None
        and 200 <= record.status < 300
        and (record.error or "").partition(":")[0] in ("", EXTRACT_FAILED)
        and media_type(record.content_type) in HTML_TYPES
        and record.canonical in (None, record.url)
        and not record.noindex
        and len(record.url) <= MAX_URL_LENGTH
    )


def write_sitemap(
    records: Iterable[PageRecord],
    path: Path,
    *,
    max_urls: int = MAX_URLS,
    max_bytes: int = MAX_BYTES,
) -> tuple[int, int]:
    """Write the sitemap, or an index and its parts; return the numbers of URLs and of parts."""
    part = _Part(max_urls, max_bytes)
    urls = 0
    origin = ""
    names: list[str] = []
    with whole_file(path) as file:
        for record in records:
            if not is_listed(record):
                continue
            line = f"<url><loc>{escape(record.url)}</loc>{_lastmod(record)}</url>\n".encode()
            if not part.has_room(line):
                names.append(_name(path, len(names) + 1))
                _put(path.with_name(names[-1]), part)
                part = _Part(max_urls, max_bytes)
            part.add(line)
            urls += 1
            origin = origin or record.url[: record.url.index("/", 8)]
        if not names:
            part.write(file)
            return urls, 1
        names.append(_name(path, len(names) + 1))
        _put(path.with_name(names[-1]), part)
        _write_index(file, [f"{origin}/{name}" for name in names])
    return urls, len(names)


def _lastmod(record: PageRecord) -> str:
    """Return the element with the time of a page's last change; empty if that is not known."""
    when = record.lastmod
    if record.last_modified:
        try:
            stated = parsedate_to_datetime(record.last_modified).astimezone(UTC)
            when = stated.strftime("%Y-%m-%dT%H:%M:%SZ")
        except (ValueError, OverflowError):
            pass
    return f"<lastmod>{escape(when)}</lastmod>" if when else ""


class _Part:
    """The lines of one file: at most 50 MB, so they are kept in memory."""

    _TAIL = b"</urlset>\n"

    def __init__(self, max_urls: int, max_bytes: int) -> None:
        self._lines: list[bytes] = []
        self._head = _HEAD + f"<urlset {_NAMESPACE}>\n".encode()
        self._max_urls = max_urls
        self._room_bytes = max_bytes - len(self._head) - len(self._TAIL)

    def has_room(self, line: bytes) -> bool:
        return not self._lines or (
            len(self._lines) < self._max_urls and len(line) <= self._room_bytes
        )

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._room_bytes -= len(line)

    def write(self, file: BinaryIO) -> None:
        file.write(self._head)
        file.writelines(self._lines)
        file.write(self._TAIL)


def _name(path: Path, number: int) -> str:
    return f"{path.stem}-{number}{path.suffix}"


def _put(path: Path, part: _Part) -> None:
    with whole_file(path) as file:
        part.write(file)


def _write_index(file: BinaryIO, urls: list[str]) -> None:
    file.write(_HEAD + f"<sitemapindex {_NAMESPACE}>\n".encode())
    file.writelines(f"<sitemap><loc>{escape(url)}</loc></sitemap>\n".encode() for url in urls)
    file.write(b"</sitemapindex>\n")
