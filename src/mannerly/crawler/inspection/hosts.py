"""The hosts of a crawl: queue, pace, refusals."""

from __future__ import annotations

import heapq
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import HostRecord
from mannerly.crawler.web.urls import canonical, host_key_of
from mannerly.crawler.web.words import without_userinfo

if TYPE_CHECKING:
    from .view import View

_NEXT_URLS = 5  # of a host


class HostSort(StrEnum):
    """The order of hosts: the largest value first."""

    QUEUED = "queued"
    FETCHED = "fetched"
    REFUSED = "refused"
    FAILED = "failed"
    DELAY = "delay"


class HostLine(NamedTuple):
    """A host's record, and the length of its queue."""

    record: HostRecord
    queued: int
    next_urls: tuple[str, ...] = ()  # only where one host was asked for


def top_hosts(crawl: View, sort: HostSort, limit: int) -> list[HostLine]:
    """Return the first `limit` hosts, in two passes over the store, without holding all."""
    queues = (pair for reader in crawl.readers for pair in reader.queued_hosts())
    if sort is HostSort.QUEUED:
        longest = heapq.nlargest(limit, queues, key=lambda pair: pair[1])
        found = [(crawl.reader_of(host).host(host), queued) for host, queued in longest]
        lines = [HostLine(record, queued) for record, queued in found if record is not None]
        if lines:
            return lines
    field = "adaptive_delay_s" if sort is HostSort.DELAY else sort.value
    key = "fetched" if sort is HostSort.QUEUED else field  # all queues are empty
    records = heapq.nlargest(
        limit,
        (record for reader in crawl.readers for record in reader.hosts()),
        key=lambda record: float(getattr(record, key)),
    )
    names = {record.host for record in records}
    queued = {host: count for host, count in queues if host in names}
    return [HostLine(record, queued.get(record.host, 0)) for record in records]


def one_host(crawl: View, host: str) -> HostLine | None:
    """Return everything that is kept of a host; None if it is no host of the crawl."""
    reader = crawl.reader_of(host)
    record = reader.host(host)
    queued = dict(pair for pair in reader.queued_hosts() if pair[0] == host).get(host, 0)
    if record is None and not queued:
        return None
    record = record or HostRecord(host)  # it was not contacted yet
    entries = reader.queued(host, after=(-1, -1), limit=_NEXT_URLS)
    return HostLine(record, queued, tuple(entry.url for entry in entries))


def host_key(text: str) -> str:
    """Return a host as the store has it, from a host name or a URL of it.

    Raises:
        ValueError: it is neither.
    """
    url = canonical(text if "://" in text else f"https://{text}")
    if url is None:
        raise ValueError(f"{without_userinfo(text)} is not a host: write it like example.org")
    return host_key_of(url)
