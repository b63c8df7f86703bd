"""Show which queued URLs a pattern matches, before they are excluded.

The queue may have millions of URLs, so at most `MOST` are looked at; the answer says so then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mannerly.crawler.web.scope import Glob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import Entry

MOST = 200_000  # URLs that are looked at: about a second
EXAMPLES = 3
_WINDOW = 1000


def preview(crawl: View, pattern: str) -> dict[str, Any]:
    """Return how many queued URLs match a glob, on which hosts, and a few of them.

    Raises:
        ValueError: the glob can match no URL.
    """
    glob = Glob(pattern)
    hosts: dict[str, int] = {}
    examples: list[str] = []
    looked = 0
    for entry in _queued(crawl):
        if looked >= MOST:
            break
        looked += 1
        if glob.matches(entry.url):
            hosts[entry.host] = hosts.get(entry.host, 0) + 1
            if len(examples) < EXAMPLES:
                examples.append(entry.url)
    queued = sum(reader.counts().queued for reader in crawl.readers)
    most_first = sorted(hosts.items(), key=lambda pair: -pair[1])[:100]
    return {
        "queued": queued,
        "matching": sum(hosts.values()),
        "is_cut": looked >= MOST,
        "hosts": [{"host": host, "urls": count} for host, count in most_first],
        "examples": examples,
    }


def _queued(crawl: View) -> Iterator[Entry]:
    """Yield the queued URLs of all hosts, a window at a time."""
    for reader in crawl.readers:
        for host, _ in list(reader.queued_hosts()):
            after = (-1, -1)
            while window := reader.queued(host, after=after, limit=_WINDOW):
                yield from window
                after = (window[-1].priority, window[-1].seq)
