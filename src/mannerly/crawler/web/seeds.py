"""Makes candidates of seeds and of listed sitemaps, and finds seeds that have moved.

This module knows no page, no queue and no network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Candidate, PageRecord

from .priority import priority
from .urls import Url, canonical, host_key_of, site_of
from .words import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_MOVES = 10  # redirects of one seed that are followed; longer chains are loops


def seed_candidates(urls: Iterable[str]) -> list[Candidate]:
    """Return the candidates for seeds. Their URLs must be canonical."""
    first = priority(0)
    return [Candidate(url, host_key_of(url), 0, first, None) for url in urls]


def usual_sitemaps(urls: Iterable[str]) -> list[Candidate]:
    """Return the candidates for the usual places of the sitemaps of these URLs' origins."""
    origins = dict.fromkeys(url[: url.index("/", 8)] for url in urls)
    return [sitemap(f"{origin}/sitemap.xml", None) for origin in origins]


def sitemap(url: str, parent: str | None, nesting: int = 0) -> Candidate:
    """Return the candidate for a sitemap. Its URL must be canonical."""
    return Candidate(url, host_key_of(url), 0, priority(0), parent, nesting, Kind.SITEMAP)


def has_moved(seed: str, target: str) -> bool:
    """Return whether a seed's redirect stays in its site: example.org to www.example.org."""
    return site_of(Url.of(target).host) == site_of(Url.of(seed).host)


def moved_seeds(find: Callable[[str], object], seeds: Iterable[str]) -> list[str]:
    """Return where seeds redirected to in an earlier run, so that the scope includes it again.

    `find` looks up what is stored of a URL.
    """
    targets = []
    for seed in seeds:
        url = seed
        for _ in range(MAX_MOVES):
            known = find(url)
            target = known.redirect_to if isinstance(known, PageRecord) else None
            if target is None or not has_moved(url, target):
                break
            targets.append(target)
            url = target
    return targets


def canonical_seeds(texts: Iterable[str]) -> list[str]:
    """Return seeds in their canonical spelling, each once.

    Raises:
        ValueError: one of them is not an http or https URL.
    """
    found: dict[str, None] = {}
    for text in texts:
        url = canonical(text)
        if url is None:
            raise ValueError(f"{without_userinfo(text)!r} is not an http or https URL")
        found[url] = None
    return list(found)
