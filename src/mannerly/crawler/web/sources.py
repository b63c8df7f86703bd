"""Where further seeds come from, beside sitemaps: public indexes of hosts and pages.

    ct            certificate transparency: which hosts of a site have certificates
    commoncrawl   the Common Crawl index: which pages of a site were seen by others

A source is an address with `{site}` in it and a reader of its answer. The request is an entry of
the frontier like any other (its kind says which source it asks), so it takes
a slot, is guarded, retried and committed; what it finds becomes candidates in scope. Both are off
unless asked for, and their addresses are settings, so that a mirror can be asked instead.

Answers are strangers' text: whatever is not a host or a URL is passed over. A host that the index
knows may be long gone; its name is looked up first, off the loop (`parse.offload`), because a crawl
of dead hosts is nothing but time-outs.
"""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from mannerly.crawler.model import Kind

from .urls import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

CT_URL = "https://crt.sh/?q=%25.{site}&output=json"
COMMONCRAWL_URL = (
    "https://index.commoncrawl.org/CC-MAIN-2026-43-index?url=*.{site}/*&output=json&fl=url"
)
MAX_FOUND = 50_000  # as many as one sitemap may list
LOOKUPS = 16  # names looked up at once


class Source(NamedTuple):
    """One public index."""

    name: str
    kind: Kind
    read: Callable[[bytes], Iterator[str]]

    def address(self, template: str, site: str) -> str:
        """The URL to ask about a site.

        Raises:
            ValueError: the template has no `{site}`, or is no URL.
        """
        if "{site}" not in template:
            raise ValueError(f"the address of {self.name} needs {{site}} in it, not {template!r}")
        url = canonical(template.replace("{site}", quote(site, safe=".")))
        if url is None:
            raise ValueError(f"the address of {self.name} is no http or https URL: {template!r}")
        return url


def read_ct(body: bytes) -> Iterator[str]:
    """Home pages of the hosts that a certificate-transparency answer names. Wildcards are none."""
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
    """The URLs of a Common Crawl index answer: one JSON object a line."""
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


def living(hosts: Iterable[str], resolve: Callable[[str], bool] | None = None) -> set[str]:
    """Those of the hosts that have an address. All at once, and none longer than a few seconds."""
    names = list(dict.fromkeys(hosts))
    if not names:
        return set()
    with ThreadPoolExecutor(max_workers=min(LOOKUPS, len(names))) as pool:
        answers = pool.map(resolve or _has_address, names)
        return {name for name, lives in zip(names, answers, strict=True) if lives}


def listed_urls(kind: Kind, body: bytes) -> list[str]:
    """What an answer of a source names. It looks names up, so it may take seconds."""
    source = SOURCES[kind]
    urls = list(islice(source.read(body), MAX_FOUND))
    if source is not CT:
        return urls
    hosts = living(urlsplit(url).hostname or "" for url in urls)
    return [url for url in urls if urlsplit(url).hostname in hosts]


def _has_address(host: str) -> bool:
    try:
        return bool(socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError):
        return False
