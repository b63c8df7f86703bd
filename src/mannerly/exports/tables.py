"""The tables that an export can write: their columns, and their rows one by one.

    pages    one row a URL, fields of a record; `metadata` where the format can hold it
    links    one row a link

`pages.csv` is the table of pages; another one is named before the file, as in `links:links.csv`.
Every format takes its rows from here.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import Link, PageChange
from mannerly.crawler.web.machine_use import is_reserved

from .rows import FIELDS, REASONS, page_row, skipped_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.stored import StoredCrawl

    from .rows import Row


class Table(StrEnum):
    """The tables by the names that stand before a file."""

    PAGES = "pages"
    LINKS = "links"


class Choice(NamedTuple):
    """The choice of pages that an export has."""

    include_skipped: bool = False  # also URLs that were skipped or given up
    changed: bool = False  # only pages that are new or changed since the crawl before
    unreserved: bool = False  # without pages that their site reserves against use by machines


ALL = Choice()


class Rows(NamedTuple):
    """The columns of a table, and its rows."""

    fields: tuple[str, ...]
    rows: Iterator[Row]


def split_target(target: str) -> tuple[Table, str]:
    """Return the table and the file of a target such as `links:links.csv`."""
    name, colon, file = target.partition(":")
    if colon and name in Table.__members__.values():
        return Table(name), file
    return Table.PAGES, target


def rows_of(
    crawl: StoredCrawl, table: Table, choice: Choice = ALL, *, with_metadata: bool = False
) -> Rows:
    """Return a table of a crawl, read as it is asked for."""
    if table is Table.LINKS:
        return Rows(Link._fields, _links(crawl))
    extra = ("metadata",) if with_metadata else ()
    reasons = REASONS if choice.include_skipped else ()
    return Rows((*FIELDS, *extra, *reasons), _pages(crawl, choice, with_metadata=with_metadata))


def _links(crawl: StoredCrawl) -> Iterator[Row]:
    for link in crawl.links():
        yield link._asdict()


def _pages(crawl: StoredCrawl, choice: Choice, *, with_metadata: bool) -> Iterator[Row]:
    """Yield one row a URL: pages first, then those that were skipped or given up."""
    failed: set[str] = set()
    needs_metadata = with_metadata or choice.unreserved
    pages = crawl.metadata() if needs_metadata else ((record, {}) for record in crawl.pages())
    for record, metadata in pages:
        if choice.include_skipped and record.status is None:
            failed.add(record.url)
        if choice.changed and record.change not in (PageChange.NEW, PageChange.CHANGED):
            continue
        use = metadata.get("machine_use", {})
        if choice.unreserved and isinstance(use, dict) and is_reserved(use):
            continue
        row = page_row(record)
        if with_metadata:
            row["metadata"] = metadata
        yield row
    if choice.include_skipped:
        for each in chain(crawl.skipped(), crawl.given_up()):
            # A page that had failed may have been tried again and given up in the meantime.
            if each.url not in failed:
                yield skipped_row(each)
