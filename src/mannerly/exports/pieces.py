"""Make an export as pieces of bytes, one after the other: for a reader at the end of a connection.

Nothing is held while a slow reader takes its time: the store is read in slices, and no transaction
stays open in between, so a crawl that runs is never in the way of one.
"""

from __future__ import annotations

import io
from itertools import islice
from typing import TYPE_CHECKING

from .choice import ALL
from .csv import write_csv
from .export import page_rows
from .jsonl import write_jsonl
from .rows import FIELDS
from .target import Format

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 500  # in one piece: about 200 kB


def page_pieces(location: str | Path, fmt: Format) -> Iterator[bytes]:
    """Yield the records of all pages so far, as JSON lines or CSV.

    Raises:
        StoreError: the crawl cannot be read.
    """
    from mannerly.crawler.stored import open_crawl

    with open_crawl(location) as crawl, crawl.view() as opened:
        rows = page_rows(opened, ALL)
        is_first = True
        while True:
            file = io.BytesIO()
            part = islice(rows, ROWS)
            if fmt is Format.CSV:
                count = write_csv(part, FIELDS, file, has_head=is_first)
            else:
                count = write_jsonl(part, file)
            if count or is_first:
                yield file.getvalue()
            is_first = False
            if count < ROWS:
                return
