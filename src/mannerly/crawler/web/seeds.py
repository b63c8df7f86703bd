"""Make candidates of seeds, listed sitemaps and public indexes, and find seeds that have moved.

    ct            certificate transparency: which hosts of a site have certificates
    commoncrawl   the Common Crawl index: which pages of a site were seen by others

A public index is an address with `{site}` in it and a reader of its answer. The request is an entry
of the frontier like any other (its kind names the index), so it takes a slot, is guarded, retried
and committed; the URLs that it finds become candidates if they are in scope. Both are off by
default, and their addresses are settings, so that a mirror can be used instead. Answers are
untrusted: anything that is not a host or a URL is skipped, and of one answer at most `MAX_HOSTS`
hosts and `MAX_FOUND` URLs in scope are taken. Names are not looked up here: an answer could name
any number of them.

This module knows no page, no queue and no network.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Candidate

from .priority import priority
from .urls import Url, canonical, host_key_of, site_of
from .words import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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


def moved_seeds(
    redirects: Callable[[Sequence[str]], Mapping[str, str]], seeds: Iterable[str]
) -> list[str]:
    """Return where seeds redirected to in an earlier run, so that the scope includes it again.

    `redirects` looks up where stored pages redirected to.
    """
    targets: list[str] = []
    urls = list(seeds)
    for _ in range(MAX_MOVES):
        moves = redirects(urls).items()
        urls = [target for url, target in moves if has_moved(url, target)]
        if not urls:
            break
        targets += urls
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


MAX_FOUND = 50_000  # URLs taken from one answer: as many as one sitemap may list
MAX_HOSTS = 1000  # hosts taken from one answer: a large university has as many


class Source(NamedTuple):
    """One public index."""

    name: str
    kind: Kind
    read: Callable[[bytes], Iterator[str]]

    def address(self, template: str, site: str) -> str:
        """Return the URL of the request about a site.

        Raises:
            ValueError: the template has no `{site}`, or is not an http(s) URL.
        """
        if "{site}" not in template:
            raise ValueError(f"the address of {self.name} needs {{site}} in it, not {template!r}")
        url = canonical(template.replace("{site}", quote(site, safe=".")))
        if url is None:
            raise ValueError(
                f"the address of {self.name} is not an http or https URL: {template!r}"
            )
        return url


def read_ct(body: bytes) -> Iterator[str]:
    """Yield the home pages of the hosts in a certificate-transparency answer, but no wildcards."""
    try:
        rows = json.loads(body)
    except ValueError:
        return
    names: dict[str, None] = {}
    for row in rows if isinstance(rows, list) else ():
        text = row.get("name_value") if isinstance(row, dict) else None
        for name in text.split("\n") if isinstance(text, str) else ():
            if "*" not in name and "@" not in name:
                names[name.strip().lower()] = None
    for name in names:
        url = canonical(f"https://{name}/")
        if url is not None:
            yield url


def read_commoncrawl(body: bytes) -> Iterator[str]:
    """Yield the URLs in an answer of the Common Crawl index: one JSON object per line."""
    for line in body.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        text = row.get("url") if isinstance(row, dict) else None
        url = canonical(text) if isinstance(text, str) else None
        if url is not None:
            yield url


CT = Source("ct", Kind.CT, read_ct)
COMMONCRAWL = Source("commoncrawl", Kind.COMMONCRAWL, read_commoncrawl)
SOURCES = {source.kind: source for source in (CT, COMMONCRAWL)}
