"""`mannerly explain`: where a URL stands in a crawl, and why.

Four questions, answered from the store alone: what became of it, how it was found, whether it is in
scope, and what robots.txt says (with the line).
"""

from __future__ import annotations

import time
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import typer

from .figures import span
from .stored import Location, opened, settings_of
from .terminal import fail, failing_clearly, print_json, safe_term

if TYPE_CHECKING:
    from mannerly.crawler.model import Candidate, Entry, PageRecord, Skipped
    from mannerly.crawler.settings import CrawlSettings

    from .stored import StoredCrawl

Place: TypeAlias = "Candidate | Entry | PageRecord | Skipped | None"
"""A URL as the stores know it; None: they do not."""

_STEPS = 20  # back to the seed; a chain of parents cannot loop, but it can be long

_INSIDE = "inside"


class Facts(NamedTuple):
    """The answers about one URL; `because` is a sentence, the rest are values."""

    url: str
    state: str
    because: str
    depth: int | None
    found_by: list[str]  # the parent first, the seed last
    scope: str
    robots: str


def explain(
    location: Location,
    url: Annotated[str, typer.Argument(metavar="URL", show_default=False)],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show where a URL stands in a crawl, and why."""
    with failing_clearly(), opened(location) as crawl:
        facts = facts_of(crawl, url, now=time.time())
    if json:
        print_json(facts._asdict())
        return
    typer.echo(safe_term(facts.url))
    for name, text in (
        ("state", f"{facts.state}: {facts.because}"),
        ("found by", " ← ".join(facts.found_by)),
        ("scope", facts.scope),
        ("robots.txt", facts.robots),
    ):
        if text:
            typer.echo(f"  {name:<12}{safe_term(text, limit=2000)}")


def facts_of(crawl: StoredCrawl, text: str, *, now: float) -> Facts:
    """Return everything that the store knows about one URL."""
    settings = settings_of(crawl.manifest)
    url = _canonical(text, settings)
    place = _find(crawl, url) or _on_its_way(crawl, url)
    depth = None if place is None else place.depth
    scope = _scope(crawl, settings, url, depth)
    state, because = _state(crawl, place, now)
    if place is None and scope != _INSIDE:
        because = "links out of scope are counted, but not kept"
    found_by, robots = _found_by(crawl, place), _robots(crawl, settings, url)
    return Facts(url, state, because, depth, found_by, scope, robots)


def _canonical(text: str, settings: CrawlSettings) -> str:
    from mannerly.crawler.web.urls import UrlRules, canonical

    plain = UrlRules(drop_params=frozenset(), drop_prefixes=())
    rules = UrlRules() if settings.drop_tracking else plain
    url = canonical(text if "://" in text else f"https://{text}", rules=rules)
    if url is None:
        fail(f"{safe_term(text)} is not a URL: write it like https://example.com/page")
    return url


def _find(crawl: StoredCrawl, url: str) -> Place:
    """Ask the shard that owns the URL first; a skipped one may be known to another only."""
    from mannerly.crawler.web.urls import host_key_of

    for reader in (crawl.reader_of(host_key_of(url)), *crawl.readers):
        place = reader.find(url)
        if place is not None:
            return place
    return None


def _on_its_way(crawl: StoredCrawl, url: str) -> Place:
    """Return a link that one shard has found and another has not taken over yet."""
    for shard, reader in enumerate(crawl.readers):
        for link in chain(reader.outgoing(), crawl.store.unread_links(shard)):
            if link.url == url:
                return link
    return None


def _state(crawl: StoredCrawl, place: Place, now: float) -> tuple[str, str]:
    from mannerly.crawler.model import Candidate, Entry, PageRecord, Skipped

    match place:
        case PageRecord():
            return _fetched(place, now)
        case Skipped():
            return "skipped", place.reason
        case Entry():
            return "queued", _queued(crawl, place, now)
        case Candidate():
            return "queued", "on its way to the shard that owns its host"
    return "unknown", "no page, sitemap or seed of this crawl has named it"


def _fetched(record: PageRecord, now: float) -> tuple[str, str]:
    when = f"{span(now - record.fetched_at)} ago, at attempt {record.attempts}"
    if record.status is None:
        return "failed", f"{record.error}, {when}"
    said = [f"status {record.status}, {when}"]
    if record.redirect_to:
        said.append(f"redirects to {record.redirect_to}")
    if record.error:
        said.append(f"but {record.error}")
    if record.canonical not in (None, record.url):
        said.append(f"its canonical URL is {record.canonical}")
    return "fetched", "; ".join(said)


def _queued(crawl: StoredCrawl, entry: Entry, now: float) -> str:
    said = [f"priority {entry.priority}"]
    if entry.attempts:
        said.append(f"{entry.attempts} failed attempts")
    host = crawl.reader_of(entry.host).host(entry.host)
    if host is not None:
        if host.retired:
            said.append(f"its host was given up ({host.retired})")
        if host.blocked_until > now:
            said.append(f"its host said Retry-After, {span(host.blocked_until - now)} to go")
        if host.adaptive_delay_s:
            said.append(f"its host is asked every {host.adaptive_delay_s:.2f} s")
    return "; ".join(said)


def _found_by(crawl: StoredCrawl, place: Place) -> list[str]:
    parents: list[str] = []
    while place is not None and place.parent is not None and len(parents) < _STEPS:
        parents.append(place.parent)
        place = _find(crawl, place.parent)
    if place is not None and place.parent is None and not parents:
        return ["seed"]
    return parents


def _scope(crawl: StoredCrawl, settings: CrawlSettings, url: str, depth: int | None) -> str:
    from dataclasses import replace

    from mannerly.crawler.page.harvest import moved_seeds

    seeds = crawl.manifest.seeds
    scope = settings.scope_of(seeds)
    at = 1 if depth is None else depth
    verdict = scope.judge(url, at)
    if verdict is not None:  # a look at every seed: only where it can matter
        moved = moved_seeds(partial(_find, crawl), seeds)
        verdict = replace(scope, seeds=(*seeds, *moved)).judge(url, at)
    return _INSIDE if verdict is None else f"outside: {verdict.value}"


def _robots(crawl: StoredCrawl, settings: CrawlSettings, url: str) -> str:
    from mannerly.crawler.web.urls import Url
    from mannerly.politeness.robots import Robots

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
