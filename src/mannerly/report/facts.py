"""Read a crawl once: its pages, its hosts, and how often each page is linked.

Pages are kept by URL; of the links only counts are kept, and the sources of broken targets. Memory
grows with the pages (about 1 kB each), not with the links between them.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from mannerly.crawler.inspection.hosts import HostViews
from mannerly.crawler.inspection.status import State, status_of
from mannerly.crawler.inspection.view import settings_of
from mannerly.crawler.web.urls import host_key_of

from .verdict import Verdict, judge, missing_anchors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.host_view import HostView
    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import Link, PageRecord, Skipped, Traffic
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stored import StoredCrawl

_source = attrgetter("source")

# An image as it is kept (`page.elements`): after an empty field; in a link's text it is once more.
_IMAGE = re.compile(rb"(?<=\0\0)<img[\s/][^\0>]*", re.IGNORECASE)
_ALT = re.compile(rb"[\s/\"']alt(?:[\s=/]|$)", re.IGNORECASE)

MOST_LINES = 500_000  # links to broken targets that are kept in memory: some 100 MB

# Kinds of links that lead no visitor anywhere: they say something about the page that has them.
STATEMENTS = frozenset({"canonical", "hreflang", "redirect"})


@dataclass(slots=True)
class BrokenTarget:
    """A broken target: which pages link to it."""

    pages: int = 0
    # A page, the text of its link, and the kind of the link, if they are known.
    lines: list[tuple[str, str | None, str | None]] = field(default_factory=list)


@dataclass(slots=True)
class CrawlFacts:
    """The knowledge of a crawl that a report is made of."""

    crawl: StoredCrawl
    state: State
    seeds: list[str]
    settings: CrawlSettings
    began_at: float
    ended_at: float
    pending: int
    pages: dict[str, PageRecord]
    checked: dict[str, PageRecord]  # targets of links that were only asked for, and requisites
    hosts: list[HostView]
    given_up: list[Skipped]
    has_links: bool
    traffic: list[Traffic]
    verdict: Verdict
    broken: dict[str, BrokenTarget] = field(default_factory=dict)
    linked: Counter[str] = field(default_factory=Counter)  # by URL: pages that link to it
    hreflangs: dict[str, set[str]] = field(default_factory=dict)  # by page: those that it names
    without_alt: dict[str, int] = field(default_factory=dict)  # by page: images without alt
    pages_with_broken: int = 0
    lines_left: int = MOST_LINES
    is_cut: bool = False  # there are more links to broken targets than are kept here

    @property
    def main_host(self) -> str:
        """Return the host of the first seed."""
        return host_key_of(self.seeds[0]) if self.seeds else ""

    @property
    def origin(self) -> str:
        """Return the origin whose URLs are shown without it."""
        return self.seeds[0][: self.seeds[0].index("/", 8)] if self.seeds else ""


def read(crawl: StoredCrawl) -> CrawlFacts:
    """Read a crawl, whether it is running or not."""
    with crawl.view() as view:
        status = status_of(view, now=time.time())
        pages = {record.url: record for record in view.pages()}
        instants = [page.fetched_at for page in pages.values()]
        facts = CrawlFacts(
            crawl=crawl,
            state=status.state,
            seeds=list(view.store.manifest.seeds),
            settings=settings_of(view.store.manifest),
            began_at=min(instants, default=status.created_at),
            ended_at=max(instants, default=status.created_at),
            pending=status.total["pending"],
            pages=pages,
            checked={
                each.url: each
                for reader in view.readers
                for each in chain(reader.requisites(), reader.checked())
            },
            hosts=list(HostViews(view, now=time.time()).all()),
            given_up=list(view.given_up()),
            has_links=view.keeps_links,
            traffic=_traffic(view),
            verdict=Verdict({}, {}),
        )
        facts.verdict = judge(pages, facts.checked, facts.given_up)
        if facts.settings.anchors:
            facts.verdict.answers.update(missing_anchors(view, pages))
        facts.broken = {url: BrokenTarget() for url in facts.verdict.answers}
        if facts.has_links:
            _read_links(view, facts)
            _read_images(view, facts)
            _of_stylesheets(facts)
        else:
            _from_parents(facts)
    return facts


def _traffic(view: View) -> list[Traffic]:
    """Return the answers of all shards, interval by interval."""
    found: dict[int, Traffic] = {}
    for reader in view.readers:
        for each in reader.traffic():
            known = found.get(each.interval)
            if known is not None:
                each = each._replace(
                    requests=each.requests + known.requests, refused=each.refused + known.refused
                )
            found[each.interval] = each
    return [found[interval] for interval in sorted(found)]


def pages_of_links(
    view: View, hreflangs: dict[str, set[str]] | None = None
) -> Iterator[tuple[str, list[Link]]]:
    """Yield every page with its links, without those that lead no visitor anywhere.

    `hreflangs` takes, by page, the pages that it names as its translations.
    """
    for source, group in groupby(view.links(), _source):
        found = []
        for link in group:
            if link.kind not in STATEMENTS:
                found.append(link)
            elif hreflangs is not None and link.kind == "hreflang":
                hreflangs.setdefault(source, set()).add(link.target)
        if found:
            yield source, found


def _read_links(view: View, facts: CrawlFacts) -> None:
    known, broken, verdict = facts.pages.keys(), facts.broken, facts.verdict
    has_anchors = any("#" in url for url in verdict.answers)
    for source, found in pages_of_links(view, facts.hreflangs):
        targets = {link.target for link in found}
        targets.discard(source)
        facts.linked.update(targets & known)
        if not has_anchors and verdict.leads.keys().isdisjoint(targets):
            continue  # as most pages are
        wrong = [(link, url) for link in found if (url := verdict.broken(link)) is not None]
        facts.pages_with_broken += bool(wrong)
        for url in {url for _, url in wrong}:
            broken[url].pages += 1
        for link, url in wrong:
            if facts.lines_left > 0:
                facts.lines_left -= 1
                broken[url].lines.append((source, link.text, link.kind))
            else:
                facts.is_cut = True


def _read_images(view: View, facts: CrawlFacts) -> None:
    """Count the images without alternative text; an empty one is right for decoration."""
    for record, kept in chain.from_iterable(reader.elements() for reader in view.readers):
        if kept is None or record.url not in facts.pages:
            continue
        if missing := sum(_ALT.search(tag) is None for tag in _IMAGE.findall(kept)):
            facts.without_alt[record.url] = missing


def _of_stylesheets(facts: CrawlFacts) -> None:
    """A requisite that no tag names is needed by a style: name what it was found in."""
    for url, target in facts.broken.items():
        record = facts.checked.get(url)
        if target.pages == 0 and record is not None and record.parent is not None:
            target.pages = 1
            target.lines.append((record.parent, None, None))


def _from_parents(facts: CrawlFacts) -> None:
    """Without a link graph, a page knows the page that it was found on."""
    sources = {each.url: each.parent for each in facts.given_up}
    sources |= {url: record.parent for url, record in facts.checked.items()}
    sources |= {url: page.parent for url, page in facts.pages.items()}
    facts.linked.update(url for url, parent in sources.items() if parent)
    for url, target in facts.broken.items():
        if parent := sources.get(url):
            target.pages = 1
            target.lines.append((parent, None, None))
    facts.pages_with_broken = len({sources.get(url) for url in facts.broken} - {None})
