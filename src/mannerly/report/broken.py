"""Broken links with every page that links to them, redirect chains, and hosts that were given up.

A single redirect is ordinary and is not listed. A chain begins at an address that no other redirect
leads to; a loop has no beginning, so the member with the most links stands for it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.inspection.reasons import error_words, skip_words
from mannerly.crawler.web.urls import host_key_of
from mannerly.crawler.web.words import many

from .facts import pages_of_links
from .pages import answer
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
from .verdict import loops

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mannerly.crawler.model import PageRecord

    from .facts import CrawlFacts

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
        about = f"{many(len(rows), 'target')} on {many(facts.pages_with_broken, 'page')}"
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
        empty=f"No link is broken: all {many(len(facts.pages), 'page')} were reached."
        if facts.pages
        else "No page was fetched yet.",
        table=ReportTable(_COLUMNS, rows, "targets", sort=2),
        csv=CsvFile("broken.csv", _FIELDS, lambda: _csv(facts, answers)),
    )


def _csv(facts: CrawlFacts, answers: dict[str, str]) -> Iterator[tuple[object, ...]]:
    """Yield one row for each link to a broken target."""
    if facts.is_cut:
        yield from _read_again(facts, answers)
        return
    for url, target in facts.broken.items():
        for page, text, kind in target.lines:
            yield url, answers[url], page, text, kind
        if not target.lines:
            yield url, answers[url], None, None, None


def _read_again(facts: CrawlFacts, answers: dict[str, str]) -> Iterator[tuple[object, ...]]:
    """Yield the same rows from the store: there are too many to be kept."""
    unlinked = set(facts.broken)
    with facts.crawl.view() as view:
        for _, found in pages_of_links(view):
            for link in found:
                if (target := facts.verdict.broken(link)) is not None:
                    unlinked.discard(target)
                    yield target, answers[target], link.source, link.text, link.kind
    for url in sorted(unlinked):
        yield url, answers[url], None, None, None


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
        table=ReportTable(_HOST_COLUMNS, rows, "hosts", sort=2),
        csv=CsvFile("given-up.csv", _HOST_FIELDS, lambda: values),
    )


_CHAIN_FIELDS = ("kind", "hops", "start", "end", "answer", "linked_from", "chain")
_CHAIN_COLUMNS = (
    Column("Kind", Cell.BADGE, phone=Phone.UNDER),
    Column("Chain", Cell.CHAIN, width="wide"),
    Column("End", Cell.BADGE, phone=Phone.UNDER),
    Column("Links to it", Cell.NUMBER),
)
_LONGEST = 25  # hops that are followed; a crawl follows 10 by default


class Chain(NamedTuple):
    """Redirects that follow each other."""

    hops: tuple[tuple[str, int], ...]  # each address with the status of its redirect
    end: str  # the address after the last hop; of a loop, the one that it comes back to
    is_loop: bool
    answer: str  # of the end: "200", "404", "not fetched"
    linked: int  # pages that link to the first address


def chains(facts: CrawlFacts) -> list[Chain]:
    """Return chains of two redirects and more, and every loop; the most linked first."""
    pages = facts.pages
    target = {url: page.redirect_to for url, page in pages.items() if page.redirect_to}
    inner = set(target.values())
    found = []
    for loop in loops(target):
        first = max(loop, key=lambda url: (facts.linked[url], url))
        linked = sum(facts.linked[url] for url in loop)
        found.append(_follow(first, target, pages, linked))
    for start in target.keys() - inner:
        chain = _follow(start, target, pages, facts.linked[start])
        if len(chain.hops) > 1 and not chain.is_loop:
            found.append(chain)
    return sorted(found, key=lambda each: (not each.is_loop, -each.linked, each.hops))


def _follow(start: str, target: dict[str, str], pages: dict[str, PageRecord], linked: int) -> Chain:
    hops: list[tuple[str, int]] = []
    seen: set[str] = set()
    url = start
    while url in target and url not in seen and len(hops) < _LONGEST:
        seen.add(url)
        hops.append((url, pages[url].status or 0))
        url = target[url]
    is_loop = url in seen
    end = "never ends" if is_loop else answer(pages[url]) if url in pages else "not fetched"
    return Chain(tuple(hops), url, is_loop, end, linked)


def redirects_section(found: list[Chain]) -> Section:
    """Return the section of redirect chains and loops."""
    rows = [_chain_row(chain) for chain in found]
    return Section(
        "redirects",
        "Redirect chains and loops",
        len(found),
        f"{len(found):,}",
        "A link to the last address saves every visitor the hops." if found else "",
        empty="No address needs more than one redirect, and no redirect leads back to itself.",
        table=ReportTable(_CHAIN_COLUMNS, rows, "chains", sort=3),
        nav="Redirects",
        csv=CsvFile("redirects.csv", _CHAIN_FIELDS, lambda: _chains_csv(found)),
    )


def _chain_row(chain: Chain) -> Row:
    if chain.is_loop:
        kind, tone = ("loop", BadgeTone.BAD), ("never ends", BadgeTone.BAD)
    else:
        kind = (many(len(chain.hops), "hop"), BadgeTone.PLAIN)
        is_good = chain.answer.startswith("2")
        is_known = chain.answer != "not fetched"
        tone = (
            f"ends {chain.answer}" if is_known else chain.answer,
            BadgeTone.GOOD if is_good else BadgeTone.BAD if is_known else BadgeTone.PLAIN,
        )
    hops: list[tuple[str, int]] = [*chain.hops, (chain.end, -1 if chain.is_loop else 0)]
    return Row((kind, hops, tone, chain.linked))


def _chains_csv(found: Iterable[Chain]) -> Iterator[tuple[object, ...]]:
    for chain in found:
        kind = "loop" if chain.is_loop else "chain"
        text = " ".join(f"{url} {status}" for url, status in chain.hops) + f" {chain.end}"
        yield (
            kind, len(chain.hops), chain.hops[0][0], chain.end, chain.answer, chain.linked, text
        )  # fmt: skip
