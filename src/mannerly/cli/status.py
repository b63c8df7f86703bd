"""`mannerly status`: how far a crawl is, from its store, whether it runs or not."""

from __future__ import annotations

import heapq
import time
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from .figures import span
from .stored import opened, pid_at_work
from .terminal import failing_clearly, print_json, safe_term, table

if TYPE_CHECKING:
    from .stored import StoredCrawl

_QUEUES, _SEEDS = 5, 10  # named; the others are counted
_COLUMNS = ("queued", "waiting", "fetched", "failed", "skipped", "outgoing", "hosts")


class Facts(NamedTuple):
    """How far a crawl is. `pid` is None if nobody is at it, or the system does not tell."""

    data_dir: str
    id: str
    created_at: float
    last_activity_at: float
    pid: int | None
    seeds: list[str]
    seed_count: int
    total: dict[str, int]
    shards: list[dict[str, int]]
    longest_queues: dict[str, int]


def status(
    directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)],
    *,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """How far a crawl is: counts, queues, last activity."""
    with failing_clearly(), opened(directory) as crawl:
        facts = facts_of(crawl)
    if json:
        print_json(facts._asdict())
    else:
        typer.echo(told(facts, now=time.time()))


def facts_of(crawl: StoredCrawl) -> Facts:
    """What the store says. One row a shard, whatever the crawl's size, and its queues' lengths."""
    shards = []
    for reader in crawl.readers:
        counts = reader.counts()
        shards.append({name: getattr(counts, name) for name in _COLUMNS})
    queues = (pair for reader in crawl.readers for pair in reader.queued_hosts())
    return Facts(
        data_dir=str(crawl.path),
        id=crawl.manifest.id,
        created_at=crawl.manifest.created_at,
        last_activity_at=_last_activity(crawl.path),
        pid=pid_at_work(crawl.path),
        seeds=crawl.manifest.seeds[:_SEEDS],
        seed_count=len(crawl.manifest.seeds),
        total={name: sum(shard[name] for shard in shards) for name in _COLUMNS},
        shards=shards,
        longest_queues=dict(heapq.nlargest(_QUEUES, queues, key=lambda pair: pair[1])),
    )


def told(facts: Facts, *, now: float) -> str:
    """The same for people."""
    running = f"running (pid {facts.pid})" if facts.pid else "not running"
    seed = safe_term(facts.seeds[0]) if facts.seeds else "no seed"
    more = f" and {facts.seed_count - 1:,} more" if facts.seed_count > 1 else ""
    named = [(str(number), each) for number, each in enumerate(facts.shards)]
    named.append(("all", facts.total))
    rows = [[name, *(f"{counts[column]:,}" for column in _COLUMNS)] for name, counts in named]
    lines = [
        f"{facts.data_dir}: {running}, last written {span(now - facts.last_activity_at)} ago",
        f"from {seed}{more}, begun {span(now - facts.created_at)} ago",
        "",
        table(["shard", *_COLUMNS], rows),
    ]
    if facts.longest_queues:
        lines += ["", "Longest queues:"]
        lines += [
            f"  {count:>9,}  {safe_term(host, limit=80)}"
            for host, count in facts.longest_queues.items()
        ]
    return "\n".join(lines)


def _last_activity(path: Path) -> float:
    """When a commit last wrote to one of the files."""
    files = [*path.glob("shard-*.db"), *path.glob("shard-*.db-wal")]
    return max(file.stat().st_mtime for file in files)
