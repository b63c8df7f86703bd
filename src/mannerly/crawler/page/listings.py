"""Answers that are lists of URLs, not pages: sitemaps, and public indexes of a site.

    read_list      the body becomes a `Listing`: what is in scope, up to its limits; the long part
    harvest_list   a listing becomes a record and candidates

A list may name any URL of the web, so scope is asked first and limits count what is left. A sitemap
leads to other sitemaps (`sitemaps_near`) of its own host, and to those in scope.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.kinds import KINDS, Kind
from mannerly.crawler.model import Candidate, ListedPage
from mannerly.crawler.web.priority import priority
from mannerly.crawler.web.scope import SkipReason
from mannerly.crawler.web.seeds import MAX_FOUND, MAX_HOSTS, SOURCES, sitemap
from mannerly.crawler.web.sitemaps import read_sitemap
from mannerly.crawler.web.urls import LinkBase, host_key_of

from .links import redirect_target
from .record import Harvest, page_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mannerly.crawler.model import Entry, Fetched
    from mannerly.crawler.web.scope import Scope
    from mannerly.crawler.web.seeds import Source
    from mannerly.crawler.web.urls import UrlRules

    from .links import LinkRules

SITEMAP_NESTING = 2  # an index may name indexes; those may name sitemaps only
LIST_LIMIT = "list_limit"
SITEMAP_LIMIT = "sitemap_limit"


class Listing(NamedTuple):
    """The URLs in a list that are in scope, and how many are not, by reason."""

    pages: list[tuple[str, int]]  # with their priority
    sitemaps: list[str]
    passed_over: Counter[str]
    problem: str | None = None
    size: int = 0  # bytes, after decompression
    listed: Sequence[ListedPage] = ()  # of a sitemap: the same pages


def read_list(
    kind: Kind, body: bytes, url: str, nesting: int, scope: Scope, rules: UrlRules, wall: float
) -> Listing:
    """Read a list that came from `url`, in this process or in another one."""
    source = SOURCES.get(kind)
    if source is None:
        return _read_sitemap(body, url, nesting, scope, rules, wall)
    return _read_index(source, body, scope)


def harvest_moved_sitemap(entry: Entry, answer: Fetched, rules: LinkRules, wall: float) -> Harvest:
    """Return the record of a sitemap that is redirected, and its target if it may be followed."""
    target = redirect_target(entry, answer, rules)
    record = page_record(entry, answer, wall, redirect_to=target)
    if target is None or entry.hops >= rules.max_redirects:
        return Harvest(record, [], {})
    passed_over: Counter[str] = Counter()
    near = sitemaps_near(entry.url, [target], rules.scope, passed_over)
    return Harvest(record, [sitemap(each, entry.url, entry.hops + 1) for each in near], passed_over)


def harvest_list(entry: Entry, answer: Fetched, wall: float, listing: Listing) -> Harvest:
    """Return the record of a list that has been read, and what it names."""
    record = page_record(entry, answer, wall)
    depth = KINDS[entry.kind].depth
    found = [
        Candidate(url, host_key_of(url), depth, rank, entry.url) for url, rank in listing.pages
    ]
    found += [sitemap(url, entry.url, entry.hops + 1) for url in listing.sitemaps]
    record = record._replace(links=len(found), error=listing.problem or record.error)
    return Harvest(record, found, listing.passed_over, listing.size, listed=listing.listed)


def sitemaps_near(
    place: str, urls: Iterable[str | None], scope: Scope, passed_over: Counter[str]
) -> list[str]:
    """Return the sitemaps that one at `place` may lead to: of the same host, or in scope.

    Otherwise one file could send the crawl to any number of hosts. None is a malformed URL.
    """
    host = host_key_of(place)
    found: dict[str, None] = {}
    for url in urls:
        reason = "malformed" if url is None else scope.judge(url, 0)
        is_near = url is not None and host_key_of(url) == host
        if url is not None and (reason is None or (is_near and reason != SkipReason.EXCLUDED)):
            found[url] = None
        else:
            passed_over[str(reason)] += 1
    return list(found)


def _read_sitemap(
    body: bytes, url: str, nesting: int, scope: Scope, rules: UrlRules, wall: float
) -> Listing:
    contents = read_sitemap(body)
    resolve = LinkBase(url, rules=rules).resolve
    pages: list[tuple[str, int]] = []
    listed: list[ListedPage] = []
    passed_over: Counter[str] = Counter()
    for loc, lastmod, said in contents.urls:
        found = resolve(loc)
        reason = scope.judge(found, 1) if isinstance(found, str) else found
        if isinstance(found, str) and reason is None:
            age_s = _age_s(lastmod, wall)
            pages.append((found, priority(1, sitemap_priority=said, lastmod_age_s=age_s)))
            listed.append(ListedPage(found, lastmod if age_s is not None else None))
        else:
            assert reason is not None
            passed_over[reason.value] += 1
    children: list[str] = []
    if nesting < SITEMAP_NESTING:
        named = map(resolve, contents.children)
        urls = (each if isinstance(each, str) else None for each in named)
        children = sitemaps_near(url, urls, scope, passed_over)
    elif contents.children:
        passed_over[SITEMAP_LIMIT] = len(contents.children)
    problem = contents.problem.value if contents.problem else None
    return Listing(pages, children, passed_over, problem, contents.size, listed)


def _read_index(source: Source, body: bytes, scope: Scope) -> Listing:
    pages: list[tuple[str, int]] = []
    hosts: set[str] = set()
    passed_over: Counter[str] = Counter()
    first = priority(0)
    for url in source.read(body):
        reason = scope.judge(url, 0)
        if reason is not None:
            passed_over[reason.value] += 1
            continue
        host = host_key_of(url)
        if len(pages) >= MAX_FOUND or (host not in hosts and len(hosts) >= MAX_HOSTS):
            passed_over[LIST_LIMIT] += 1
            continue
        hosts.add(host)
        pages.append((url, first))
    return Listing(pages, [], passed_over, None, len(body))


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
