"""Answers that are lists of URLs, not pages: sitemaps, and public indexes of a site."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mannerly.crawler.model import Candidate, Kind
from mannerly.crawler.web.priority import priority
from mannerly.crawler.web.scope import SkipReason
from mannerly.crawler.web.sitemaps import read_sitemap
from mannerly.crawler.web.urls import canonical, host_key_of

from .record import Harvest, page_record
from .redirects import REDIRECTS, redirect_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.model import Entry, Fetched

    from .rules import LinkRules

SITEMAP_NESTING = 2  # an index may name sitemaps; those may not name indexes


def harvest_sitemap(entry: Entry, answer: Fetched, rules: LinkRules, wall: float) -> Harvest:
    """Return the record of a sitemap with the URLs in it and the sitemaps that an index names."""
    record = page_record(entry, answer, wall)
    status = answer.status
    if status in REDIRECTS:
        target = redirect_target(entry, answer, rules)
        record = record._replace(redirect_to=target)
        if target is None or entry.hops >= rules.max_redirects:
            return Harvest(record, [], {})
        passed_over: Counter[str] = Counter()
        return Harvest(record, _more_sitemaps(entry, [target], rules, passed_over), passed_over)
    if status is None or not 200 <= status < 300:
        return Harvest(record, [], {})
    sitemap = read_sitemap(answer.body)
    found: list[Candidate] = []
    passed_over = Counter()
    for listed in sitemap.urls:
        url = canonical(listed.loc, entry.url, rules.urls)
        reason = "malformed" if url is None else rules.scope.judge(url, 1)
        if url is None or reason is not None:
            passed_over[str(reason)] += 1
            continue
        rank = priority(
            1, sitemap_priority=listed.priority, lastmod_age_s=_age_s(listed.lastmod, wall)
        )
        found.append(Candidate(url, host_key_of(url), 1, rank, entry.url))
    if entry.hops < SITEMAP_NESTING:
        children = (canonical(child, entry.url, rules.urls) for child in sitemap.children)
        found += _more_sitemaps(entry, children, rules, passed_over)
    error = sitemap.problem.value if sitemap.problem else None
    return Harvest(record._replace(links=len(found), error=error), found, passed_over)


def harvest_index(
    entry: Entry, answer: Fetched, rules: LinkRules, wall: float, urls: Iterable[str]
) -> Harvest:
    """Return the record of a public index; `urls` are those it names, in scope they are seeds."""
    record = page_record(entry, answer, wall)
    found: list[Candidate] = []
    passed_over: Counter[str] = Counter()
    for url in urls:
        reason = rules.scope.judge(url, 0)
        if reason is None:
            found.append(Candidate(url, host_key_of(url), 0, priority(0), entry.url))
        else:
            passed_over[reason.value] += 1
    return Harvest(record._replace(links=len(found)), found, passed_over)


def _more_sitemaps(
    entry: Entry, urls: Iterable[str | None], rules: LinkRules, passed_over: Counter[str]
) -> list[Candidate]:
    """Return the sitemaps that a sitemap leads to: those of its own host, and those in scope.

    Only robots.txt may name a sitemap of another host; otherwise one sitemap could send the crawl
    to any number of hosts.
    """
    found = []
    for url in urls:
        host = "" if url is None else host_key_of(url)
        reason = "malformed" if url is None else rules.scope.judge(url, 0)
        is_near = host == entry.host and reason is not SkipReason.EXCLUDED
        if url is not None and (is_near or reason is None):
            found.append(Candidate(url, host, 0, 0, entry.url, entry.hops + 1, Kind.SITEMAP))
        else:
            passed_over[str(reason)] += 1
    return found


def _age_s(lastmod: str | None, wall: float) -> float | None:
    """Return the seconds since a W3C date; None if it is not one."""
    if not lastmod:
        return None
    try:
        when = datetime.fromisoformat(lastmod.strip())
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return wall - when.timestamp()
