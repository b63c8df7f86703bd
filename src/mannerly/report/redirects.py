"""Redirect chains and loops: from the first address to the end.

A single redirect is ordinary and is not listed. A chain begins at an address that no other redirect
leads to; a loop has no beginning, so the member with the most links stands for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .pages import answer
from .table import (
    BadgeTone,
    Cell,
    Column,
    CsvFile,
    Phone,
    ReportTable,
    Row,
    Section,
    counted,
    rows_of,
)
from .verdict import loops

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mannerly.crawler.model import PageRecord

    from .facts import CrawlFacts

_FIELDS = ("kind", "hops", "start", "end", "answer", "linked_from", "chain")
_COLUMNS = (
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


def section(found: list[Chain]) -> Section:
    """Return the section of redirect chains and loops."""
    rows = [_row(chain) for chain in found]
    return Section(
        "redirects",
        "Redirect chains and loops",
        len(found),
        f"{len(found):,}",
        "A link to the last address saves every visitor the hops." if found else "",
        empty="No address needs more than one redirect, and no redirect leads back to itself.",
        table=ReportTable(_COLUMNS, rows, "chains", sort=3) if found else None,
        nav="Redirects",
        csv=CsvFile("redirects.csv", _FIELDS, lambda: rows_of(_FIELDS, _csv(found))),
    )


def _row(chain: Chain) -> Row:
    if chain.is_loop:
        kind, tone = ("loop", BadgeTone.BAD), ("never ends", BadgeTone.BAD)
    else:
        kind = (counted(len(chain.hops), "hop"), BadgeTone.PLAIN)
        is_good = chain.answer.startswith("2")
        is_known = chain.answer != "not fetched"
        tone = (
            f"ends {chain.answer}" if is_known else chain.answer,
            BadgeTone.GOOD if is_good else BadgeTone.BAD if is_known else BadgeTone.PLAIN,
        )
    hops: list[tuple[str, int]] = [*chain.hops, (chain.end, -1 if chain.is_loop else 0)]
    return Row((kind, hops, tone, chain.linked))


def _csv(found: Iterable[Chain]) -> Iterator[tuple[object, ...]]:
    for chain in found:
        kind = "loop" if chain.is_loop else "chain"
        text = " ".join(f"{url} {status}" for url, status in chain.hops) + f" {chain.end}"
        yield (
            kind, len(chain.hops), chain.hops[0][0], chain.end, chain.answer, chain.linked, text
        )  # fmt: skip
