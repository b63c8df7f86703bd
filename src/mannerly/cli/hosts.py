"""`mannerly hosts` and `mannerly host show|forget`: what is known of the hosts of a crawl.

Forgetting lets a host's pace be learned again, for instance after its owner raised the limit. It
does not shorten a wait that the host asked for: a Retry-After is the owner's word, not something
that was learned. A running crawl is sent a control record; the record of a stopped one is changed
at once.
"""

from __future__ import annotations

import heapq
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from .figures import span
from .stored import Location, opened
from .terminal import fail, failing_clearly, note, print_json, safe_term, table

if TYPE_CHECKING:
    from mannerly.crawler.model import HostRecord
    from mannerly.crawler.store.base import CrawlStore

    from .stored import StoredCrawl

Host = Annotated[str, typer.Argument(metavar="HOST", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_NEXT_URLS = 5


class Sort(StrEnum):
    """The order of hosts: the largest value first."""

    QUEUED = "queued"
    FETCHED = "fetched"
    REFUSED = "refused"
    FAILED = "failed"
    DELAY = "delay"


class Line(NamedTuple):
    """A host, and the length of its queue."""

    record: HostRecord
    queued: int


def hosts(
    location: Location,
    *,
    sort: Annotated[Sort, typer.Option(help="Sort by this, largest first.")] = Sort.QUEUED,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show this many.")] = 20,
    json: AsJson = False,
) -> None:
    """List the hosts of a crawl: queue, pace, refusals."""
    with failing_clearly(), opened(location) as crawl:
        lines = top_hosts(crawl, sort, limit)
    if json:
        print_json([{**line.record._asdict(), "queued": line.queued} for line in lines])
    elif lines:
        typer.echo(as_table(lines, now=time.time()))


def show(location: Location, host: Host, *, json: AsJson = False) -> None:
    """Show everything that is known of a host."""
    with failing_clearly(), opened(location) as crawl:
        key = _key(host)
        reader = crawl.reader_of(key)
        record = reader.host(key)
        if record is None:
            fail(_unknown(host, location))
        queued = dict(pair for pair in reader.queued_hosts() if pair[0] == key).get(key, 0)
        urls = [entry.url for entry in reader.queued(key, after=(-1, -1), limit=_NEXT_URLS)]
    if json:
        print_json({**record._asdict(), "queued": queued, "next_urls": urls})
        return
    for name, value in _described(record, now=time.time()):
        typer.echo(f"{name:<16}{value}")
    typer.echo(f"{'queued':<16}{queued:,}")
    for url in urls:
        typer.echo(f"  {safe_term(url)}")


def forget(location: Location, host: Host) -> None:
    """Forget what was learned of a host; waits that it asked for stay."""
    from mannerly.crawler.control import HostForget
    from mannerly.crawler.store.base import StoreInUse

    with failing_clearly(), opened(location) as crawl:
        key = _key(host)
        if crawl.reader_of(key).host(key) is None:
            fail(_unknown(host, location))
        try:
            _forget(crawl.store, crawl.shard_of(key), key)
        except StoreInUse:
            crawl.store.order(HostForget(key))
            note(f"Told the running crawl to forget what it learned of {safe_term(key)}")
            return
    note(f"Forgot what was learned of {safe_term(key)}; its robots.txt will be read again")


def _forget(crawl: CrawlStore, shard: int, key: str) -> None:
    """Change the record of a crawl that is not running.

    Raises:
        StoreInUse: it is.
    """
    from mannerly.crawler.store.base import Batch, ShardOptions

    crawl.hold()
    with crawl.claim(shard, ShardOptions(frontier_limit=1)) as store:
        record = store.host(key)
        assert record is not None
        store.commit(Batch(hosts=[without_lessons(record)]))
        for scheme in ("https", "http"):
            store.forget_robots(f"{scheme}://{key}")


def without_lessons(record: HostRecord) -> HostRecord:
    """Return a host's record with its counts and the waits that it asked for, and no lessons."""
    return record._replace(
        adaptive_delay_s=0.0,
        adaptive_delay_floor_s=0.0,
        crawl_delay_s=0.0,
        allowance=0.0,
        block_s=0.0,
        concurrency=0,
        is_proven=False,
        retired=None,
    )


def top_hosts(crawl: StoredCrawl, sort: Sort, limit: int) -> list[Line]:
    """Return the first `limit` hosts, in two passes over the store, without holding all."""
    queues = (pair for reader in crawl.readers for pair in reader.queued_hosts())
    if sort is Sort.QUEUED:
        longest = heapq.nlargest(limit, queues, key=lambda pair: pair[1])
        found = [(crawl.reader_of(host).host(host), queued) for host, queued in longest]
        lines = [Line(record, queued) for record, queued in found if record is not None]
        if lines:
            return lines
    field = "adaptive_delay_s" if sort is Sort.DELAY else sort.value
    key = "fetched" if sort is Sort.QUEUED else field  # all queues are empty
    records = heapq.nlargest(
        limit,
        (record for reader in crawl.readers for record in reader.hosts()),
        key=lambda record: float(getattr(record, key)),
    )
    names = {record.host for record in records}
    queued = {host: count for host, count in queues if host in names}
    return [Line(record, queued.get(record.host, 0)) for record in records]


def as_table(lines: list[Line], *, now: float) -> str:
    """Return hosts as a table, one a line."""
    head = ["host", "queued", "fetched", "refused", "failed", "delay", "crawl-delay", "state"]
    rows = [
        [
            safe_term(line.record.host, limit=60),
            f"{line.queued:,}",
            f"{line.record.fetched:,}",
            f"{line.record.refused:,}",
            f"{line.record.failed:,}",
            _delay(line.record.adaptive_delay_s),
            _delay(line.record.crawl_delay_s),
            _state(line.record, now),
        ]
        for line in lines
    ]
    return table(head, rows)


def _described(record: HostRecord, *, now: float) -> list[tuple[str, str]]:
    return [
        ("host", safe_term(record.host)),
        ("state", _state(record, now)),
        ("delay", _delay(record.adaptive_delay_s)),
        ("delay floor", _delay(record.adaptive_delay_floor_s)),
        ("Crawl-delay", _delay(record.crawl_delay_s)),
        ("concurrency", str(record.concurrency or "not known")),
        ("limit", "proven" if record.is_proven else "not proven"),
        ("fetched", f"{record.fetched:,}"),
        ("refused", f"{record.refused:,}"),
        ("failed", f"{record.failed:,}"),
        ("last change", f"{span(now - record.updated_at)} ago" if record.updated_at else "never"),
    ]


def _delay(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds else "-"


def _state(record: HostRecord, now: float) -> str:
    if record.retired:
        return f"given up: {safe_term(record.retired, limit=40)}"
    if record.blocked_until > now:
        return f"Retry-After, {span(record.blocked_until - now)}"
    return "open"


def _unknown(host: str, location: str) -> str:
    return f"{safe_term(host)} is not a host of the crawl in {location}"


def _key(host: str) -> str:
    """Return a host as the store has it, from a host name or a URL of it."""
    from mannerly.crawler.web.urls import canonical, host_key_of

    url = canonical(host if "://" in host else f"https://{host}")
    if url is None:
        fail(f"{safe_term(host)} is not a host")
    return host_key_of(url)
