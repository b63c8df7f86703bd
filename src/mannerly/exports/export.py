"""Write an export: the suffix of the file name decides the format."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.stored import StoredCrawl

    from .rows import Row

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

    def described(self) -> list[str]:
        """Return it in words; nothing for standard output, which is for data only."""
        if self.target == STDOUT:
            return []
        what = "URLs" if self.format is Format.XML else "records"
        parts = f", in {self.files} files and an index" if self.files > 1 else ""
        return [f"Wrote {self.target}: {self.records:,} {what}{parts}"]


def check_target(target: str, fmt: Format | None = None) -> Format:
    """Return the format of a target.

    Raises:
        ExportError: its suffix has no format, or it cannot be written.
    """
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
    location: str | Path, target: str, fmt: Format | None = None, *, include_skipped: bool = False
) -> Exported:
    """Write a crawl's records to a file, or to standard output ("-").

    Raises:
        ExportError: the target cannot be written to.
        StoreError: the crawl cannot be read.
        OSError: the target cannot be written; an earlier file of that name is unchanged.
    """
    from mannerly.crawler.stored import open_crawl

    chosen = check_target(target, fmt)
    with open_crawl(location) as records:
        if chosen is Format.XML:
            from .sitemap import write_sitemap

            urls, files = write_sitemap(records.pages(), Path(target))
            return Exported(target, chosen, urls, files)
        with _destination(target) as file:
            count = _write(records, chosen, file, include_skipped=include_skipped)
    return Exported(target, chosen, count)


def _by_suffix(path: Path) -> Format:
    name = path.name.lower()
    for fmt in Format:
        if name.endswith(f".{fmt}"):
            return fmt
    *most, last = (f".{fmt}" for fmt in Format)
    allowed = f"use {', '.join(most)} or {last}"
    raise ExportError(f'unknown export format "{path.suffix}": {allowed}')


def _write(records: StoredCrawl, fmt: Format, file: BinaryIO, *, include_skipped: bool) -> int:
    from .csv import write_csv
    from .jsonl import write_jsonl
    from .rows import FIELDS, REASONS

    fields = (*FIELDS, *REASONS) if include_skipped else FIELDS
    rows = _rows(records, include_skipped=include_skipped)
    if fmt is Format.CSV:
        return write_csv(rows, fields, file)
    return write_jsonl(rows, file)


def _rows(records: StoredCrawl, *, include_skipped: bool) -> Iterator[Row]:
    """Yield one row a URL: pages first, then those that were skipped or given up."""
    from .rows import page_row, skipped_row

    failed: set[str] = set()
    for record in records.pages():
        if include_skipped and record.status is None:
            failed.add(record.url)
        yield page_row(record)
    if include_skipped:
        for each in chain(records.skipped(), records.given_up()):
            # A page that had failed may have been tried again and given up in the meantime.
            if each.url not in failed:
                yield skipped_row(each)


@contextmanager
def _destination(target: str) -> Iterator[BinaryIO]:
    from .whole import whole_file

    if target != STDOUT:
        with whole_file(Path(target)) as file:
            yield file
        return
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()
