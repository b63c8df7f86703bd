"""`mannerly status`: how far a crawl is, from its store, whether it runs or not."""

from __future__ import annotations

import heapq
import time
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated

import typer

from .figures import many, span
from .stored import opened, pid_at_work
from .terminal import failing_clearly, print_json, safe_term, table

if TYPE_CHECKING:
    from .stored import StoredCrawl

_LONGEST_QUEUES = 5
_COLUMNS = ("queued", "waiting", "fetched", "failed", "skipped", "outgoing", "hosts")


def status(
    directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)],
    *,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """How far a crawl is: counts, queues, last activity."""
    with failing_clearly(), opened(directory) as crawl:
        facts = facts_of(crawl)
    if json:
        print_json(facts)
    else:
        typer.echo(told(facts, now=time.time()))


def facts_of(crawl: StoredCrawl) -> dict[str, object]:
    """What the store says. One query a figure, whatever the crawl's size."""
    shards = []
    for reader in crawl.readers:
        counts = reader.counts()
        shards.append({name: getattr(counts, name) for name in _COLUMNS})
    total = {name: sum(shard[name] for shard in shards) for name in _COLUMNS}
    queues = heapq.nlargest(
        _LONGEST_QUEUES,
        (pair for reader in crawl.readers for pair in reader.queued_hosts()),
        key=lambda pair: pair[1],
    )
    return {
        "data_dir": str(crawl.path),
        "id": crawl.manifest.id,
        "created_at": crawl.manifest.created_at,
        "last_activity_at": _last_activity(crawl.path),
        "pid": pid_at_work(crawl.path),
        "seeds": crawl.manifest.seeds[:10],
        "seed_count": len(crawl.manifest.seeds),
        "total": total,
        "shards": shards,
        "longest_queues": [{"host": host, "queued": count} for host, count in queues],
    }


def told(facts: dict[str, object], *, now: float) -> str:
    """The same for people."""
    total, shards, queues = facts["total"], facts["shards"], facts["longest_queues"]
    seeds, pid = facts["seeds"], facts["pid"]
    assert isinstance(total, dict)
    assert isinstance(shards, list)
    assert isinstance(queues, list)
    assert isinstance(seeds, list)
    running = f"running (pid {pid})" if pid else "not running"
    more = (
        f" and {many(count, 'more', 'more')}"
        if (count := int(str(facts["seed_count"])) - 1)
        else ""
    )
    lines = [
        f"{facts['data_dir']}: {running}, {_ago(facts['last_activity_at'], now)}",
        f"from {safe_term(seeds[0]) if seeds else 'no seed'}{more}, "
        f"begun {_ago(facts['created_at'], now)}",
        "",
        table(
            ["shard", *_COLUMNS],
            [
                [name, *(f"{counts[column]:,}" for column in _COLUMNS)]
                for name, counts in [*((str(n), each) for n, each in enumerate(shards))]
                + [("all", total)]
            ],
        ),
    ]
    if queues:
        lines += ["", "Longest queues:"]
        lines += [f"  {each['queued']:>9,}  {safe_term(each['host'], limit=80)}" for each in queues]
    return "\n".join(lines)


def _last_activity(path: Path) -> float:
    """When a commit last wrote to one of the files."""
    files = [*path.glob("shard-*.db"), *path.glob("shard-*.db-wal")]
    return max(file.stat().st_mtime for file in files)


def _ago(wall: object, now: float) -> str:
    assert isinstance(wall, int | float)
    return f"{span(now - wall)} ago"
