"""Pages in search results: titles and descriptions, duplicates, noindex, and other originals.

Only pages that may be listed are judged. The limits of lengths are those of usual tools: a title
between 30 and 60 characters and a description between 70 and 155 are shown whole. Images and
translations are known if the crawl has kept its links (--links).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.web.words import many

from .pages import answer, is_html, is_ok, why_not_indexed
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
    cut,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mannerly.crawler.model import PageRecord

    from .facts import CrawlFacts

TITLE = (30, 60)  # characters
DESCRIPTION = (70, 155)
THIN_BYTES = 2000  # of HTML, markup included: a sentence or two

_FIELDS = ("problem", "url", "value")
_COLUMNS = (
    Column("Problem", width="wide"),
    Column("Pages", Cell.NUMBER),
    Column("Why it matters", Cell.QUIET, phone=Phone.HIDDEN),
)
_CUT = "it is cut off"
_MADE = "a search engine makes one up"
_WHY = {
    "Title missing": _MADE,
    "Title short": f"under {TITLE[0]} characters: it says little",
    "Title long": f"over {TITLE[1]} characters: {_CUT}",
    "Title on several pages": "they cannot be told apart in a list of results",
    "Description missing": _MADE,
    "Description short": f"under {DESCRIPTION[0]} characters: there is room for more",
    "Description long": f"over {DESCRIPTION[1]} characters: {_CUT}",
    "Description on several pages": "it describes none of them",
    "No h1": "nothing says what the page is about",
    "Images without alt": "readers who do not see them get nothing",
    "hreflang without return link": "search engines ignore it",
    "Thin page": f"under {THIN_BYTES:,} bytes of HTML, markup included",
}


class ListingProblem(NamedTuple):
    """One problem, and the pages that have it, each with what was found there."""

    name: str
    pages: list[tuple[str, str]]


def problems(facts: CrawlFacts) -> list[ListingProblem]:
    """Return the problems that occur, in a fixed order."""
    found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    judged = {
        url: page
        for url, page in sorted(facts.pages.items())
        if is_ok(page) and is_html(page) and why_not_indexed(page) is None
    }
    for url, page in judged.items():
        for name, value in _of_page(page):
            found[name].append((url, value))
        if images := facts.without_alt.get(url):
            found["Images without alt"].append((url, many(images, "image")))
        for target in sorted(facts.hreflangs.get(url, ())):
            if target != url and target in judged and url not in facts.hreflangs.get(target, ()):
                found["hreflang without return link"].append((url, target))
    for name, text in (("Title", _title), ("Description", _description)):
        found[f"{name} on several pages"] = list(_doubled(judged, text))
    return [ListingProblem(name, found[name]) for name in _WHY if found[name]]


def _title(page: PageRecord) -> str | None:
    return page.title


def _description(page: PageRecord) -> str | None:
    return page.description


def _of_page(page: PageRecord) -> Iterator[tuple[str, str]]:
    for name, text, limits in (
        ("Title", page.title, TITLE),
        ("Description", page.description, DESCRIPTION),
    ):
        if not text:
            yield f"{name} missing", ""
        elif len(text) < limits[0]:
            yield f"{name} short", text
        elif len(text) > limits[1]:
            yield f"{name} long", text
    if not page.h1:
        yield "No h1", ""
    if page.bytes < THIN_BYTES:
        yield "Thin page", many(page.bytes, "byte")


def _doubled(
    pages: dict[str, PageRecord], text: Callable[[PageRecord], str | None]
) -> Iterator[tuple[str, str]]:
    """Yield the pages that share a text with others, those with the same one together."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for url, page in pages.items():
        if same := text(page):
            groups[same].append(url)
    for same, urls in groups.items():
        if len(urls) > 1:
            yield from ((url, same) for url in urls)


