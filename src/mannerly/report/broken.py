"""Broken links: every target that cannot be reached, and every page that links to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .facts import pages_of_links
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
from .words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .facts import CrawlFacts
    from .table import CsvRow

_FIELDS = ("target", "answer", "linked_from", "text", "kind")
_COLUMNS = (
    Column("Target", Cell.URL, width="wide"),
    Column("Answer", Cell.BADGE, phone=Phone.UNDER),
    Column("Linked from", Cell.NUMBER, unit="pages"),
)


def section(facts: CrawlFacts) -> Section:
    """Return the section of broken links."""
    answers = facts.verdict.answers
    room, rows = ALL_DETAILS, []
    for url, target in sorted(facts.broken.items(), key=lambda each: (-each[1].pages, each[0])):
        details = cut(((page, text or "") for page, text, _ in target.lines), target.pages, room)
        room -= len(details.lines)
        rows.append(Row((url, (answers[url], BadgeTone.BAD), target.pages), details))
    about = ""
    if rows:
        about = f"{counted(len(rows), 'target')} on {counted(facts.pages_with_broken, 'page')}"
    note = (
        "Most linked first. Every page that links to a target is listed, with the text of the link."
    )
    if not facts.has_links:
        note = (
            "This crawl kept no links, so only the page on which each target was found first is "
            "known."
        )
    return Section(
        "broken",
        "Broken links",
        len(rows),
        about,
        note if rows else "",
        empty=f"No link is broken: all {counted(len(facts.pages), 'page')} were reached."
        if facts.pages
        else "No page was fetched yet.",
        table=ReportTable(_COLUMNS, rows, "targets", sort=2) if rows else None,
        csv=CsvFile("broken.csv", _FIELDS, lambda: _csv(facts, answers)),
    )


def _csv(facts: CrawlFacts, answers: dict[str, str]) -> Iterator[CsvRow]:
    """Yield one row for each link to a broken target."""
    if facts.is_cut:
        yield from _read_again(facts, answers)
        return
    for url, target in facts.broken.items():
        for page, text, kind in target.lines:
            yield _row(url, answers[url], page, text, kind)
        if not target.lines:
            yield _row(url, answers[url], None, None, None)


def _read_again(facts: CrawlFacts, answers: dict[str, str]) -> Iterator[CsvRow]:
    """Yield the same rows from the store: there are too many to be kept."""
    unlinked = set(facts.broken)
    with facts.crawl.view() as view:
        for _, found in pages_of_links(view):
            for link in found:
                if (target := facts.verdict.broken(link)) is not None:
                    unlinked.discard(target)
                    yield _row(target, answers[target], link.source, link.text, link.kind)
    for url in sorted(unlinked):
        yield _row(url, answers[url], None, None, None)


def _row(
    target: str, answer: str, source: str | None, text: str | None, kind: str | None
) -> CsvRow:
    return {
        "target": target,
        "answer": answer,
        "linked_from": source,
        "text": text,
        "kind": kind,
    }
