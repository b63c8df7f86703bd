"""Show the queue: which URLs wait, and which of them a pattern matches before they are excluded.

The queue may have millions of URLs, so at most `MOST` are examined; the answer says so then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mannerly.crawler.web.scope import Glob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import Entry

MOST = 200_000  # URLs that are examined: about a second
EXAMPLES = 20
HOSTS = 20  # that are listed
_WINDOW = 1000


def preview(crawl: View, pattern: str = "", delays: Mapping[str, float] = {}) -> dict[str, Any]:
    """Return how many queued URLs match a glob, on which hosts, and some of them.

    Without a glob nothing is counted: the hosts with the longest queues, and the next URLs.
    `delays` are the seconds between two requests to a host, as far as they are known.

    Raises:
        ValueError: the glob can match no URL.
    """
    queues = {host: count for reader in crawl.readers for host, count in reader.queued_hosts()}
    hosts: dict[str, int] = {}
    examples: list[str] = []
    is_cut = False
    if pattern:
        is_cut = _match(crawl, Glob(pattern).matches, hosts, examples)
    else:
        hosts = queues
        examples = [entry.url for entry, _ in zip(_queued(crawl), range(EXAMPLES), strict=False)]
    most_first = sorted(hosts.items(), key=lambda pair: (-pair[1], pair[0]))[:HOSTS]
    return {
        "queued": sum(queues.values()),
        "matching": sum(hosts.values()) if pattern else 0,
        "matching_hosts": len(hosts),
        "is_cut": is_cut,
        "hosts": [
            {
                "host": host,
                "urls": count,
                "queued": queues.get(host, count),
                "needs_s": count * delays.get(host, 0.0),
            }
            for host, count in most_first
        ],
        "examples": examples,
    }


def _match(
    crawl: View, matches: Callable[[str], bool], hosts: dict[str, int], examples: list[str]
) -> bool:
    """Count the URLs that match, by host; return whether some were not examined."""
    for examined, entry in enumerate(_queued(crawl)):
        if examined >= MOST:
            return True
        if matches(entry.url):
            hosts[entry.host] = hosts.get(entry.host, 0) + 1
            if len(examples) < EXAMPLES:
                examples.append(entry.url)
    return False


def _queued(crawl: View) -> Iterator[Entry]:
    """Yield the queued URLs of all hosts, a window at a time."""
    for reader in crawl.readers:
        for host, _ in list(reader.queued_hosts()):
            after = (-1, -1)
            while window := reader.queued(host, after=after, limit=_WINDOW):
                yield from window
                after = (window[-1].priority, window[-1].seq)
