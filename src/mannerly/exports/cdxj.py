"""Index the answers of segments: one CDXJ line each, sorted by the reversed host and the time.

    com,example)/page 20261117132004 {"url": …, "mime": …, "status": …, "digest": …, …}

Replay tools look a page up by its key, so the key has to be the one that they compute: it comes
from their own library, surt (extra `archive`). Lines are sorted in pieces of
`PIECE` on disk, so that memory does not grow with the crawl.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from surt import surt

from mannerly.crawler.archive.records import read_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mannerly.crawler.archive.records import WarcRecord

    from .archive import ValidSegment

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
