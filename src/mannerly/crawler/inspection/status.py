"""The progress of a crawl: state, counts, queues, workers."""

from __future__ import annotations

import heapq
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from mannerly.crawler.control import in_force

from .view import View, view

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.store.base import CrawlStore

_QUEUES, _SEEDS = 5, 10  # named in a status; the others are counted
COUNTS = (
    *("queued", "waiting", "fetched", "failed", "requisites", "lists", "skipped", "given_up"),
    *("outgoing", "hosts"),
)


class State(StrEnum):
    """The state of a crawl: making progress, or the reason why it does not."""

    RUNNING = "running"
    PAUSED = "paused"  # by `pause`; it may or may not be running
    WAITING = "waiting"  # running, and every worker says what it waits for
    STOPPED = "stopped"  # not running, and there is something left to do
    FINISHED = "finished"


class Status(NamedTuple):
    """The progress of a crawl.

    `total` and `shards` count: `fetched` pages and `failed` ones (`model.is_failed`: no answer,
    a status of 500 and more, a refusal, not read), together the records of an export; `requisites`
    (what pages need to be shown); `lists` (sitemaps and public indexes); `queued` URLs (`waiting`
    of them beyond the frontier's limit); `skipped` and `given_up` ones; `outgoing` links that one
    shard has found and another has not taken over yet; and `hosts`. `pending` is what is left to
    do: queued and outgoing.
    `pid` is the first worker's, or None if none is known.
    """

    id: str
    crawl: str  # its location
    state: State
    data_dir: str  # the same as `crawl`
    created_at: float
    last_activity_at: float
    pid: int | None
    seeds: list[str]
    seed_count: int
    total: dict[str, int]
    shards: list[dict[str, int]]
    workers: list[dict[str, Any]]
    longest_queues: dict[str, int]


def status_of(crawl: View, *, now: float) -> Status:
    """Return how far a crawl is: one row a shard, whatever its size, and its longest queues."""
    store = crawl.store
    shards = [_counts(crawl, shard) for shard in range(len(crawl.readers))]
    total = _sum(shards)
    queues = (pair for reader in crawl.readers for pair in reader.queued_hosts())
    workers = store.workers()
    return Status(
        id=store.manifest.id,
        crawl=store.location,
        state=_state(store, total),
        data_dir=store.location,
        created_at=store.manifest.created_at,
        last_activity_at=store.last_activity(),
        pid=workers[0].pid if workers else None,
        seeds=store.manifest.seeds[:_SEEDS],
        seed_count=len(store.manifest.seeds),
        total=total,
        shards=shards,
        workers=[
            {
                "id": heartbeat.id,
                "machine": heartbeat.machine,
                "pid": heartbeat.pid,
                "shards": heartbeat.shards,
                "fetched": heartbeat.fetched,
                "seen_s": round(max(0.0, now - heartbeat.seen_at), 3),
                "waits_for": heartbeat.waits_for,
            }
            for heartbeat in workers
        ],
        longest_queues=dict(heapq.nlargest(_QUEUES, queues, key=lambda pair: pair[1])),
    )


def totals(store: CrawlStore) -> dict[str, int]:
    """Return the counts of all shards together, with the names of `Status.total`."""
    with view(store) as crawl:
        return _sum(_counts(crawl, shard) for shard in range(len(crawl.readers)))


def _counts(crawl: View, shard: int) -> dict[str, int]:
    counts = crawl.readers[shard].counts()
    found = {name: getattr(counts, name) for name in COUNTS}
    found["outgoing"] += crawl.store.unread(shard)
    found["pending"] = found["queued"] + found["outgoing"]
    return found


def _sum(shards: Iterable[dict[str, int]]) -> dict[str, int]:
    total = dict.fromkeys((*COUNTS, "pending"), 0)
    for counts in shards:
        for name, count in counts.items():
            total[name] += count
    return total


def _state(store: CrawlStore, total: dict[str, int]) -> State:
    is_running = store.is_running()
    has_begun = any(total.values())  # the seeds are the first thing that is committed
    if not is_running and has_begun and not total["pending"]:
        return State.FINISHED
    if in_force(store.orders()).is_paused:
        return State.PAUSED
    if not is_running:
        return State.STOPPED
    workers = store.workers()
    if workers and all(heartbeat.waits_for for heartbeat in workers):
        return State.WAITING
    return State.RUNNING
