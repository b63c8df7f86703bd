"""`mannerly status`: how far a crawl is, from its store, whether it runs or not."""

from __future__ import annotations

import heapq
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .figures import many, span
from .stored import Location, opened
from .terminal import failing_clearly, print_json, safe_term, table

if TYPE_CHECKING:
    from .stored import StoredCrawl

_QUEUES, _SEEDS = 5, 10  # named; the others are counted
_COLUMNS = ("queued", "waiting", "fetched", "failed", "lists", "skipped", "outgoing", "hosts")


class State(StrEnum):
    """Whether a crawl makes progress, and if not, why."""

    RUNNING = "running"
    PAUSED = "paused"  # by `pause`; it may or may not be running
    WAITING = "waiting"  # running, and every worker says what it waits for
    STOPPED = "stopped"  # not running, and there is something left to do
    FINISHED = "finished"


class Facts(NamedTuple):
    """How far a crawl is, with the keys of `--json`.

    `fetched` and `failed` count pages; `lists` counts sitemaps and public indexes. `outgoing` are
    links that one shard has found and another has not taken over yet. `pid` is the first worker's,
    or None if none is known.
    """

    id: str
    crawl: str
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


def status(
    location: Location,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how far a crawl is: state, counts, queues, last activity."""
    now = time.time()
    with failing_clearly(), opened(location) as crawl:
        facts = facts_of(crawl, now=now)
    if json:
        print_json(facts._asdict())
    else:
        typer.echo(told(facts, now=now))


def facts_of(crawl: StoredCrawl, *, now: float) -> Facts:
    """Ask the store: one row a shard, whatever the crawl's size, and the lengths of its queues."""
    shards = [_counts(crawl, shard) for shard in range(len(crawl.readers))]
    total = {name: sum(shard[name] for shard in shards) for name in _COLUMNS}
    queues = (pair for reader in crawl.readers for pair in reader.queued_hosts())
    workers = crawl.store.workers()
    return Facts(
        id=crawl.manifest.id,
        crawl=crawl.store.location,
        state=_state(crawl, total),
        data_dir=crawl.store.location,
        created_at=crawl.manifest.created_at,
        last_activity_at=crawl.store.last_activity(),
        pid=workers[0].pid if workers else None,
        seeds=crawl.manifest.seeds[:_SEEDS],
        seed_count=len(crawl.manifest.seeds),
        total=total,
        shards=shards,
        workers=[
            {
                "id": card.id,
                "machine": card.machine,
                "pid": card.pid,
                "shards": card.shards,
                "fetched": card.fetched,
                "seen_s": round(max(0.0, now - card.seen_at), 3),
                "waits_for": card.waits_for,
            }
            for card in workers
        ],
        longest_queues=dict(heapq.nlargest(_QUEUES, queues, key=lambda pair: pair[1])),
    )


def _counts(crawl: StoredCrawl, shard: int) -> dict[str, int]:
    counts = crawl.readers[shard].counts()
    found = {name: getattr(counts, name) for name in _COLUMNS}
    found["outgoing"] += crawl.store.unread(shard)
    return found


def _state(crawl: StoredCrawl, total: dict[str, int]) -> State:
    from mannerly.crawler.control import in_force

    is_running = crawl.store.is_running()
    has_begun = any(total.values())  # the seeds are the first thing that is committed
    if not is_running and has_begun and not total["queued"] and not total["outgoing"]:
        return State.FINISHED
    if in_force(crawl.store.orders()).is_paused:
        return State.PAUSED
    if not is_running:
        return State.STOPPED
    workers = crawl.store.workers()
    if workers and all(card.waits_for for card in workers):
        return State.WAITING
    return State.RUNNING


def told(facts: Facts, *, now: float) -> str:
    """Return the same for people."""
    pid = f" (pid {facts.pid})" if facts.pid else ""
    seed = safe_term(facts.seeds[0]) if facts.seeds else "no seed"
    more = f" and {facts.seed_count - 1:,} more" if facts.seed_count > 1 else ""
    named = [(str(number), each) for number, each in enumerate(facts.shards)]
    named.append(("all", facts.total))
    rows = [[name, *(f"{counts[column]:,}" for column in _COLUMNS)] for name, counts in named]
    lines = [
        f"{facts.crawl}: {facts.state}{pid}, last written {span(now - facts.last_activity_at)} ago",
        f"from {seed}{more}, begun {span(now - facts.created_at)} ago",
        "",
        table(["shard", *_COLUMNS], rows),
    ]
    if facts.workers:
        lines += ["", "Workers:", *map(_worker, facts.workers)]
    if facts.longest_queues:
        lines += ["", "Longest queues:"]
        lines += [
            f"  {count:>9,}  {safe_term(host, limit=80)}"
            for host, count in facts.longest_queues.items()
        ]
    return "\n".join(lines)


def _worker(card: dict[str, Any]) -> str:
    waits = f", waits: {safe_term(card['waits_for'])}" if card["waits_for"] else ""
    return (
        f"  {safe_term(card['id'], limit=40)} on {safe_term(card['machine'], limit=40)}, "
        f"pid {card['pid']}: {many(len(card['shards']), 'shard')}, "
        f"{many(card['fetched'], 'page')} in this run, seen {span(card['seen_s'])} ago{waits}"
    )
