"""Everything that was found, in order: the sentence, the key numbers, the sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.inspection.status import State
from mannerly.crawler.web.words import many, span

from . import (
    broken,
    changes,
    listing,
    proof,
    sections,
    sitemap,
)
from .facts import read
from .pages import is_ok, why_not_indexed
from .table import are, joined, period

if TYPE_CHECKING:
    from collections import Counter

    from mannerly.crawler.stored import StoredCrawl

    from .broken import Chain
    from .facts import CrawlFacts
    from .proof import Totals
    from .table import Section


class KeyNumber(NamedTuple):
    """One of the numbers under the sentence."""

    label: str
    value: str
    unit: str
    note: str


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers that the sentence, the key numbers and the rules of --fail-on are made of."""

    pages: int
    broken: int
    pages_with_broken: int
    chains: int
    loops: int
    not_indexable: int
    duplicates: int
    failed: int
    given_up: int
    slowest_s: float
    median_s: float
    p95_s: float
    proof: Totals


@dataclass(frozen=True, slots=True)
class Findings:
    """The content of a report."""

    facts: CrawlFacts
    numbers: Numbers
    sections: list[Section]
    sentence: str
    about: str
    period: str
    key_numbers: list[KeyNumber]


def find(crawl: StoredCrawl) -> Findings:
    """Read a crawl and find everything that a report says."""
    facts = read(crawl)
    found = broken.chains(facts)
    groups = listing.duplicate_groups(facts)
    tallies = sections.by_section(facts)
    differences = sitemap.disagreements(facts)
    numbers = _numbers(facts, found, len(groups))
    return Findings(
        facts=facts,
        numbers=numbers,
        sections=[
            section
            for section in (
                proof.section(facts),
                broken.section(facts),
                broken.redirects_section(found),
                sections.section(tallies),
                sitemap.summary(facts, differences),
                sections.depth_section(facts),
                sitemap.section(facts, differences),
                listing.noindex_section(facts),
                listing.section(facts),
                listing.duplicates_section(groups),
                sections.slow_pages(facts),
                sections.slow_directories(tallies),
                sections.large_pages(facts),
                broken.given_up_section(facts),
                changes.section(facts),
            )
            if section is not None
        ],
        sentence=_sentence(numbers),
        about=_about(facts),
        period=period(facts.began_at, facts.ended_at),
        key_numbers=_key_numbers(numbers, changes.counts(facts), facts),
    )


def _numbers(facts: CrawlFacts, found: list[Chain], groups: int) -> Numbers:
    pages = facts.pages.values()
    latencies = [page.latency_ms for page in pages if is_ok(page)]
    mid, p95 = sections.times(latencies) if latencies else (0.0, 0.0)
    return Numbers(
        pages=len(pages),
        broken=len(facts.broken),
        pages_with_broken=facts.pages_with_broken,
        chains=len(found),
        loops=sum(chain.is_loop for chain in found),
        not_indexable=sum(why_not_indexed(page) is not None for page in pages),
        duplicates=groups,
        failed=sum(page.status is None for page in pages),
        given_up=len(facts.given_up),
        slowest_s=max(latencies, default=0.0) / 1000,
        median_s=mid / 1000,
        p95_s=p95 / 1000,
        proof=proof.totals(facts),
    )


def _sentence(numbers: Numbers) -> str:
    if not numbers.pages:
        return "No page was fetched yet"
    said = f"No link is broken on {many(numbers.pages, 'page')}"
    if numbers.broken:
        links = f"{many(numbers.broken, 'link')} {are(numbers.broken)} broken"
        said = f"{links} on {numbers.pages_with_broken:,} of {many(numbers.pages, 'page')}"
        if not numbers.pages_with_broken:
            said = f"{links} among {many(numbers.pages, 'page')}"
    if not numbers.loops:
        return said
    joint = ", and" if numbers.broken else ", but"
    ends = "redirect never ends" if numbers.loops == 1 else "redirects never end"
    return f"{said}{joint} {numbers.loops:,} {ends}"


def _about(facts: CrawlFacts) -> str:
    hosts = sorted(
        (host for host in facts.hosts if host.fetched), key=lambda host: (-host.fetched, host.host)
    )
    names = joined([host.host for host in hosts]) if hosts else facts.main_host
    said = f"{names}, crawled in {span(facts.ended_at - facts.began_at)}."
    if facts.state is not State.FINISHED:
        state = "still running" if facts.state is State.RUNNING else str(facts.state)
        said += f" The crawl is {state}, with {many(facts.pending, 'URL')} to go."
    if changes.has_changes(facts):
        number = changes.counts(facts)
        changed = number["new"] + number["changed"] + number["removed"]
        since = changes.since(facts)
        said += (
            f" {many(changed, 'page')} {are(changed)} new, changed or gone since {since}."
            if changed
            else f" No page changed since {since}."
        )
    return said


def _key_numbers(numbers: Numbers, changed: Counter[str], facts: CrawlFacts) -> list[KeyNumber]:
    indexable = 100.0 * (1 - numbers.not_indexable / numbers.pages) if numbers.pages else 0.0
    total = numbers.proof
    return [
        KeyNumber(
            "Pages",
            f"{numbers.pages:,}",
            "",
            _pages_note(facts, changed),
        ),
        KeyNumber(
            "Broken links",
            f"{numbers.broken:,}",
            "",
            f"on {many(numbers.pages_with_broken, 'page')}",
        ),
        KeyNumber(
            "Redirects",
            f"{numbers.chains:,}",
            "chain" if numbers.chains == 1 else "chains",
            f"{numbers.loops:,} of them {'a loop' if numbers.loops == 1 else 'loops'}",
        ),
        KeyNumber(
            "Indexable",
            f"{indexable:.1f}",
            "%",
            f"{many(numbers.not_indexable, 'page')} {are(numbers.not_indexable)} not",
        ),
        KeyNumber(
            "Median answer",
            f"{numbers.median_s * 1000:,.0f}",
            "ms",
            f"95 % within {numbers.p95_s * 1000:,.0f} ms",
        ),
        KeyNumber(
            "Refused",
            f"{total.refused_share:.2f}",
            "%",
            f"{total.refused:,} of {many(total.requests, 'request')}",
        ),
    ]


def _pages_note(facts: CrawlFacts, changed: Counter[str]) -> str:
    if facts.pending:
        return f"{many(facts.pending, 'URL')} to go"
    if changes.has_changes(facts):
        return f"{changed['new']:,} new since last time"
    return "all that were found"
