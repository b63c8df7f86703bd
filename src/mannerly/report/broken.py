"""Broken links with every page that links to them, and hosts that were given up."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mannerly.crawler.inspection.reasons import error_words, skip_words
from mannerly.crawler.web.urls import host_key_of

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
    counted,
    cut,
    rows_of,
)

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


_HOST_FIELDS = ("host", "why", "urls", "fetched", "refused", "failed")
_HOST_COLUMNS = (
    Column("Host", width="wide"),
    Column("Why", Cell.QUIET, phone=Phone.UNDER),
    Column("URLs not fetched", Cell.NUMBER),
    Column("Pages fetched", Cell.NUMBER, phone=Phone.HIDDEN),
)


def given_up_section(facts: CrawlFacts) -> Section:
    """Return the given_up_section of hosts that were given up."""
    urls: Counter[str] = Counter()
    whys: dict[str, str] = {}
    for each in facts.given_up:
        host = host_key_of(each.url)
        urls[host] += 1
        whys.setdefault(host, skip_words(each.reason))
    known = {view.host: view.record for view in facts.hosts}
    whys |= {host: error_words(each.retired) for host, each in known.items() if each.retired}
    values = []
    for host, why in sorted(whys.items(), key=lambda each: (-urls[each[0]], each[0])):
        record = known.get(host)
        counts = (record.fetched, record.refused, record.failed) if record else (0, 0, 0)
        values.append((host, why, urls[host], *counts))
    rows = [Row((host, why, count, fetched)) for host, why, count, fetched, _, _ in values]
    return Section(
        "given-up",
        "Hosts given up",
        len(rows),
        f"{len(rows):,}",
        "mannerly retry DIR tries them again." if rows else "",
        empty="No host was given up.",
        table=ReportTable(_HOST_COLUMNS, rows, "hosts", sort=2) if rows else None,
        csv=CsvFile("given-up.csv", _HOST_FIELDS, lambda: rows_of(_HOST_FIELDS, values)),
    )
