"""Write Parquet with pyarrow (extra `parquet`).

Rows go into row groups of `GROUP` rows, so memory does not grow with the crawl. A file is put in
place when it is complete; a folder gets part files of `PART` rows, each put in place whole, and
parts of an earlier export are removed at the end. DuckDB, Polars and pandas read either in one
line.

The columns of pages are those of their record, with its types. Items have the columns that their
keys give: a column whose values are of several types, or lists and objects, is JSON text.
"""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from mannerly.crawler.model import PageRecord

from .whole import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

GROUP = 20_000  # rows in memory at once
GROUP_WITH_CONTENT = 2_000  # fewer: the content of a page is much longer than its record
PART = 500_000

_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_INSTANT = pa.timestamp("ms", tz="UTC")


def page_schema(more: Sequence[str] = ()) -> pa.Schema:
    """Return the columns of pages; `more` are columns of text after them."""
    return schema_of(PageRecord, more)


def schema_of(record: Any, more: Sequence[str] = ()) -> pa.Schema:
    """Return the columns of a named tuple, with its types; `more` are columns of text."""
    hints = get_type_hints(record)
    columns = [(name, _column_type(name, hints[name])) for name in record._fields]
    return pa.schema([*columns, *((name, pa.string()) for name in more)])


def write_parquet(
    rows: Iterable[Sequence[object]], schema: pa.Schema, target: str, *, is_folder: bool
) -> tuple[int, int]:
    """Write rows in the order of the schema's columns; return the numbers of rows and of files."""
    source = iter(rows)
    if not is_folder:
        return _write_file(source, schema, Path(target)), 1
    folder = Path(target)
    folder.mkdir(exist_ok=True)
    written = 0
    names: set[str] = set()
    while True:
        name = f"part-{len(names) + 1:05}.parquet"
        part = list(islice(source, 1))
        if not part and names:
            break
        names.add(name)
        written += _write_file(chain(part, islice(source, PART - 1)), schema, folder / name)
        if not part:
            break
    for old in folder.glob("part-*.parquet"):
        if old.name not in names:
            old.unlink()
    return written, len(names)


def item_columns(items: Iterable[dict[str, Any]]) -> dict[str, pa.DataType]:
    """Return the columns of items: every key that occurs, with the type of its values."""
    seen: dict[str, set[type]] = {}
    for item in items:
        for name, value in item.items():
            seen.setdefault(name, set()).add(type(value))
    return {name: _item_type(types - {NoneType}) for name, types in seen.items()}


def item_row(item: dict[str, Any], columns: dict[str, pa.DataType]) -> tuple[object, ...]:
    """Return the values of an item in the order of the columns."""
    return tuple(_item_value(item.get(name), kind) for name, kind in columns.items())


def _write_file(rows: Iterator[Sequence[object]], schema: pa.Schema, path: Path) -> int:
    group = GROUP_WITH_CONTENT if "content" in schema.names else GROUP
    written = 0
    with whole_file(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while some := list(islice(rows, group)):
            columns = zip(zip(*some, strict=True), schema, strict=True)
            arrays = [_array(values, field) for values, field in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            written += len(some)
    return written


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    if field.type == _INSTANT:
        values = [None if value is None else int(value * 1000) for value in values]
    try:
        return pa.array(values, type=field.type)
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        if field.type != pa.string():
            raise
        texts = [each if each is None or isinstance(each, str) else _text(each) for each in values]
        return pa.array(texts, type=field.type)


def _column_type(name: str, hint: Any) -> pa.DataType:
    if name.endswith("fetched_at"):  # wall time in seconds
        return _INSTANT
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not NoneType]
    return _TYPES.get(kinds[0], pa.string()) if len(kinds) == 1 else pa.string()


def _item_type(types: set[type]) -> pa.DataType:
    if types == {int, float}:
        return pa.float64()
    return _TYPES.get(next(iter(types)), pa.string()) if len(types) == 1 else pa.string()


def _item_value(value: object, kind: pa.DataType) -> object:
    if value is None or kind != pa.string():
        return float(value) if kind == pa.float64() and isinstance(value, int) else value
    return value if isinstance(value, str) else _text(value)


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
