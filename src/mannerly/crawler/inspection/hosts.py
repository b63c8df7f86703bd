"""The hosts of a crawl: queue, pace, refusals."""

from __future__ import annotations

import heapq
from enum import StrEnum
from operator import attrgetter, itemgetter, methodcaller
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.web.urls import canonical, host_key_of
from mannerly.crawler.web.words import without_userinfo

if TYPE_CHECKING:
    from mannerly.crawler.model import HostRecord, RobotsRecord

    from .view import View

_NEXT_URLS = 5  # of a host


class HostSort(StrEnum):
    """The order of hosts: the largest value first."""

    QUEUED = "queued"
    FETCHED = "fetched"
    REFUSED = "refused"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    DELAY = "delay"


class HostLine(NamedTuple):
    """A host's record, the length of its queue, and how many of its URLs were given up."""

    record: HostRecord
    queued: int
    next_urls: tuple[str, ...] = ()  # only where one host was asked for
    given_up: int = 0
    # When its robots.txt, which cannot be had, is asked for again; only where one was asked for.
    robots_at: float = 0.0


# What a shard's reader counts by host.
_COUNTED = {
    HostSort.QUEUED: methodcaller("queued_hosts"),
    HostSort.GIVEN_UP: methodcaller("given_up_hosts"),
}


def top_hosts(crawl: View, sort: HostSort, limit: int) -> list[HostLine]:
    """Return the first `limit` hosts, in a few passes over the store, without holding all."""
    names: list[str] = []
    counted = _COUNTED.get(sort)
    if counted is not None:
        pairs = (pair for reader in crawl.readers for pair in counted(reader))
        names = [host for host, _ in heapq.nlargest(limit, pairs, key=itemgetter(1))]
    if not names:
        field = "fetched" if counted is not None else sort.value  # all of those counts are 0
        key = "adaptive_delay_s" if sort is HostSort.DELAY else field
        records = (record for reader in crawl.readers for record in reader.hosts())
        names = [each.host for each in heapq.nlargest(limit, records, key=attrgetter(key))]
    return _lines(crawl, names)


def one_host(crawl: View, host: str) -> HostLine | None:
    """Return everything that is kept of a host; None if it is no host of the crawl."""
    lines = _lines(crawl, [host])
    if not lines:
        return None
    entries = crawl.reader_of(host).queued(host, after=(-1, -1), limit=_NEXT_URLS)
    robots = missing_robots(crawl, host)
    return lines[0]._replace(
        next_urls=tuple(entry.url for entry in entries),
        robots_at=0.0 if robots is None else robots.expires_at,
    )


def missing_robots(crawl: View, host: str) -> RobotsRecord | None:
    """Return the record of a host's robots.txt that cannot be had; None: there is no such one."""
    reader = crawl.reader_of(host)
    for scheme in ("https", "http"):
        robots = reader.robots(f"{scheme}://{host}")
        if robots is not None and robots.failing_since:
            return robots
    return None


def _lines(crawl: View, names: list[str]) -> list[HostLine]:
    """Return the lines of these hosts, without those that the crawl does not have."""
    records = [record for name in names if (record := crawl.reader_of(name).host(name))]
    wanted = {record.host for record in records}
    counts = {
        sort: {
            host: count
            for reader in crawl.readers
            for host, count in counted(reader)
            if host in wanted
        }
        for sort, counted in _COUNTED.items()
    }
    queued, given_up = counts[HostSort.QUEUED], counts[HostSort.GIVEN_UP]
    return [
        HostLine(each, queued.get(each.host, 0), given_up=given_up.get(each.host, 0))
        for each in records
    ]


def host_key(text: str) -> str:
    """Return a host as the store has it, from a host name or a URL of it.

    Raises:
        ValueError: it is neither.
    """
    url = canonical(text if "://" in text else f"https://{text}")
    if url is None:
        raise ValueError(f"{without_userinfo(text)} is not a host: write it like example.org")
    return host_key_of(url)
