"""A crawl in miniature over a web that is known beforehand, to see what survives what.

Two shards; even pages belong to the first, odd ones to the second, and each page links to three
others. All that is known between two steps is what the stores say, so a crawl may be dropped at
any point and another one begun on the same files.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import HostRecord
from mannerly.crawler.store.base import Batch, Counts, ShardOptions, ShardReader, ShardStore
from mannerly.crawler.store.contract import START, candidate, offer, page
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.crawler.store.store_disk import FailingDisk

    from mannerly.crawler.model import Candidate, Entry, PageRecord, Skipped

SHARDS = 2
PAGES = 6


class State(NamedTuple):
    """Everything that can be asked of a store, to compare two of them."""

    counts: Counts
    urls: list[str]
    queued: list[Entry]
    pages: list[tuple[int, PageRecord]]
    skipped: list[Skipped]
    given_up: list[Skipped]
    hosts: list[HostRecord]
    elements: list[bytes | None]


def state(store: ShardReader) -> State:
    ready = dict(store.queued_hosts())
    queued = [
        entry for host in sorted(ready) for entry in store.queued(host, after=START, limit=999)
    ]
    assert len(queued) == sum(ready.values())
    return State(
        store.counts(),
        sorted(store.urls()),
        queued,
        list(store.pages()),
        list(store.skipped()),
        sorted(store.given_up()),
        list(store.hosts()),
        [kept for _, kept in store.elements()],
    )


def link(number: int) -> Candidate:
    return candidate(f"/{number}", f"{number % SHARDS}.example")


def links(url: str) -> list[int]:
    number = int(url.rpartition("/")[2])
    return [other % PAGES for other in (number + 1, 2 * number, 3 * number + 1)]


def step(store: ShardStore, shard: int) -> bool:
    """Receive, fetch up to two pages, commit what they brought, deliver. Was there anything?"""
    store.pass_links(3)
    store.admit_waiting(99)
    entries = store.queued(f"{shard}.example", after=START, limit=2)
    batch = Batch(pages=[(entry, page(entry)) for entry in entries])
    for entry in entries:
        for number in links(entry.url):
            if number % SHARDS == shard:
                batch.found.append(link(number))
            else:
                batch.outgoing.append((number % SHARDS, link(number)))
    if entries:
        batch.hosts.append(HostRecord(host=f"{shard}.example", fetched=store.counts().fetched))
    store.commit(batch)
    sent = store.counts().outgoing
    store.pass_links(0)
    return bool(sent or entries or store.counts().queued)


def crawl(stores: Sequence[ShardStore]) -> None:
    """Until no shard has anything to do, twice in a row: a link may be on its way."""
    stores[0].commit(offer([link(0)]))
    idle = 0
    while idle < 2:
        did = [step(store, shard) for shard, store in enumerate(stores)]
        idle = 0 if any(did) else idle + 1


@contextmanager
def opened(
    directory: Path, disk: FailingDisk, *, durable: bool = False
) -> Iterator[list[SqliteStore]]:
    """Both shards, with a limit that makes URLs wait and an index that is filled all the time."""
    with ExitStack() as stack:
        stores = []
        for shard in range(SHARDS):
            store = SqliteStore(
                directory,
                shard,
                ShardOptions(2, durable=durable),
                shards=SHARDS,
                carry_over=3,
                vfs=disk.name,
            )
            stores.append(stack.enter_context(store))
        yield stores


def create_stores(directory: Path) -> None:
    for shard in range(SHARDS):
        create_shard(directory, shard, shards=SHARDS)
