"""READ FIRST. The way of a URL, top to bottom.

    seeds ─► scope ─► frontier ─► politeness ─► fetch ─► parse ─► links ─┐
               ▲      (whose turn?)  (may I?)                            │
               └──────────────── dedup, scope ◄──────────────────────────┘
                                   │ one commit: page, links, host state
                                   ▼
                                 store ─► exports

1. A seed becomes a `Candidate` (`seeds`), and so does every link found later (`found_links`).
2. The store decides which candidates are new; those become `Entry`s in the frontier (`shard`).
3. The frontier (`frontier.core`) asks the hosts whose instant has come, robots.txt first
   (`robots_cache`), and hands out entries with a permit of the politeness core each.
4. The engine (`engine`) gives them to the fetcher (`fetch`), which judges every address (`guard`).
5. The answer goes to the politeness core, which learns; a retry goes back to the frontier.
6. `harvest`, below: the answer becomes a page record, its links become candidates in scope.
7. A sitemap is harvested too, only differently (`harvest_sitemap`).
8. The shard commits record, candidates and host state together (`store`), and hands what belongs
   to other shards to their inboxes.
9. Exports and reports read the store; they never touch the engine.

This file is steps 1, 6 and 7: functions from an answer to what follows from it, one of which may be
that the scope widens (`Rules`). It knows no clock, no queue, no store and no socket.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from xxhash import xxh3_128_hexdigest

from mannerly.crawler.model import Candidate, Kind, PageRecord
from mannerly.crawler.runtime.offload import BIG_BYTES
from mannerly.crawler.web.priority import priority
from mannerly.crawler.web.scope import SkipReason
from mannerly.crawler.web.sitemaps import read_sitemap
from mannerly.crawler.web.sources import SOURCES, listed_urls
from mannerly.crawler.web.urls import DEFAULT_RULES, Url, UrlRules, canonical, host_key_of, site_of

from .html import parse_page
from .links import HrefMemory, resolve_links
from .parsed import Page, ParseFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mannerly.crawler.model import Entry, Fetched
    from mannerly.crawler.web.dedup import Recent
    from mannerly.crawler.web.scope import Scope

PAGE, SITEMAP = Kind.PAGE, Kind.SITEMAP
SITEMAP_NESTING = 2  # an index may name sitemaps; those may not name indexes
MOVES = 10  # of a seed that are followed; more go in circles
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(slots=True)
class Rules:
    """What decides about links. The scope may widen when a seed turns out to have moved."""

    scope: Scope
    agent: str
    max_redirects: int
    urls: UrlRules = DEFAULT_RULES
    hrefs: HrefMemory = field(default_factory=HrefMemory)

    def widen(self, url: str) -> None:
        """Let the scope follow a seed to where it has moved."""
        if url not in self.scope.seeds:
            self.scope = replace(self.scope, seeds=(*self.scope.seeds, url))


class Harvest(NamedTuple):
    """What follows from one answer."""

    record: PageRecord
    found: list[Candidate]
    passed_over: dict[str, int]  # links that were not taken, by reason


def seed_candidates(urls: Iterable[str]) -> list[Candidate]:
    """Step 1 for seeds, which are canonical already."""
    first = priority(0)
    return [Candidate(url, host_key_of(url), 0, first, None) for url in urls]


def sitemap_candidates(urls: Iterable[str], parent: str | None) -> list[Candidate]:
    """Sitemaps that robots.txt lists: unchecked text from a stranger."""
    texts = (canonical(url) for url in urls)
    return [
        Candidate(url, host_key_of(url), 0, priority(0), parent, kind=SITEMAP)
        for url in dict.fromkeys(texts)
        if url is not None
    ]


def long_work(entry: Entry, answer: Fetched, agent: str) -> Callable[[], object] | None:
    """What of step 6 is too long for the loop, if anything is; its result goes to `harvest`."""
    status, body = answer.status, answer.body
    if status is None or not 200 <= status < 300:
        return None
    if entry.kind in SOURCES:
        return partial(listed_urls, entry.kind, body)
    if entry.kind != PAGE or len(body) < BIG_BYTES:
        return None
    return partial(_parsed, body, answer.headers, entry.url, agent)


def _parsed(body: bytes, headers: Mapping[str, str], url: str, agent: str) -> Page | ParseFailed:
    return parse_page(
        body,
        headers.get("content-type"),
        url,
        x_robots_tag=headers.get("x-robots-tag"),
        agent=agent,
    )


def harvest(
    entry: Entry, answer: Fetched, rules: Rules, recent: Recent, wall: float, work: object = None
) -> Harvest:
    """Step 6: read the answer to a page request. `work` is what `long_work` came to, if any."""
    if entry.kind == SITEMAP:
        return harvest_sitemap(entry, answer, rules, wall)
    if entry.kind in SOURCES:
        return _harvest_source(entry, answer, rules, wall, work)
    status = answer.status
    if status in REDIRECTS:
        return _harvest_redirect(entry, answer, rules, wall)
    if status is None or not 200 <= status < 300:
        return Harvest(_record(entry, answer, wall), [], {})
    page = work if isinstance(work, (Page, ParseFailed)) else None
    if page is None:
        page = _parsed(answer.body, answer.headers, entry.url, rules.agent)
    if isinstance(page, ParseFailed):
        return Harvest(_record(entry, answer, wall, error="parse_failed"), [], {})
    if not (page.links or page.nofollow_links or page.canonical):
        return Harvest(_record(entry, answer, wall, title=page.title), [], {})
    links = resolve_links(page, rules.urls, rules.hrefs, recent)
    passed_over = {refusal.value: count for refusal, count in links.refused.items()}
    urls, unfollowed = links.urls, links.nofollow_urls
    if page.nofollow:
        urls, unfollowed = [], [*urls, *unfollowed]
    found = found_links(entry, urls, rules, passed_over)
    rules.hrefs.passed_on(links, (candidate.url for candidate in found))
    if unfollowed:
        passed_over["nofollow"] = len(unfollowed)
    record = _record(
        entry,
        answer,
        wall,
        title=page.title,
        canonical_url=links.canonical,
        links=len(page.links) + len(page.nofollow_links) - sum(links.refused.values()),
        error="links_capped" if page.links_capped else None,
    )
    return Harvest(record, found, passed_over)


def found_links(
    entry: Entry, urls: Sequence[str], rules: Rules, passed_over: dict[str, int]
) -> list[Candidate]:
    """Step 1 for links: those in scope, as candidates."""
    if not urls:
        return []
    depth = entry.depth + 1
    inside, outside = rules.scope.sort(urls, depth, page_url=entry.url)
    if outside:
        passed_over |= Counter(reason.value for _, reason in outside)
    origin = entry.url[: entry.url.index("/", 8) + 1]
    usual, of_home_page = priority(depth), priority(depth, is_home_page=True)
    found = []
    for url in inside:
        host = entry.host if url.startswith(origin) else host_key_of(url)
        rank = of_home_page if url.find("/", 8) == len(url) - 1 else usual
        found.append(Candidate(url, host, depth, rank, entry.url))
    return found


def _harvest_redirect(entry: Entry, answer: Fetched, rules: Rules, wall: float) -> Harvest:
    """A redirect is a link that keeps the depth; every hop goes through the frontier."""
    target = _target(entry, answer, rules)
    if target is None:
        return Harvest(_record(entry, answer, wall, error="bad_redirect"), [], {})
    record = _record(entry, answer, wall, redirect_to=target)
    if entry.hops >= rules.max_redirects:
        return Harvest(record._replace(error="too_many_redirects"), [], {})
    if target == entry.url:
        return Harvest(record._replace(error="redirect_loop"), [], {})
    if entry.depth == 0 and has_moved(entry.url, target):
        rules.widen(target)
    reason = rules.scope.judge(target, entry.depth)
    if reason is not None:
        return Harvest(record, [], {reason.value: 1})
    hop = Candidate(
        target, host_key_of(target), entry.depth, entry.priority, entry.url, entry.hops + 1
    )
    return Harvest(record, [hop], {})


def _target(entry: Entry, answer: Fetched, rules: Rules) -> str | None:
    location = answer.headers.get("location")
    return canonical(location, entry.url, rules.urls) if location else None


def has_moved(seed: str, target: str) -> bool:
    """Whether a seed's redirect stays in its site: example.org to www.example.org."""
    return site_of(Url.of(target).host) == site_of(Url.of(seed).host)


