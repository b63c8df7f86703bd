"""Write the kept answers of a crawl as one web archive: `.warc.gz` or `.wacz`.

A `.warc.gz` is the segments one after the other, each up to its committed length: gzip members can
be joined like that. A `.wacz` (version 1.1.1) is an uncompressed zip of the segments, an index of
them (CDXJ), the list of pages, and the SHA-256 of each file. Both can be made while the crawl runs.
"""

from __future__ import annotations

import json
import zipfile
from hashlib import sha256
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from mannerly.crawler.store.base import repair_command
from mannerly.crawler.web.media_types import HTML_TYPES, media_type
from mannerly.version import VERSION

from .jsonl import write_jsonl
from .rows import instant
from .target import ExportError
from .whole import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mannerly.crawler.model import PageRecord

    from .jsonl import Writable
    from .rows import Row

WACZ_VERSION = "1.1.1"
_CHUNK = 1 << 20
_PAGES_HEAD: Row = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}


class ValidSegment(NamedTuple):
    """A segment, and how much of it is committed."""

    path: Path
    length: int


def write_warc(segments: Iterable[ValidSegment], path: Path) -> int:
    """Join the segments; return the number of bytes."""
    with whole_file(path) as file:
        return sum(_copy(segment, file) for segment in segments)


def write_wacz(
    segments: list[ValidSegment],
    pages: Iterable[PageRecord],
    path: Path,
    *,
    title: str,
    wall: float,
) -> int:
    """Write the segments with an index and the list of pages; return the number of pages."""
    from .cdxj import index_lines

    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        package = _Package(archive)
        for segment in segments:
            with package.add(f"archive/{segment.path.name}") as target:
                _copy(segment, target)
        with package.add("indexes/index.cdx") as target:
            for line in index_lines(segments):
                target.write(line)
        with package.add("pages/pages.jsonl") as target:
            rows = write_jsonl(_page_rows(pages), target)
        package.finish(title, wall)
    return rows - 1


def _copy(segment: ValidSegment, target: Writable) -> int:
    left = segment.length
    with segment.path.open("rb") as file:
        while left:
            data = file.read(min(_CHUNK, left))
            if not data:
                raise ExportError(
                    f"{segment.path} is shorter than what was committed: restore it from a copy, "
                    f"or repair the crawl with `{repair_command(segment.path.parent)}`"
                )
            target.write(data)
            left -= len(data)
    return segment.length


def _page_rows(pages: Iterable[PageRecord]) -> Iterator[Row]:
    yield _PAGES_HEAD
    for record in pages:
        if record.status is not None and 200 <= record.status < 300 and _is_html(record):
            yield {
                "id": record.digest,
                "url": record.url,
                "ts": instant(record.fetched_at),
                "title": record.title or record.url,
            }


def _is_html(record: PageRecord) -> bool:
    return media_type(record.content_type) in HTML_TYPES


class _Package:
    """The files of a WACZ, with their sizes and digests."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._resources: list[dict[str, object]] = []

    def add(self, name: str) -> _Member:
        return _Member(self._archive.open(name, "w", force_zip64=True), name, self._resources)

    def finish(self, title: str, wall: float) -> None:
        """Write the description, and its digest."""
        described = {
            "profile": "data-package",
            "wacz_version": WACZ_VERSION,
            "software": f"mannerly {VERSION}",
            "created": instant(wall),
            "title": title,
            "resources": self._resources,
        }
        text = json.dumps(described, indent=2).encode()
        self._archive.writestr("datapackage.json", text)
        digest = {"path": "datapackage.json", "hash": f"sha256:{sha256(text).hexdigest()}"}
        self._archive.writestr("datapackage-digest.json", json.dumps(digest, indent=2))


class _Member:
    """One file of the zip: counts and digests what is written to it."""

    def __init__(self, target: IO[bytes], name: str, resources: list[dict[str, object]]) -> None:
        self._target = target
        self._name = name
        self._resources = resources
        self._bytes = 0
        self._digest = sha256()

    def write(self, data: bytes) -> None:
        """Add some bytes."""
        self._target.write(data)
        self._digest.update(data)
        self._bytes += len(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._target.close()
        if kind is None:
            described: dict[str, object] = {
                "name": self._name.rpartition("/")[2],
                "path": self._name,
                "hash": f"sha256:{self._digest.hexdigest()}",
                "bytes": self._bytes,
            }
            self._resources.append(described)
