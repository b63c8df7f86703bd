"""Write the kept answers of a crawl as one web archive: `.warc.gz` or `.wacz`.

A `.warc.gz` is the segments one after the other, each up to its committed length: gzip members can
be joined like that. A `.wacz` (version 1.1.1) is an uncompressed zip of the segments, an index of
them (CDXJ), the list of pages, and the SHA-256 of each file. Both can be made while the crawl runs.

    com,example)/page 20261117132004 {"url": …, "mime": …, "status": …, "digest": …, …}

Replay tools look a page up by its key in the index, so the key has to be the one that they compute:
it comes from their own library, surt (extra `archive`). Lines are sorted in pieces of `PIECE` on
disk, so that memory does not grow with the crawl.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from contextlib import ExitStack
from hashlib import sha256
from heapq import merge
from itertools import islice
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from surt import surt

from mannerly.crawler.archive.records import read_records
from mannerly.crawler.store.base import repair_command
from mannerly.crawler.web.charset import HTML_TYPES, media_type
from mannerly.version import VERSION

from .rows import instant, write_jsonl
from .target import ExportError
from .whole import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mannerly.crawler.archive.records import WarcRecord
    from mannerly.crawler.model import PageRecord

    from .rows import Row, Writable


PIECE = 100_000  # lines, some 30 MB


def index_lines(segments: Iterable[ValidSegment], *, piece: int = PIECE) -> Iterator[bytes]:
    """Yield the lines of the index of some segments, in order."""
    lines = _lines(segments)
    with ExitStack() as opened:
        runs = []
        while some := sorted(islice(lines, piece)):
            run = opened.enter_context(tempfile.TemporaryFile())
            run.writelines(some)
            run.seek(0)
            runs.append(run)
        yield from merge(*runs)


def _lines(segments: Iterable[ValidSegment]) -> Iterator[bytes]:
    for segment in segments:
        with segment.path.open("rb") as file:
            for record in read_records(file, segment.length):
                if record.kind in ("response", "revisit"):
                    yield _line(record, segment.path.name)


def _line(record: WarcRecord, filename: str) -> bytes:
    url = record.headers["warc-target-uri"]
    status, headers, _ = record.http()
    mime = headers.get("content-type", "").replace("\t", ";").replace(" ", ";").partition(";")[0]
    fields = {
        "url": url,
        "mime": "warc/revisit" if record.kind == "revisit" else mime.strip(),
        "status": str(status),
        "digest": record.headers.get("warc-payload-digest", ""),
        "length": str(record.length),
        "offset": str(record.offset),
        "filename": filename,
    }
    kept = {name: value for name, value in fields.items() if value}
    date = "".join(filter(str.isdigit, record.headers["warc-date"]))[:14]
    return f"{surt(url)} {date} {json.dumps(kept)}\n".encode()


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
