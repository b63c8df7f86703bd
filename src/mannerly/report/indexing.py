"""Pages that ask not to be listed, and pages that name another one as the original."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .pages import answer, is_ok, why_not_indexed
from .table import BadgeTone, Cell, Column, CsvFile, Phone, ReportTable, Row, Section, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.model import PageRecord

    from .facts import CrawlFacts

_FIELDS = ("url", "why", "canonical", "canonical_answer", "linked_from")
_COLUMNS = (
    Column("Why", Cell.BADGE, phone=Phone.UNDER),
    Column("Page", Cell.URL, width="wide"),
    Column("Canonical", Cell.URL, phone=Phone.HIDDEN),
    Column("Answer there", Cell.BADGE, phone=Phone.HIDDEN),
    Column("Linked from", Cell.NUMBER, unit="pages"),
)


def section(facts: CrawlFacts) -> Section:
    """Return the section of pages that are noindex or canonicalised."""
    found = [
        (page, why)
        for page in facts.pages.values()
        if is_ok(page) and (why := why_not_indexed(page))
    ]
    found.sort(key=lambda each: (-facts.linked[each[0].url], each[0].url))
    rows = [
        Row(
            (
                (why, BadgeTone.PLAIN),
                page.url,
                page.canonical if page.canonical != page.url else None,
                _there(page, facts),
                facts.linked[page.url],
            )
        )
        for page, why in found
    ]
    return Section(
        "indexing",
        "Noindex and canonical",
        len(found),
        f"{len(found):,}",
        "These pages were answered, and a search engine will not list them." if found else "",
        empty="No page asks not to be listed, and none names another page as its original.",
        table=ReportTable(_COLUMNS, rows, "pages", sort=4) if rows else None,
        csv=CsvFile("indexing.csv", _FIELDS, lambda: rows_of(_FIELDS, _csv(facts, found))),
    )


def _there(page: PageRecord, facts: CrawlFacts) -> tuple[str, BadgeTone] | None:
    """Return how the canonical page answered; None if the crawl does not know it."""
    there = facts.pages.get(page.canonical or "")
    if there is None or there is page:
        return None
    return answer(there), BadgeTone.GOOD if is_ok(there) else BadgeTone.BAD


def _csv(facts: CrawlFacts, found: list[tuple[PageRecord, str]]) -> Iterator[tuple[object, ...]]:
    for page, why in found:
        there = _there(page, facts)
        shown = None if there is None else there[0]
        yield page.url, why, page.canonical, shown, facts.linked[page.url]
