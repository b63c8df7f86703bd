"""Read a crawl once: its pages, its hosts, and how often each page is linked.

Pages are kept by URL; of the links only counts are kept, and the sources of broken targets. Memory
grows with the pages (about 1 kB each), not with the links between them.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from mannerly.crawler.inspection.status import State, status_of
from mannerly.crawler.inspection.view import settings_of
from mannerly.crawler.web.urls import host_key_of

from .pages import is_broken
from .table import SHOWN_DETAILS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import HostRecord, Link, PageRecord, Skipped, Traffic
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stored import StoredCrawl

_source = attrgetter("source")

# Kinds of links that lead no visitor anywhere: they say something about the page that has them.
STATEMENTS = frozenset({"canonical", "hreflang", "redirect"})


@dataclass(slots=True)
class Target:
    """A broken target: who links to it. Only the first lines are kept."""

    pages: int = 0
    lines: list[tuple[str, str]] = field(default_factory=list)  # page, text of the link


@dataclass(slots=True)
class Facts:
    """What a report needs to know of a crawl."""

    crawl: StoredCrawl
    state: State
    seeds: list[str]
    settings: CrawlSettings
    began_at: float
    ended_at: float
    pending: int
    pages: dict[str, PageRecord]
    hosts: list[HostRecord]
    given_up: list[Skipped]
    has_links: bool
    linked: Counter[str]  # by URL: pages that link to it
    broken: dict[str, Target]
    leads: dict[str, str]  # by URL: the broken target that it is or is redirected to
    pages_with_broken: int
    traffic: list[Traffic]

    @property
    def main_host(self) -> str:
        """Return the host of the first seed."""
        return host_key_of(self.seeds[0]) if self.seeds else ""

    @property
    def origin(self) -> str:
        """Return the origin whose URLs are shown without it."""
        return self.seeds[0][: self.seeds[0].index("/", 8)] if self.seeds else ""


def read(crawl: StoredCrawl) -> Facts:
    """Read a crawl, whether it is running or not."""
    with crawl.view() as view:
        status = status_of(view, now=time.time())
        pages = {record.url: record for record in view.pages()}
        given_up = list(view.given_up())
        hosts = [record for reader in view.readers for record in reader.hosts()]
        settings = settings_of(view.store.manifest)
        broken = {url: Target() for url, page in pages.items() if is_broken(page)}
        broken |= {each.url: Target() for each in given_up}
        facts = Facts(
            crawl=crawl,
            state=status.state,
            seeds=list(view.store.manifest.seeds),
            settings=settings,
            began_at=min((page.fetched_at for page in pages.values()), default=status.created_at),
            ended_at=max((page.fetched_at for page in pages.values()), default=status.created_at),
            pending=status.total["pending"],
            pages=pages,
            hosts=hosts,
            given_up=given_up,
            has_links=crawl.keeps_links,
            linked=Counter(),
            broken=broken,
            leads=_leads(pages, broken),
            pages_with_broken=0,
            traffic=_traffic(view),
        )
        if facts.has_links:
            _read_links(view, facts)
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


def links(view: View) -> Iterator[Link]:
    """Yield every link of every page that leads a visitor or a browser somewhere, page by page."""
    return (link for link in view.links() if link.kind not in STATEMENTS)


def _read_links(view: View, facts: Facts) -> None:
    known, broken, leads = facts.pages.keys(), facts.broken, facts.leads
    for source, group in groupby(links(view), _source):
        found = list(group)
        targets = {link.target for link in found}
        targets.discard(source)
        facts.linked.update(targets & known)
        wrong = targets & leads.keys()
        if not wrong:
            continue
        facts.pages_with_broken += 1
        for url in {leads[each] for each in wrong}:
            broken[url].pages += 1
        for link in found:
            if link.target in wrong:
                lines = broken[leads[link.target]].lines
                if len(lines) < SHOWN_DETAILS:
                    lines.append((source, link.text or ""))


def _leads(pages: dict[str, PageRecord], broken: Iterable[str]) -> dict[str, str]:
    """Return the broken target that each URL leads to: itself, or by redirects."""
    leads = {url: url for url in broken}
    before: dict[str, list[str]] = {}
    for url, page in pages.items():
        if page.redirect_to and url not in leads:
            before.setdefault(page.redirect_to, []).append(url)
    reached = list(leads)
    while reached:
        target = reached.pop()
        for url in before.get(target, ()):
            if url not in leads:
                leads[url] = leads[target]
                reached.append(url)
    return leads


def _from_parents(facts: Facts) -> None:
    """Without a link graph, a page knows the page that it was found on."""
    sources = {each.url: each.parent for each in facts.given_up}
    sources |= {url: page.parent for url, page in facts.pages.items()}
    facts.linked.update(url for url, parent in sources.items() if parent)
    for url, target in facts.broken.items():
        if parent := sources[url]:
            target.pages = 1
            target.lines.append((parent, ""))
    facts.pages_with_broken = len({sources[url] for url in facts.broken} - {None})