def section(facts: CrawlFacts) -> Section:
    """Return the section of titles, descriptions, headings, images and translations."""
    found = problems(facts)
    room, rows = ALL_DETAILS, []
    for problem in found:
        urls = len({url for url, _ in problem.pages})
        details = cut(problem.pages, len(problem.pages), room)
        room -= len(details.lines)
        rows.append(Row((problem.name, urls, _WHY[problem.name]), details))
    pages = len({url for problem in found for url, _ in problem.pages})
    unknown = (
        "" if facts.has_links else " Images and translations are judged if you crawl with --links."
    )
    return Section(
        "listing",
        "Titles and descriptions",
        len(found),
        many(pages, "page") if found else "0",
        ("Of pages that a search engine may list." if found else "") + unknown,
        empty="Every page has a title, a description and a heading of its own.",
        table=ReportTable(_COLUMNS, rows, "problems", sort=-1, first=len(_WHY)),
        csv=CsvFile("listing.csv", _FIELDS, lambda: _csv(found)),
    )


def _csv(found: list[ListingProblem]) -> Iterator[tuple[object, ...]]:
    for problem in found:
        for url, value in problem.pages:
            yield problem.name, url, value or None


_NOINDEX_FIELDS = ("url", "why", "canonical", "canonical_answer", "linked_from")
_NOINDEX_COLUMNS = (
    Column("Why", Cell.BADGE, phone=Phone.UNDER),
    Column("Page", Cell.URL, width="wide"),
    Column("Canonical", Cell.URL, phone=Phone.HIDDEN),
    Column("Answer there", Cell.BADGE, phone=Phone.HIDDEN),
    Column("Linked from", Cell.NUMBER, unit="pages"),
)


def noindex_section(facts: CrawlFacts) -> Section:
    """Return the noindex_section of pages that are noindex or canonicalised."""
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
                _canonical_answer(page, facts),
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
        table=ReportTable(_NOINDEX_COLUMNS, rows, "pages", sort=4),
        csv=CsvFile(
            "indexing.csv",
            _NOINDEX_FIELDS,
            lambda: _noindex_csv(facts, found),
        ),
    )


def _canonical_answer(page: PageRecord, facts: CrawlFacts) -> tuple[str, BadgeTone] | None:
    """Return how the canonical page answered; None if the crawl does not know it."""
    there = facts.pages.get(page.canonical or "")
    if there is None or there is page:
        return None
    return answer(there), BadgeTone.GOOD if is_ok(there) else BadgeTone.BAD


def _noindex_csv(
    facts: CrawlFacts, found: list[tuple[PageRecord, str]]
) -> Iterator[tuple[object, ...]]:
    for page, why in found:
        there = _canonical_answer(page, facts)
        shown = None if there is None else there[0]
        yield page.url, why, page.canonical, shown, facts.linked[page.url]


_DUPLICATE_FIELDS = ("group", "same", "title", "url", "canonical")
_DUPLICATE_COLUMNS = (
    Column("Same title or text", width="wide"),
    Column("What is the same", Cell.QUIET, phone=Phone.UNDER),
    Column("Pages", Cell.NUMBER),
    Column("Canonical", Cell.BADGE, phone=Phone.HIDDEN),
)


class DuplicateGroup(NamedTuple):
    """Pages that have something in common."""

    same: str
    pages: list[PageRecord]


def duplicate_groups(facts: CrawlFacts) -> list[DuplicateGroup]:
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


def duplicates_section(found: list[DuplicateGroup]) -> Section:
    """Return the section of duplicates."""
    room, rows = ALL_DETAILS, []
    for group in found:
        details = cut(((page.url, "") for page in group.pages), len(group.pages), room)
        room -= len(details.lines)
        title = group.pages[0].title or group.pages[0].url
        rows.append(Row((title, group.same, len(group.pages), _canonical_of(group)), details))
    pages = len({page.url for group in found for page in group.pages})
    return Section(
        "duplicates",
        "Duplicates",
        len(found),
        f"{many(len(found), 'group')}, {many(pages, 'page')}" if found else "0",
        empty="No two pages have the same title or the same text.",
        table=ReportTable(_DUPLICATE_COLUMNS, rows, "groups", sort=2),
        csv=CsvFile(
            "duplicates.csv",
            _DUPLICATE_FIELDS,
            lambda: _duplicates_csv(found),
        ),
    )


def _canonical_of(group: DuplicateGroup) -> tuple[str, BadgeTone]:
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


def _duplicates_csv(found: list[DuplicateGroup]) -> Iterator[tuple[object, ...]]:
    for number, group in enumerate(found, 1):
        for page in group.pages:
            yield number, group.same, page.title, page.url, page.canonical
