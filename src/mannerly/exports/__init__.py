"""A crawl's records as files: read from the store piece by piece, each record once.

    records    pages and skipped URLs over all shards
    jsonl      one JSON object a line
    csv        for spreadsheets, which must not take a title for a formula
    sitemap    the pages that a site owner would list
    whole      a file is the old one or the new one, never a half

`export(location, "pages.csv")` chooses by the suffix; "-" is standard output. All of it works
while the crawl runs: the export then holds what was committed until it got there.
"""

from __future__ import annotations

from .export import Exported, ExportError, Format, check_target, export

__all__ = ["ExportError", "Exported", "Format", "check_target", "export"]
