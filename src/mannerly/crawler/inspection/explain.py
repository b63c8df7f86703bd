"""Explain one URL of a crawl: its state, how it was found, its scope and robots.txt."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mannerly.crawler.control import AddSeeds, Exclude
from mannerly.crawler.model import Candidate, Entry, PageRecord, Skipped, is_failed, is_given_up
from mannerly.crawler.page.requisites import REQUISITE_RULES
from mannerly.crawler.payload import REQUISITE
from mannerly.crawler.web.patterns import pattern_of
from mannerly.crawler.web.priority import is_held_back
from mannerly.crawler.web.seeds import moved_seeds
from mannerly.crawler.web.urls import Url, canonical, host_key_of
from mannerly.crawler.web.words import span, without_userinfo
from mannerly.politeness.robots import Robots

from .host_words import limit_words, sentence
from .hosts import one_host
from .reasons import error_words, skip_words
from .view import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.settings import CrawlSettings

    from .view import View

_STEPS = 20  # back to the seed; a chain of parents cannot loop, but it can be long

KnownUrl: TypeAlias = Candidate | Entry | PageRecord | Skipped | None
"""A URL as the stores know it; None: they do not."""

INSIDE = "inside"
NEEDED = "asked for with its page, wherever it is (--requisites)"
_OUT_OF_REACH = (
    "fetched, failed or skipped: its record is in the data directory of a worker, give that "
    "(--data-dir)"
)


class UrlExplanation(NamedTuple):
    """The state of a URL and the reason; `because` is a sentence, the rest are values."""

    url: str
    state: str  # fetched, failed, skipped, given up, queued, known or unknown
    because: str
    depth: int | None
    found_by: list[str]  # the parent first, the seed last
    scope: str
    robots: str


def explain(crawl: View, text: str, *, now: float) -> UrlExplanation:
    """Return everything that the store knows about one URL.

    Raises:
        ValueError: it is not a URL.
    """
    settings = settings_of(crawl.store.manifest)
    url = _known_as(crawl, text, settings)
    if _find(crawl, url) is None and (exact := canonical(text, rules=REQUISITE_RULES)) is not None:
        url = exact if _find(crawl, exact) is not None else url  # a requisite keeps its parameters
    place = _find(crawl, url) or _on_its_way(crawl, url)
    depth = None if place is None else place.depth
    scope = _scope(crawl, settings, url, depth)
    state, because = _state(crawl, place, now)
    if place is not None and _is_requisite(crawl, url):
        scope, because = NEEDED, f"needed by {place.parent} to be shown; {because}"
    if place is None and crawl.reader_of(host_key_of(url)).knows(url):
        state, because = "known", _OUT_OF_REACH
    elif place is None and scope != INSIDE:
        because = "links out of scope are counted, but not stored"
    elif place is None and (linked := _linked(crawl, url)):
        because = linked
    found_by, robots = _found_by(crawl, place), _robots(crawl, settings, url)
    return UrlExplanation(url, state, because, depth, found_by, scope, robots)


def _known_as(crawl: View, text: str, settings: CrawlSettings) -> str:
    """Return the URL that is meant; a path is one of a seed's host, if possible one that is known.

    Raises:
        ValueError: it is not a URL.
    """
    if not text.startswith("/") or text.startswith("//"):
        return _canonical(text, settings)
    origins = dict.fromkeys(Url.of(seed).origin for seed in crawl.store.manifest.seeds)
    urls = [_canonical(origin + text, settings) for origin in origins]
    return next((url for url in urls if _find(crawl, url) is not None), urls[0])


def _linked(crawl: View, url: str) -> str:
    """Return where a URL is linked that the crawl did not take for a page, if links are kept."""
    for link in crawl.links() if crawl.keeps_links else ():
        if link.target == url:
            return (
                f"linked from {link.source} ({link.kind}), and not fetched: a crawl fetches pages; "
                "mannerly check asks for everything that is linked"
            )
    return ""


def _canonical(text: str, settings: CrawlSettings) -> str:
    url = canonical(text if "://" in text else f"https://{text}", rules=settings.url_rules)
    if url is None:
        shown = without_userinfo(text)
        raise ValueError(f"{shown} is not a URL: write it like https://example.com/page")
    return url


def _find(crawl: View, url: str) -> KnownUrl:
    """Return what the stores know of a URL. The shard that owns its host is asked first.

    A skipped URL may be known to another shard only.
    """
    for identity in (url, REQUISITE.identity(url)):
        for reader in (crawl.reader_of(host_key_of(url)), *crawl.readers):
            place = reader.find(identity)
            if place is not None:
                return place
    return None


def _is_requisite(crawl: View, url: str) -> bool:
    """Return whether a URL is known because a page needs it to be shown, and not as a page."""
    reader = crawl.reader_of(host_key_of(url))
    return reader.knows(REQUISITE.identity(url)) and not reader.knows(url)


def _redirects(crawl: View, urls: Sequence[str]) -> dict[str, str]:
    """Return where URLs redirected to, as any shard knows it."""
    return {url: to for reader in crawl.readers for url, to in reader.redirects(urls).items()}


def _on_its_way(crawl: View, url: str) -> KnownUrl:
    """Return a link that one shard has found and another has not taken over yet."""
    for shard, reader in enumerate(crawl.readers):
        for link in chain(reader.outgoing(), crawl.store.unread_links(shard)):
            if link.url == url:
                return link
    return None


def _state(crawl: View, place: KnownUrl, now: float) -> tuple[str, str]:
    match place:
        case PageRecord():
            return _fetched(place, now)
        case Skipped(reason=reason):
            return "given up" if is_given_up(reason) else "skipped", skip_words(reason)
        case Entry():
            return "queued", _queued(crawl, place, now)
        case Candidate():
            return "queued", "in transit to the shard that owns its host"
    return "unknown", "not found by this crawl: no page, sitemap or seed has it"


def _fetched(record: PageRecord, now: float) -> tuple[str, str]:
    when = f"{span(now - record.fetched_at)} ago, at attempt {record.attempts}"
    if record.status is None:
        return "failed", f"{error_words(record.error or 'unknown')}, {when}"
    state = "failed" if is_failed(record) else "fetched"
    said = [f"status {record.status}, {when}"]
    if record.redirect_to:
        said.append(f"redirects to {record.redirect_to}")
    if record.error:
        said.append(error_words(record.error))
    if record.canonical not in (None, record.url):
        said.append(f"its canonical URL is {record.canonical}")
    return state, "; ".join(said)


def _queued(crawl: View, entry: Entry, now: float) -> str:
    said = [f"priority {entry.priority}"]
    if is_held_back(entry.priority):
        pattern = pattern_of(entry.url)
        said.append(
            f"it comes after others: most pages like {pattern} lead to pages of their own kind"
        )
    details = one_host(crawl, entry.host, now=now)
    if details is not None:
        said.append(f"its host: {sentence(details.view)}")
        if details.view.delay_s:
            said.append(f"{details.view.delay_s:.2f} s between its requests")
        said += [f"its limit: {words}" for words in limit_words(details.view)]
    return "; ".join(said)


def _found_by(crawl: View, place: KnownUrl) -> list[str]:
    parents: list[str] = []
    while place is not None and place.parent is not None and len(parents) < _STEPS:
        parents.append(place.parent)
        place = _find(crawl, place.parent)
    if place is not None and place.parent is None and not parents:
        return ["seed"]
    return parents


def _scope(crawl: View, settings: CrawlSettings, url: str, depth: int | None) -> str:
    orders = [order for _, order in crawl.store.orders()]
    added = [url for order in orders if isinstance(order, AddSeeds) for url in order.urls]
    excluded = [order.glob for order in orders if isinstance(order, Exclude)]
    seeds = [*crawl.store.manifest.seeds, *added]
    scope = settings.scope_of(seeds)
    scope = replace(scope, exclude=(*scope.exclude, *excluded))
    at = 1 if depth is None else depth
    reason = scope.judge(url, at)
    if reason is not None:  # a look at every seed: only where it can matter
        moved = moved_seeds(partial(_redirects, crawl), seeds)
        reason = replace(scope, seeds=(*seeds, *moved)).judge(url, at)
    return INSIDE if reason is None else f"outside: {reason.value}"


def _robots(crawl: View, settings: CrawlSettings, url: str) -> str:
    parts = Url.of(url)
    record = crawl.reader_of(parts.host_key).robots(parts.origin)
    if record is None:
        said = "not fetched yet"
    elif record.body is not None:
        said = str(Robots.parse(record.body).explain(url, settings.user_agent))
    elif record.failing_since:
        said = "unreachable"
    else:
        said = f"allowed: robots.txt answered {record.status}"
    return f"{said} (ignored)" if settings.ignore_robots else said
