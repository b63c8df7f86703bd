"""Measure the frontier: microseconds per URL and bytes per host, with 1,000 to 1,000,000 hosts.

    python -m bench frontier

`add` adds a URL. A turn is `take` and `done` of one URL: with a politeness that grants a request
per second and host, and with the real one (its own cost included). Every host has two URLs, so
after a turn the host goes back to the heap. The garbage collector is off, because its cost depends
on the other objects in memory. The best of three runs is printed, in CPU time.

Bytes are what Python allocated for the frontier with one URL per host, including host names and
URLs. "Found": all hosts are in the heap and at most 250,000 URLs in memory. "Loaded": after a
restart with the default 500,000 places: names and counts, no URLs yet.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.frontier.core import Frontier
from mannerly.crawler.model import Entry
from mannerly.politeness import Politeness, Response, Settings
from mannerly.politeness.model import Grant, Permit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mannerly.politeness import Decision, Instant

SIZES = (1_000, 100_000, 1_000_000)
TURNS = 20_000
ROUNDS = 3
ANSWER = Response(200, 0.01)


class Budget(NamedTuple):
    key: str
    in_flight: int = 0


class Generous:
    """Grants everything, a second apart."""

    def reserve(self, host: str, *, now: Instant) -> Decision:
        return Grant(Permit(Budget(host), now, 1, 0, now, False))

    def ready_at(self, _host: str, *, now: Instant) -> Instant:
        return now + 1.0

    def host(self, _host: str) -> None:
        """Nobody ever waits for a report here."""

    def report(self, permit: Permit, _response: Response, **_now: Instant) -> None:
        permit.is_settled = True


class Row(NamedTuple):
    hosts: int
    add_us: float
    turn_us: float
    real_turn_us: float
    found_bytes: float
    loaded_bytes: float


def entries(hosts: int, each: int) -> Iterator[Entry]:
    """URLs of many hosts, in the order in which a broad crawl would find them."""
    for seq in range(hosts * each):
        host = f"host-{seq % hosts}.example.com"
        yield Entry(seq, f"https://{host}/section/page-{seq}.html", host, 1, 192, None, 0)


def bytes_a_host(hosts: int, fill: Callable[[], Frontier]) -> float:
    """Return the bytes that a filled frontier takes."""
    gc.collect()
    tracemalloc.start()
    frontier = fill()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del frontier
    return taken / hosts


def found(hosts: int) -> Frontier:
    frontier = Frontier(Generous(), heap_limit=hosts)
    frontier.add(entries(hosts, 1), now=0.0)
    return frontier


def loaded(hosts: int) -> Frontier:
    frontier = Frontier(Generous())
    frontier.load(((f"host-{number}.example.com", 1) for number in range(hosts)), now=0.0)
    return frontier


def turn_us(frontier: Frontier, politeness: Generous | Politeness, now: float) -> float:
    """Microseconds of one `take` and `done`; everything taken comes back before the next."""
    count = 0
    start = time.process_time()
    while count < TURNS:
        starts = frontier.take(now).starts
        if not starts:
            due = frontier.next_due(now)
            if due is None:  # everything was fetched
                break
            now = due
        for each in starts:
            politeness.report(each.permit, ANSWER, now=now)
            frontier.done(each, now=now)
        count += len(starts)
    return (time.process_time() - start) / count * 1e6


def timed(queued: list[Entry], make: Callable[[], Generous | Politeness]) -> tuple[float, float]:
    """Best microseconds of adding a URL, and of a turn."""
    adds, turns = [], []
    for _ in range(ROUNDS):
        politeness = make()
        frontier = Frontier(politeness, heap_limit=len(queued), memory_limit=len(queued))
        gc.collect()
        gc.disable()
        start = time.process_time()
        frontier.add(queued, now=0.0)
        adds.append((time.process_time() - start) / len(queued) * 1e6)
        turns.append(turn_us(frontier, politeness, now=1.0))
        gc.enable()
    return min(adds), min(turns)


def measure(hosts: int) -> Row:
    found_bytes = bytes_a_host(hosts, lambda: found(hosts))
    loaded_bytes = bytes_a_host(hosts, lambda: loaded(hosts))
    queued = list(entries(hosts, 2))
    add_us, generous_us = timed(queued, Generous)
    _, real_us = timed(queued, lambda: Politeness(Settings(seed=1)))
    return Row(hosts, add_us, generous_us, real_us, found_bytes, loaded_bytes)


def run() -> list[Row]:
    """Measure every size, print a table, and return its rows."""
    print(f"{'':>12}{'µs a URL':>36}{'bytes a host':>24}")
    heads = ("hosts", "add", "turn", "real turn", "found", "loaded")
    print("".join(f"{head:>12}" for head in heads))
    rows = []
    for hosts in SIZES:
        row = measure(hosts)
        times = f"{row.add_us:>12.2f}{row.turn_us:>12.2f}{row.real_turn_us:>12.2f}"
        sizes = f"{row.found_bytes:>12.0f}{row.loaded_bytes:>12.0f}"
        print(f"{hosts:>12,}{times}{sizes}", flush=True)
        rows.append(row)
    return rows


if __name__ == "__main__":
    run()
