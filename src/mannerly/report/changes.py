"""Changes since the last crawl: new, changed and removed pages."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mannerly.crawler.web.words import many

from .table import (
    BadgeTone,
    Cell,
    Column,
    CsvFile,
    Phone,
    ReportTable,
    Row,
    Section,
    day,
)

if TYPE_CHECKING:
    from mannerly.crawler.model import PageRecord

    from .facts import CrawlFacts

_FIELDS = ("change", "url", "what", "status", "previous_status", "linked_from")
_COLUMNS = (
    Column("Change", Cell.BADGE, phone=Phone.UNDER),
    Column("Page", Cell.URL, width="wide"),
    Column("What", Cell.QUIET, phone=Phone.UNDER),
)
# In this order; the word that people read, and its tone.
_WORDS = {
    "removed": ("gone", BadgeTone.BAD),
    "new": ("new", BadgeTone.NEW),
    "changed": ("changed", BadgeTone.PLAIN),
    "unclear": ("unclear", BadgeTone.PLAIN),
}
NOT_AGAIN = (
    "This is the first crawl of these pages. After mannerly recrawl the differences are here."
)


def counts(facts: CrawlFacts) -> Counter[str]:
    """Return the number of pages by their change."""
    return Counter(page.change for page in facts.pages.values() if page.change)


def since(facts: CrawlFacts) -> str:
    """Return the day of the last crawl."""
    last = max((page.previous_fetched_at or 0.0 for page in facts.pages.values()), default=0.0)
    return day(last) if last else "the last crawl"


def has_changes(facts: CrawlFacts) -> bool:
    """Return whether this crawl was run again: then pages have a time before."""
    return any(page.previous_fetched_at for page in facts.pages.values())


def section(facts: CrawlFacts) -> Section:
    """Return the section of changes."""
    if not has_changes(facts):
        return Section("changes", "What changed", "–", empty=NOT_AGAIN)
    number = counts(facts)
    found = [page for page in facts.pages.values() if page.change in _WORDS]
    order = list(_WORDS)
    found.sort(key=lambda page: (order.index(page.change or ""), -facts.linked[page.url], page.url))
    rows = [Row((_WORDS[page.change or ""], page.url, _what(page, facts))) for page in found]
    values = [
        (
            _WORDS[page.change or ""][0],
            page.url,
            _what(page, facts),
            page.status,
            page.previous_status,
            facts.linked[page.url],
        )
        for page in found
    ]
    badges = [(*_WORDS[change], number[change]) for change in ("new", "changed", "removed")]
    badges += [(*_WORDS["unclear"], number["unclear"])] if number["unclear"] else []
    return Section(
        "changes",
        "What changed",
        len(rows),
        f"since {since(facts)}",
        empty=f"Nothing changed: all {many(number['same'], 'page')} are the same.",
        table=ReportTable(_COLUMNS, rows, "changes", sort=-1),
        csv=CsvFile("changes.csv", _FIELDS, lambda: values),
        extra={"badges": badges, "same": number["same"]} if rows else {},
    )


def _what(page: PageRecord, facts: CrawlFacts) -> str:
    linked = facts.linked[page.url]
    said = []
    if page.change != "new" and page.previous_status != page.status:
        said.append(f"{page.previous_status or 'no answer'} → {page.status or 'no answer'}")
    elif page.change == "changed":
        said.append("another target" if page.redirect_to else "other content")
    elif page.change == "unclear":
        said.append("other bytes; no digest of its text before")
    if page.change == "removed" and linked:
        said.append(f"still linked from {many(linked, 'page')}")
    elif page.change == "new":
        said.append(f"linked from {many(linked, 'page')}" if linked else "linked from nowhere")
        said += ["in the sitemap"] if page.in_sitemap else []
    if page.noindex:
        said.append("noindex")
    return ", ".join(said)
