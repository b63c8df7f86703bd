"""Write an export: the suffix of the file name decides the format."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from .tables import ALL, Choice, Table, split_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.stored import StoredCrawl

STDOUT = "-"


class Format(StrEnum):
    """The formats that can be written; the values are the suffixes."""

    JSONL = "jsonl"
    CSV = "csv"
    XML = "xml"


class ExportError(ValueError):
    """A target that cannot be written to; raised before anything is written."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The outcome of an export."""

    target: str
    format: Format
    records: int
    files: int = 1
    what: str = "records"

    def described(self) -> list[str]:
        """Return it in words; nothing for standard output, which is for data only."""
        if self.target == STDOUT:
            return []
        parts = f", in {self.files} files and an index" if self.files > 1 else ""
        return [f"Wrote {self.target}: {self.records:,} {self.what}{parts}"]


def check_target(target: str, fmt: Format | None = None) -> Format:
    """Return the format of a target.

    Raises:
        ExportError: its suffix has no format, or it cannot be written.
    """
    table, target = split_target(target)
    chosen = _checked_target(target, fmt)
    if table is not Table.PAGES and chosen is Format.XML:
        raise ExportError(f"a sitemap lists pages: write the {table} to .jsonl or .csv")
    return chosen


def _checked_target(target: str, fmt: Format | None) -> Format:
    if target == STDOUT:
        chosen = fmt or Format.JSONL
        if chosen is Format.XML:
            raise ExportError(
                "a sitemap cannot go to standard output: give a file name ending in .xml"
            )
        return chosen
    path = Path(target)
    if path.is_dir():
        raise ExportError(f"{target} is a directory: add a file name")
    if not path.absolute().parent.is_dir():
        raise ExportError(f"cannot write {target}: there is no directory {path.parent}")
    if not os.access(path.absolute().parent, os.W_OK) and not path.exists():
        raise ExportError(f"cannot write {target}: no permission to write in {path.parent}")
    return fmt or _by_suffix(path)


def export(
    location: str | Path, target: str, fmt: Format | None = None, choice: Choice = ALL
) -> Exported:
    """Write a table of a crawl to a file, or to standard output ("-").

    Raises:
        ExportError: the target cannot be written to.
        StoreError: the crawl cannot be read.
        OSError: the target cannot be written; an earlier file of that name is unchanged.
    """
    from mannerly.crawler.stored import open_crawl

    chosen = check_target(target, fmt)
    table, target = split_target(target)
    with open_crawl(location) as records:
        if chosen is Format.XML:
            from .sitemap import write_sitemap

            urls, files = write_sitemap(records.pages(), Path(target))
            return Exported(target, chosen, urls, files, "URLs")
        if table is Table.LINKS and not records.keeps_links:
            raise ExportError("this crawl kept no links: begin it anew with --links --fresh")
        with _destination(target) as file:
            count = _write(records, table, choice, chosen, file)
    return Exported(target, chosen, count, what="links" if table is Table.LINKS else "records")


def _by_suffix(path: Path) -> Format:
    name = path.name.lower()
    for fmt in Format:
        if name.endswith(f".{fmt}"):
            return fmt
    *most, last = (f".{fmt}" for fmt in Format)
    allowed = f"use {', '.join(most)} or {last}"
    raise ExportError(f'unknown export format "{path.suffix}": {allowed}')


def _write(records: StoredCrawl, table: Table, choice: Choice, fmt: Format, file: BinaryIO) -> int:
    from .csv import write_csv
    from .jsonl import write_jsonl
    from .tables import rows_of

    fields, rows = rows_of(records, table, choice, with_metadata=fmt is Format.JSONL)
    if fmt is Format.CSV:
        return write_csv(rows, fields, file)
    return write_jsonl(rows, file)


@contextmanager
def _destination(target: str) -> Iterator[BinaryIO]:
    from .whole import whole_file

    if target != STDOUT:
        with whole_file(Path(target)) as file:
            yield file
        return
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()
