"""The slowest and the largest pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.web.media_types import media_type

from .pages import is_ok
from .table import Cell, Column, CsvFile, Phone, ReportTable, Row, Section, rows_of

if TYPE_CHECKING:
    from .facts import CrawlFacts

SLOW_MS = 1000.0
LARGE_BYTES = 2_000_000

_SLOW_FIELDS = ("url", "first_byte_ms", "whole_page_ms", "bytes")
_SLOW_COLUMNS = (
    Column("Page", Cell.URL, width="wide"),
    Column("First byte", Cell.BAR, unit="s"),
    Column("Whole page", Cell.SECONDS, unit="s", phone=Phone.HIDDEN),
    Column("Size", Cell.BYTES, phone=Phone.HIDDEN),
)
_LARGE_FIELDS = ("url", "content_type", "bytes")
_LARGE_COLUMNS = (
    Column("Page", Cell.URL, width="wide"),
    Column("Type", Cell.QUIET, phone=Phone.HIDDEN),
    Column("Size", Cell.BYTES),
)


def slow_section(facts: CrawlFacts) -> Section:
    """Return the section of slow pages: those over one second."""
    shown = [each for each in facts.pages.values() if is_ok(each) and each.latency_ms > SLOW_MS]
    shown.sort(key=lambda page: (-page.latency_ms, page.url))
    rows = [
        Row((page.url, page.latency_ms / 1000, page.total_ms / 1000, page.bytes)) for page in shown
    ]
    values = [(page.url, page.latency_ms, page.total_ms, page.bytes) for page in shown]
    return Section(
        "slow",
        "Slow pages",
        len(shown),
        f"{len(shown):,} over 1 s",
        "Time to the first byte, without connecting." if shown else "",
        empty="No page took longer than 1 s to its first byte.",
        table=ReportTable(_SLOW_COLUMNS, rows, "pages", sort=1) if rows else None,
        csv=CsvFile("slow.csv", _SLOW_FIELDS, lambda: rows_of(_SLOW_FIELDS, values)),
    )


def large_section(facts: CrawlFacts) -> Section:
    """Return the section of large pages: those over 2 MB."""
    shown = [each for each in facts.pages.values() if is_ok(each) and each.bytes > LARGE_BYTES]
    shown.sort(key=lambda page: (-page.bytes, page.url))
    rows = [Row((page.url, media_type(page.content_type) or None, page.bytes)) for page in shown]
    values = [(page.url, page.content_type, page.bytes) for page in shown]
    return Section(
        "large",
        "Large pages",
        len(shown),
        f"{len(shown):,} over 2 MB",
        empty="No page is larger than 2 MB.",
        table=ReportTable(_LARGE_COLUMNS, rows, "pages", sort=2) if rows else None,
        csv=CsvFile("large.csv", _LARGE_FIELDS, lambda: rows_of(_LARGE_FIELDS, values)),
    )
