"""Pages with the same title or the same text."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from .pages import is_html, is_ok
from .table import (
    ALL_DETAILS,
    BadgeTone,
    Cell,
    Column,
    CsvFile,
    Phone,
    ReportTable,
    Row,
    Section,
    counted,
    cut,
    rows_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.model import PageRecord

    from .facts import CrawlFacts

_FIELDS = ("group", "same", "title", "url", "canonical")
_COLUMNS = (
    Column("Same title or text", width="wide"),
    Column("What is the same", Cell.QUIET, phone=Phone.UNDER),
    Column("Pages", Cell.NUMBER),
    Column("Canonical", Cell.BADGE, phone=Phone.HIDDEN),
)


class DuplicateGroup(NamedTuple):
    """Pages that have something in common."""

    same: str
    pages: list[PageRecord]


def groups(facts: CrawlFacts) -> list[DuplicateGroup]:
    """Return the groups, the largest first. Equal groups of both kinds are one."""
    titles: defaultdict[str, list[PageRecord]] = defaultdict(list)
    texts: defaultdict[str, list[PageRecord]] = defaultdict(list)
    for page in facts.pages.values():
        if is_ok(page) and is_html(page):
            if page.title:
                titles[page.title].append(page)
            if content := page.text_digest or page.digest:
                texts[content].append(page)
    by_pages: dict[tuple[str, ...], DuplicateGroup] = {}
    for same, found in (("title", titles), ("text", texts)):
        for pages in found.values():
            if len(pages) > 1:
                key = tuple(page.url for page in pages)
                both = "title and text" if key in by_pages else same
                by_pages[key] = DuplicateGroup(both, pages)
    return sorted(by_pages.values(), key=lambda each: (-len(each.pages), each.pages[0].url))


def section(found: list[DuplicateGroup]) -> Section:
    """Return the section of duplicates."""
    room, rows = ALL_DETAILS, []
    for group in found:
        details = cut(((page.url, "") for page in group.pages), len(group.pages), room)
        room -= len(details.lines)
        title = group.pages[0].title or group.pages[0].url
        rows.append(Row((title, group.same, len(group.pages), _canonical(group)), details))
    pages = len({page.url for group in found for page in group.pages})
    return Section(
        "duplicates",
        "Duplicates",
        len(found),
        f"{counted(len(found), 'group')}, {counted(pages, 'page')}" if found else "0",
        empty="No two pages have the same title or the same text.",
        table=ReportTable(_COLUMNS, rows, "groups", sort=2) if rows else None,
        csv=CsvFile("duplicates.csv", _FIELDS, lambda: rows_of(_FIELDS, _csv(found))),
    )


def _canonical(group: DuplicateGroup) -> tuple[str, BadgeTone]:
    named = {page.canonical for page in group.pages}
    if named == {None}:
        return "none", BadgeTone.WARN
    if len(named) == 1:
        return "one for all", BadgeTone.GOOD
    if named <= {None, *(page.url for page in group.pages)} and len(named - {None}) == 1:
        return "one for some", BadgeTone.WARN
    if all(page.canonical == page.url for page in group.pages):
        return "each its own", BadgeTone.WARN
    return f"{len(named - {None})} different ones", BadgeTone.WARN


def _csv(found: list[DuplicateGroup]) -> Iterator[tuple[object, ...]]:
    for number, group in enumerate(found, 1):
        for page in group.pages:
            yield number, group.same, page.title, page.url, page.canonical
