"""Public indexes of hosts and pages: sources of seeds, beside sitemaps.

    ct            certificate transparency: which hosts of a site have certificates
    commoncrawl   the Common Crawl index: which pages of a site were seen by others

A source is an address with `{site}` in it and a reader of its answer. The request is an entry of
the frontier like any other (its kind names the source), so it takes a slot, is guarded, retried and
committed; the URLs that it finds become candidates if they are in scope. Both sources are off by
default, and their addresses are settings, so that a mirror can be used instead.

Answers are untrusted text: anything that is not a host or a URL is skipped, and of one answer at
most `MAX_HOSTS` hosts and `MAX_FOUND` URLs that are in scope are taken (`page.listings`). Names are
not looked up here: an answer could name any number of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from mannerly.crawler.kinds import Kind

from .urls import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
