"""`mannerly hosts` and `mannerly host show|forget`: what is known of the hosts of a crawl.

Forgetting lets a host be learned anew, for instance after its owner raised the limit. It does not
shorten a wait that the host asked for: a Retry-After is the owner's word, not something we learned.
"""

from __future__ import annotations

import heapq
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from .figures import span
from .stored import opened, require_crawl
from .terminal import fail, failing_clearly, note, print_json, safe_term, table

if TYPE_CHECKING:
    from mannerly.crawler.model import HostRecord

    from .stored import StoredCrawl

Directory = Annotated[Path, typer.Argument(metavar="DIR", show_default=False)]
Host = Annotated[str, typer.Argument(metavar="HOST", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]

_NEXT_URLS = 5


class Sort(StrEnum):
    """What comes first."""

    QUEUED = "queued"
    FETCHED = "fetched"
    REFUSED = "refused"
    FAILED = "failed"
    DELAY = "delay"


class Line(NamedTuple):
    """A host, and how long its queue is."""

    record: HostRecord
    queued: int


def hosts(
    directory: Directory,
    *,
    sort: Annotated[Sort, typer.Option(help="What comes first.")] = Sort.QUEUED,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many.")] = 20,
    json: AsJson = False,
) -> None:
    """The hosts of a crawl: queue, pace, refusals."""
    with failing_clearly(), opened(directory) as crawl:
        lines = top_hosts(crawl, sort, limit)
    if json:
        print_json([{**line.record._asdict(), "queued": line.queued} for line in lines])
    elif lines:
        typer.echo(as_table(lines, now=time.time()))


def show(directory: Directory, host: Host, *, json: AsJson = False) -> None:
    """Everything that is known of a host."""
    with failing_clearly(), opened(directory) as crawl:
        key = _key(host)
        reader = crawl.readers[crawl.owner_of(key)]
        record = reader.host(key)
        if record is None:
            fail(f"{safe_term(host)} is no host of the crawl in {directory}")
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


def forget(directory: Directory, host: Host) -> None:
    """Forget what was learned of a host; waits that it asked for stay."""
    from mannerly.crawler.store.base import Batch
    from mannerly.crawler.store.sqlite.directory import CrawlDirectory
    from mannerly.crawler.store.sqlite.shard import SqliteStore

    with failing_clearly():
        require_crawl(directory)
        key = _key(host)
        with opened(directory) as crawl:
            shard, shards = crawl.owner_of(key), crawl.manifest.shards
        with (
            CrawlDirectory.open(directory),
            SqliteStore.open(directory, shard, shards=shards, frontier_limit=1) as store,
        ):
            record = store.host(key)
            if record is None:
                fail(f"{safe_term(host)} is no host of the crawl in {directory}")
            store.commit(Batch(hosts=[unlearned(record)]))
            for scheme in ("https", "http"):
                store.forget_robots(f"{scheme}://{key}")
    note(f"Forgot what was learned of {safe_term(key)}; its robots.txt will be read again")


def unlearned(record: HostRecord) -> HostRecord:
    """A host as on the first day, but for its counts and the waits that it asked for."""
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
    """The first `limit` hosts, in two passes over the store and without holding all of them."""
    queues = (pair for reader in crawl.readers for pair in reader.queued_hosts())
    if sort is Sort.QUEUED:
        longest = heapq.nlargest(limit, queues, key=lambda pair: pair[1])
        found = [(crawl.readers[crawl.owner_of(host)].host(host), n) for host, n in longest]
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
    """Hosts under each other."""
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


def _key(host: str) -> str:
    """A host as the store has it, from whatever a person may paste."""
    from mannerly.crawler.web.urls import canonical, host_key_of

    url = canonical(host if "://" in host else f"https://{host}")
    if url is None:
        fail(f"{safe_term(host)} is not a host")
    return host_key_of(url)
