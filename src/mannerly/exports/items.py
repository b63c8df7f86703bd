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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Protocol, TypeAlias

    from mannerly.crawler.inspection.view import View

    from .rows import Row
    from .target import Target

    class Found(Protocol):
        """Items of one page, or the reason why there are none."""

        @property
        def items(self) -> Sequence[bytes]: ...
        @property
        def error(self) -> str | None: ...

    Extracted: TypeAlias = "Callable[[], Iterable[tuple[str, Found]]]"

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def export_items(
    extracted: Extracted, wanted: Target, *, about: Mapping[str, object] | None = None
) -> Exported:
    """Write all items; the outcome says how many pages have none because the function failed.

    `about` says what made the items: a Parquet file has it as the metadata `mannerly`.
    """
    if wanted.format is Format.PARQUET:
        written, files = _write_parquet(extracted, wanted, about)
    else:
        files = 1
        with destination(wanted) as file:
            if wanted.format is Format.CSV:
                from .rows import write_csv

                fields = dict.fromkeys(name for item in _items(extracted) for name in item)
                written = write_csv(
                    map(_flat, _items(extracted)), list(fields), file, is_raw=wanted.is_raw
                )
            else:
                from .rows import write_jsonl

                written = write_jsonl(_items(extracted), file)
    return Exported(wanted.text, wanted.format, written, files, _failures(extracted))


def _write_parquet(
    extracted: Extracted, wanted: Target, about: Mapping[str, object] | None
) -> tuple[int, int]:
    import pyarrow as pa

    from .parquet import item_columns, item_row, write_parquet

    columns = item_columns(_items(extracted))
    rows = (item_row(item, columns) for item in _items(extracted))
    metadata = None if about is None else {"mannerly": msgspec.json.encode(about)}
    schema = pa.schema(list(columns.items()), metadata=metadata)
    return write_parquet(rows, schema, wanted.path, is_folder=wanted.is_folder)


def _items(extracted: Extracted) -> Iterator[dict[str, Any]]:
    for _, found in extracted():
        for line in found.items:
            yield _decode(line)


def _failures(extracted: Extracted) -> tuple[str, ...]:
    failed = [(url, found.error) for url, found in extracted() if found.error is not None]
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
