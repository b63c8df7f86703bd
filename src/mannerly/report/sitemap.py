"""The sitemap against the links: pages that only one of them knows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from .pages import is_html, is_ok, why_not_indexed
from .table import BadgeTone, Cell, Column, CsvFile, Phone, ReportTable, Row, Section

if TYPE_CHECKING:
    from mannerly.crawler.model import PageRecord

    from .facts import CrawlFacts

_FIELDS = ("what", "url", "status", "linked_from", "why_not_indexed")
_COLUMNS = (
    Column("What", Cell.BADGE, phone=Phone.UNDER),
    Column("Page", Cell.URL, width="wide"),
    Column("Answer", Cell.QUIET, phone=Phone.HIDDEN),
    Column("Linked from", Cell.NUMBER, unit="pages"),
)
_ORPHAN = "linked from nowhere"
_MISSING = "not in the sitemap"
_UNWANTED = "should not be listed"


class Disagreement(NamedTuple):
    """A page that the sitemap and the links do not agree on."""

    what: str
    page: PageRecord


def disagreements(facts: CrawlFacts) -> list[Disagreement]:
    """Return them: orphans first, then those with the most links."""
    pages = facts.pages.values()
    if not any(page.in_sitemap for page in pages):
        return []
    found = [Disagreement(what, page) for page in pages if (what := _what(page, facts))]
    order = (_ORPHAN, _UNWANTED, _MISSING)
    found.sort(
        key=lambda each: (order.index(each.what), -facts.linked[each.page.url], each.page.url)
    )
    return found


def summary(facts: CrawlFacts, found: list[Disagreement]) -> Section:
    """Return the numbers of pages in the sitemap, in the links, and in both."""
    listed = sum(bool(page.in_sitemap) for page in facts.pages.values())
    result = Section("sitemap", "Sitemap and links", len(found) if listed else "–", half=True)
    if not listed:
        result.empty = _no_sitemap(facts)
        return result
    counts = Counter(each.what for each in found)
    result.extra["facts"] = [
        ("In both", listed - counts[_ORPHAN] - counts[_UNWANTED]),
        ("In the sitemap, but linked from nowhere", counts[_ORPHAN]),
        ("Linked, but not in the sitemap", counts[_MISSING]),
        ("In the sitemap, but noindex, redirected or missing", counts[_UNWANTED]),
    ]
    if not facts.has_links:
        result.note = "This crawl kept no links, so pages without a link are not known."
    return result


def section(facts: CrawlFacts, found: list[Disagreement]) -> Section | None:
    """Return the pages themselves; None if there are none."""
    if not found:
        return None
    linked = facts.linked
    rows = [
        Row(
            (
                (what, BadgeTone.PLAIN if what == _MISSING else BadgeTone.WARN),
                page.url,
                why_not_indexed(page) or str(page.status),
                linked[page.url],
            )
        )
        for what, page in found
    ]
    values = [
        (what, page.url, page.status, linked[page.url], why_not_indexed(page))
        for what, page in found
    ]
    return Section(
        "sitemap-pages",
        "Sitemap against links",
        len(found),
        f"{len(found):,} pages" if len(found) > 1 else "1 page",
        table=ReportTable(_COLUMNS, rows, "pages", sort=-1),
        csv=CsvFile("sitemap.csv", _FIELDS, lambda: values),
        is_listed=False,
    )


def _what(page: PageRecord, facts: CrawlFacts) -> str | None:
    if page.in_sitemap:
        if why_not_indexed(page):
            return _UNWANTED
        is_orphan = facts.has_links and not facts.linked[page.url] and page.url not in facts.seeds
        return _ORPHAN if is_orphan else None
    is_page = is_ok(page) and is_html(page) and why_not_indexed(page) is None
    return _MISSING if is_page else None


def _no_sitemap(facts: CrawlFacts) -> str:
    if facts.settings.seeding not in ("sitemap", "all"):
        return "This crawl read no sitemap (--seeding-strategy)."
    return "No sitemap was found, or it lists none of these pages."
