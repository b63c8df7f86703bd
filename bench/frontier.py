"""What the frontier costs: time of a turn and bytes a host, with 1,000 to 1,000,000 hosts.

    python -m bench frontier

A turn is `take` and `done` of one URL, on a politeness that always grants (the core's own cost is
measured elsewhere) and on the real one. With n hosts of one URL each, every turn serves another
host and ends in its being forgotten. With two URLs each, it goes back to the heap instead.
Bytes a host are what Python allocated for the frontier alone; the URL and the host's name belong to
it. The last row is a million hosts of which half have no place in the scheduler (the default
limit), as after a restart: all URLs are on disk.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawl.frontier import Frontier
from mannerly.crawl.model import Entry
from mannerly.politeness import Politeness, Response, Settings
from mannerly.politeness.model import Grant, Permit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawl.frontier import Start
    from mannerly.politeness import Decision, Instant

SIZES = (1_000, 100_000, 1_000_000)
TURNS = 50_000
ANSWER = Response(200, 0.01)


class Budget(NamedTuple):
    key: str


class Generous:
    """Grants everything, a second apart."""

    def reserve(self, host: str, *, now: Instant) -> Decision:
        return Grant(Permit(Budget(host), now, 1, 0, now, False))

    def ready_at(self, host: str, *, now: Instant) -> Instant:
        return now + 1.0

    def report(self, permit: Permit, response: Response, *, now: Instant) -> None:
        permit.is_settled = True


class Row(NamedTuple):
    what: str
    hosts: int
    us_a_turn: float
    bytes_a_host: float


def entries(hosts: int, each: int) -> Iterator[Entry]:
    """URLs of many hosts, in the order in which a broad crawl would find them."""
    for seq in range(hosts * each):
        host = f"host-{seq % hosts}.example.com"
        yield Entry(seq, f"https://{host}/section/page-{seq}.html", host, 1, 192, None, 0, 0)


def fill(frontier: Frontier, hosts: int, each: int) -> float:
    """Bytes that the frontier takes for each host."""
    gc.collect()
    tracemalloc.start()
    frontier.add(entries(hosts, each), now=0.0)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / hosts


def turns(frontier: Frontier, politeness: Generous | Politeness, wanted: int) -> float:
    """Microseconds of one `take` and `done`, the requests coming back in order."""
    under_way: list[Start] = []
    now, count = 1.0, 0
    start = time.perf_counter()
    while count < wanted:
        under_way = frontier.take(now).starts
        if not under_way:
            now = max(now, frontier.next_due(now) or inf)
            continue
        for each in under_way:
            politeness.report(each.permit, ANSWER, now=now)
            frontier.done(each, now=now)
            count += 1
    return (time.perf_counter() - start) / count * 1e6


def measure(what: str, hosts: int, *, each: int, is_real: bool) -> Row:
    politeness = Politeness(Settings(seed=1)) if is_real else Generous()
    frontier = Frontier(politeness, heap_limit=hosts)
    bytes_a_host = fill(frontier, hosts, each)
    return Row(what, hosts, turns(frontier, politeness, min(TURNS, hosts * each)), bytes_a_host)


def after_restart(hosts: int) -> Row:
    frontier = Frontier(Generous())
    names = [(f"host-{number}.example.com", 1) for number in range(hosts)]
    gc.collect()
    tracemalloc.start()
    frontier.load(((str.__str__(name), count) for name, count in names), now=0.0)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Row("on disk, half inactive", hosts, float("nan"), taken / hosts)


def run() -> list[Row]:
    """Measure every size, print a table, and return its rows."""
    print(f"{'what':<28}{'hosts':>12}{'µs a turn':>12}{'bytes a host':>14}")
    rows = []
    for hosts in SIZES:
        rows.append(measure("one URL, generous", hosts, each=1, is_real=False))
        rows.append(measure("two URLs, generous", hosts, each=2, is_real=False))
        rows.append(measure("one URL, real politeness", hosts, each=1, is_real=True))
    rows.append(after_restart(SIZES[-1]))
    for row in rows:
        print(f"{row.what:<28}{row.hosts:>12,}{row.us_a_turn:>12.2f}{row.bytes_a_host:>14.0f}")
    return rows


if __name__ == "__main__":
    run()
