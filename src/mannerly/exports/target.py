"""The target of an export: `[TABLE:]FILE`, and the meaning of its suffix.

    pages (default)    .jsonl .jsonl.gz .csv .parquet .xml (sitemap) .warc.gz .wacz, or a folder/
    links, items       .jsonl .jsonl.gz .csv .parquet

A folder ends in `/`. `pages.parquet/` is a folder of Parquet files, any other one gets a file for
each page. Everything that can be known before a crawl is checked here: a suffix, a missing package,
a directory that does not exist.
"""

from __future__ import annotations

import os
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from mannerly.crawler.web.choices import Content
from mannerly.extras import install_words

STDOUT = "-"


class Table(StrEnum):
    """The tables that can be exported."""

    PAGES = "pages"
    LINKS = "links"
    ITEMS = "items"


class Format(StrEnum):
    """The formats that can be written; the values are the suffixes."""

    JSONL = "jsonl"
    JSONL_GZ = "jsonl.gz"
    CSV = "csv"
    PARQUET = "parquet"
    WARC = "warc.gz"
    WACZ = "wacz"
    XML = "xml"
    FOLDER = "folder"


class ExportError(ValueError):
    """A target that cannot be written to; raised before anything is written."""


ROW_FORMATS = (Format.JSONL, Format.JSONL_GZ, Format.CSV, Format.PARQUET)
ARCHIVES = (Format.WARC, Format.WACZ)
# Packages that a format needs, and the extra that brings them.
_NEEDED = {Format.PARQUET: ("pyarrow", "parquet"), Format.WACZ: ("surt", "archive")}


class Target(NamedTuple):
    """One output."""

    text: str  # as it was given
    table: Table
    path: str  # without the table
    format: Format
    is_folder: bool = False
    is_raw: bool = False  # no apostrophe before formulas, in CSV

    def needs_bodies(self, content: Content = Content.NONE) -> bool:
        """Return whether this output can only be made of a crawl that keeps bodies."""
        if self.table is not Table.PAGES:
            return False
        return self.format in (*ARCHIVES, Format.FOLDER) or self.has_content(content)

    def has_content(self, content: Content) -> bool:
        """Return whether the content of pages goes into this output."""
        rows = (Format.JSONL, Format.JSONL_GZ, Format.PARQUET)
        return content is not Content.NONE and self.table is Table.PAGES and self.format in rows


def read_target(text: str, fmt: Format | None = None) -> Target:
    """Return what an output means.

    Raises:
        ExportError: its suffix has no format, it cannot be written, or a package is missing.
    """
    table, path = _split(text)
    target = _target(text, table, path, fmt)
    if table is not Table.PAGES and target.format not in ROW_FORMATS:
        raise ExportError(f"{table} cannot be written as .{target.format}: use {_listed(table)}")
    if target.format in _NEEDED:
        package, extra = _NEEDED[target.format]
        if find_spec(package) is None:
            raise ExportError(f"writing .{target.format} needs {package}: {install_words(extra)}")
    return target


def check_target(text: str, fmt: Format | None = None) -> Format:
    """Return the format of an output. Raises ExportError as `read_target` does."""
    return read_target(text, fmt).format


def _split(text: str) -> tuple[Table, str]:
    name, colon, path = text.partition(":")
    if colon and name in list(Table):
        return Table(name), path
    return Table.PAGES, text


def _target(text: str, table: Table, path: str, fmt: Format | None) -> Target:
    if path == STDOUT:
        chosen = fmt or Format.JSONL
        if chosen not in (Format.JSONL, Format.CSV):
            raise ExportError(
                "only JSON lines and CSV can go to standard output: give a file name"
                if chosen is not Format.XML
                else "a sitemap cannot go to standard output: give a file name ending in .xml"
            )
        return Target(text, table, path, chosen)
    is_folder = path.endswith(("/", os.sep))
    place = Path(path)
    if not is_folder and place.is_dir():
        raise ExportError(f"{path} is a directory: add a file name, or end it with /")
    if is_folder and place.exists() and not place.is_dir():
        raise ExportError(f"{path} is not a directory: remove the / at its end")
    parent = place.absolute().parent
    if not parent.is_dir():
        raise ExportError(f"cannot write {path}: there is no directory {place.parent}")
    if not os.access(parent, os.W_OK) and not place.exists():
        raise ExportError(f"cannot write {path}: no permission to write in {place.parent}")
    if not is_folder:
        return Target(text, table, path, fmt or _by_suffix(place, table))
    is_parquet = place.name.lower().endswith(".parquet")
    chosen = Format.PARQUET if is_parquet else Format.FOLDER
    return Target(text, table, path, chosen, is_folder=True)


def _by_suffix(path: Path, table: Table) -> Format:
    name = path.name.lower()
    for fmt in sorted(_suffixes(Table.PAGES), key=len, reverse=True):
        if name.endswith(f".{fmt}"):
            return fmt
    raise ExportError(f'unknown export format "{path.suffix}": use {_listed(table)}')


def _suffixes(table: Table) -> list[Format]:
    if table is not Table.PAGES:
        return list(ROW_FORMATS)
    return [fmt for fmt in Format if fmt is not Format.FOLDER]


def _listed(table: Table) -> str:
    *most, last = (f".{fmt}" for fmt in _suffixes(table))
    return f"{', '.join(most)} or {last}"
