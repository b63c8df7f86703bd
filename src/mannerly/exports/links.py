"""Write the links of a crawl: one row each, in any format of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import Link

from .target import ExportError, Format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.inspection.view import View

    from .rows import Row
    from .target import Target


def write_links(opened: View, wanted: Target) -> tuple[int, int]:
    """Write every link; return the numbers of links and of files.

    Raises:
        ExportError: the crawl has kept no links.
    """
    if not opened.keeps_links:
        raise ExportError("this crawl kept no links: begin it anew with --links --fresh")
    if wanted.format is Format.PARQUET:
        from .parquet import schema_of, write_parquet

        return write_parquet(
            opened.links(), schema_of(Link), wanted.path, is_folder=wanted.is_folder
        )
    from .csv import write_csv
    from .export import destination
    from .jsonl import write_jsonl

    with destination(wanted) as file:
        if wanted.format is Format.CSV:
            return write_csv(_rows(opened), Link._fields, file, is_raw=wanted.is_raw), 1
        return write_jsonl(_rows(opened), file), 1


def _rows(opened: View) -> Iterator[Row]:
    for link in opened.links():
        yield link._asdict()
