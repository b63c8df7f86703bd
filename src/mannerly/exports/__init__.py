"""Export a crawl's records to files. They are read from the store in pieces, each record once.

    jsonl      one JSON object a line
    csv        for spreadsheets; text is never taken for a formula
    sitemap    the pages that a site owner would list
    parquet    for DuckDB, Polars and pandas
    folder     the content of every page in a file of its own
    archive    web archives: WARC and WACZ
    items      items that were extracted from pages, and links
    rows       the pages of an export, and their values
    whole      replace a file only when the new one is complete

`export(location, "pages.csv")` chooses by the suffix (`target`); "-" is standard output. The
content of pages is made in processes of their own (`content`). All of it works
while the crawl runs; the export then has the records that were committed when they were read.
"""

from __future__ import annotations

from .export import Exported, export
from .rows import Choice
from .target import STDOUT, ExportError, Format, Table, Target, check_target, read_target

__all__ = [
    "STDOUT",
    "Choice",
    "ExportError",
    "Exported",
    "Format",
    "Table",
    "Target",
    "check_target",
    "export",
    "read_target",
]