def moved_seeds(find: Callable[[str], object], seeds: Iterable[str]) -> list[str]:
    """Where seeds redirected to in an earlier run, so that the scope follows them again."""
    targets = []
    for seed in seeds:
        url = seed
        for _ in range(MOVES):
            known = find(url)
            target = known.redirect_to if isinstance(known, PageRecord) else None
            if target is None or not has_moved(url, target):
                break
            targets.append(target)
            url = target
    return targets


def unreadable(
    entry: Entry, answer: Fetched, wall: float, *, error: str = "parse_failed"
) -> Harvest:
    """The record of a page that cannot be parsed: it is kept, and the crawl goes on."""
    return Harvest(_record(entry, answer, wall, error=error), [], {})


def harvest_sitemap(entry: Entry, answer: Fetched, rules: Rules, wall: float) -> Harvest:
    """Step 7: a sitemap's URLs, and the sitemaps that an index names."""
    record = _record(entry, answer, wall)
    status = answer.status
    if status in REDIRECTS:
        target = _target(entry, answer, rules)
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


def _more_sitemaps(
    entry: Entry, urls: Iterable[str | None], rules: Rules, passed_over: Counter[str]
) -> list[Candidate]:
    """Sitemaps that a sitemap leads to: its own host's, and what is in scope anyway.

    Only robots.txt may name one elsewhere; a list of strangers would send us all over the web.
    """
    found = []
    for url in urls:
        host = "" if url is None else host_key_of(url)
        reason = "malformed" if url is None else rules.scope.judge(url, 0)
        is_near = host == entry.host and reason is not SkipReason.EXCLUDED
        if url is not None and (is_near or reason is None):
            found.append(Candidate(url, host, 0, 0, entry.url, entry.hops + 1, SITEMAP))
        else:
            passed_over[str(reason)] += 1
    return found


