"""Export a crawl's records to files. They are read from the store in pieces, each record once.

    jsonl      one JSON object a line
    csv        for spreadsheets; text is never taken for a formula
    sitemap    the pages that a site owner would list
    tables     the columns and rows that all formats write
    whole      replace a file only when the new one is complete

`export(location, "pages.csv")` chooses by the suffix; "-" is standard output. All of it works
while the crawl runs; the export then has the records that were committed when they were read.
"""

from __future__ import annotations

from .export import Exported, ExportError, Format, check_target, export
from .tables import Choice, Table, split_target

__all__ = [
    "Choice",
    "ExportError",
    "Exported",
    "Format",
    "Table",
    "check_target",
    "export",
    "split_target",
]
