"""The values that travel along the way of a URL.

    Candidate   a URL that was found: in scope, canonical, not yet known to be new
    Entry       a URL in the frontier, waiting for its turn
    PageRecord  what became of a URL that was fetched; the exported record, field for field
    Skipped     a URL that will not be fetched, with the reason

Instants inside a process are monotonic floats; whatever is stored is wall time (seconds since
1970), because a monotonic instant means nothing to the next process.
"""

from __future__ import annotations

from typing import NamedTuple


class Candidate(NamedTuple):
    """A URL found on a page, in a sitemap or among the seeds."""

    url: str
    host: str  # the politeness key: host[:port], lower case
    depth: int
    priority: int  # smaller goes first: see frontier.priority
    parent: str | None  # where it was found first; None for a seed
    hops: int = 0  # redirects followed to get here


class Entry(NamedTuple):
    """A URL in the frontier. `seq` orders arrivals and names the row in the store."""

    seq: int
    url: str
    host: str
    depth: int
    priority: int
    parent: str | None
    hops: int
    attempts: int  # tries that counted (throttles do not)


class PageRecord(NamedTuple):
    """One fetched URL: design §4.4. `error` is a reason code, never a message of a stranger's."""

    url: str
    status: int | None
    depth: int
    parent: str | None
    title: str | None
    content_type: str | None
    bytes: int
    latency_ms: float
    fetched_at: float  # wall time
    attempts: int
    links: int
    canonical: str | None
    redirect_to: str | None
    error: str | None
    host: str
    digest: str | None  # of the body, hexadecimal
    cache_status: str | None = None
    age: int | None = None


class Skipped(NamedTuple):
    """A URL that is known and will not be fetched."""

    url: str
    reason: str
    depth: int
    parent: str | None
