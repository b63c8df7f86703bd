"""Write the other tables of a crawl: items as the extract function returned them, and links.

CSV and Parquet need their columns before the first row, so items are read twice: once for the keys
and types, once for the values. In CSV, lists and objects are JSON text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mannerly.crawler.model import Link

from .export import Exported, destination
from .target import ExportError, Format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.stored import StoredCrawl

    from .rows import Row
    from .target import Target

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def export_items(crawl: StoredCrawl, wanted: Target) -> Exported:
    """Write all items; the outcome says how many pages have none because the function failed."""
    if wanted.format is Format.PARQUET:
        written, files = _write_parquet(crawl, wanted)
    else:
        files = 1
        with destination(wanted) as file:
            if wanted.format is Format.CSV:
                from .rows import write_csv

                fields = dict.fromkeys(name for item in _items(crawl) for name in item)
                written = write_csv(
                    map(_flat, _items(crawl)), list(fields), file, is_raw=wanted.is_raw
                )
            else:
                from .rows import write_jsonl

                written = write_jsonl(_items(crawl), file)
    return Exported(wanted.text, wanted.format, written, files, _failures(crawl))


def _write_parquet(crawl: StoredCrawl, wanted: Target) -> tuple[int, int]:
    import pyarrow as pa

    from .parquet import item_columns, item_row, write_parquet

    columns = item_columns(_items(crawl))
    rows = (item_row(item, columns) for item in _items(crawl))
    schema = pa.schema(list(columns.items()))
    return write_parquet(rows, schema, wanted.path, is_folder=wanted.is_folder)


def _items(crawl: StoredCrawl) -> Iterator[dict[str, Any]]:
    for _, found in crawl.extracted():
        for line in found.items:
            yield _decode(line)


def _failures(crawl: StoredCrawl) -> tuple[str, ...]:
    failed = [(url, found.error) for url, found in crawl.extracted() if found.error is not None]
    if not failed:
        return ()
    url, error = failed[0]
    return (f"The extract function failed on {len(failed):,} pages, first on {url}: {error}",)


def _flat(item: dict[str, Any]) -> Row:
    return {
        name: msgspec.json.encode(value).decode() if isinstance(value, list | dict) else value
        for name, value in item.items()
    }


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
    from .rows import write_csv, write_jsonl

    with destination(wanted) as file:
        if wanted.format is Format.CSV:
            return write_csv(_links(opened), Link._fields, file, is_raw=wanted.is_raw), 1
        return write_jsonl(_links(opened), file), 1


def _links(opened: View) -> Iterator[Row]:
    for link in opened.links():
        yield link._asdict()