def _harvest_source(
    entry: Entry, answer: Fetched, rules: Rules, wall: float, work: object
) -> Harvest:
    """A public index: every URL that it names and that is in scope is as good as a seed."""
    record = _record(entry, answer, wall)
    found: list[Candidate] = []
    passed_over: Counter[str] = Counter()
    for url in work if isinstance(work, list) else ():
        reason = rules.scope.judge(url, 0)
        if reason is None:
            found.append(Candidate(url, host_key_of(url), 0, priority(0), entry.url))
        else:
            passed_over[reason.value] += 1
    return Harvest(record._replace(links=len(found)), found, passed_over)


def _age_s(lastmod: str | None, wall: float) -> float | None:
    """Seconds since a W3C date; None where it is not one."""
    if not lastmod:
        return None
    try:
        when = datetime.fromisoformat(lastmod.strip())
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return wall - when.timestamp()


def _record(
    entry: Entry,
    answer: Fetched,
    wall: float,
    *,
    title: str | None = None,
    canonical_url: str | None = None,
    links: int = 0,
    redirect_to: str | None = None,
    error: str | None = None,
) -> PageRecord:
    headers = answer.headers
    body = answer.body
    content_type = headers.get("content-type")
    age = headers.get("age", "")
    if error is None and answer.error is not None:
        error = answer.error.value
    elif error is None and answer.is_truncated:
        error = answer.detail
    return PageRecord(
        url=entry.url,
        status=answer.status,
        depth=entry.depth,
        parent=entry.parent,
        title=title,
        content_type=_printable(content_type),
        bytes=len(body),
        latency_ms=round(answer.latency_s * 1000.0, 3),
        fetched_at=wall,
        attempts=entry.attempts + 1,
        links=links,
        canonical=canonical_url,
        redirect_to=redirect_to,
        error=error,
        host=entry.host,
        digest=xxh3_128_hexdigest(body) if body else None,
        cache_status=_printable(headers.get("x-cache") or headers.get("cf-cache-status")),
        age=int(age) if age.isascii() and age.isdigit() and len(age) < 10 else None,
    )


def _printable(text: str | None) -> str | None:
    """A header as it may be stored: no control characters, not endless."""
    if text is None or (len(text) < 100 and text.isprintable()):
        return text
    return "".join(character for character in text[:100] if character.isprintable())
