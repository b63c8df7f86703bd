"""One worker, then four, then one again: does the throughput follow, and what does it cost?

Answers take 0.25 s and a worker has 12 requests in flight at most, so that the number of workers
decides about the throughput, not the two cores of this machine.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING

from ._fleet_world import World
from ._owners import Owners

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.crawler.fleet.fleet_world import Fleet

HOSTS, PAGES, SHARDS = 60, 120, 64
LATENCY_S, IN_FLIGHT = 0.25, 12
ALONE_S, TOGETHER_S = 12.0, 20.0


def grow() -> None:
    """One worker, then four, then one again."""
    with World.plain(HOSTS, PAGES, latency_s=LATENCY_S) as world:
        pace = ("--delay", "0.1", "--concurrency", str(IN_FLIGHT), "--memory", world.server.url)
        fleet = world.fleet("--shards", str(SHARDS), *pace)
        first = fleet.join()
        fleet.until_requests(50)
        with Owners(world.server, fleet, SHARDS) as owners:
            alone = _span(lambda: time.sleep(ALONE_S))
            others = [fleet.join() for _ in range(3)]
            joined_at = time.monotonic()
            while min(owners.shares().values()) < SHARDS // 4 or len(owners.shares()) < 4:
                time.sleep(0.1)
            shared_s = time.monotonic() - joined_at
            together = _span(lambda: time.sleep(TOGETHER_S))
            fleet.command("pause")
            paused_at = time.monotonic()
            time.sleep(7.0)
            fleet.command("unpause")
            unpaused_at = time.monotonic()
            time.sleep(7.0)
            for worker in others:
                worker.process.terminate()
            codes = [worker.end(60.0) for worker in others]
            left_at = time.monotonic()
            codes.append(first.end(900.0))
        _, urls = fleet.exported(*fleet.workers)
        log = fleet.log()
        instants = sorted(each.t for each in log)
        rest = [t for t in instants if t > left_at + 2.0]
        if len(rest) < 2:
            raise SystemExit("the crawl was finished before three workers left: give it more pages")
        after = [t for t in instants if paused_at < t < paused_at + 6.0]
        again = next(t for t in instants if t > unpaused_at) - unpaused_at
        print(f"exit codes           {codes}")
        print(f"recorded             {len(urls):,} of {HOSTS * PAGES:,}, {_twice(urls)} twice")
        print(
            f"requests/s           {_rate(instants, *alone):.0f} alone, "
            f"{_rate(instants, *together):.0f} by four, "
            f"{_rate(instants, left_at + 2.0, rest[len(rest) // 2]):.0f} alone again"
        )
        print(f"share of a joiner    complete after {shared_s:.1f} s, its start included")
        is_paused = (paused_at - 1.0, unpaused_at + 5.0)
        print(f"longest pause        {_longest_s(instants, is_paused):.2f} s of the whole crawl")
        longest = max(_longest_s(each, is_paused) for each in _by_host(fleet))
        print(f"                     {longest:.2f} s of a host that has pages left")
        print(f"committed            within {owners.oldest_uncommitted_s():.2f} s of its last byte")
        print(
            f"orders               pause in force after "
            f"{max(after, default=paused_at) - paused_at:.1f} s, unpause after {again:.1f} s"
        )
        fleet.close()


def _span(action: Callable[[], None]) -> tuple[float, float]:
    began = time.monotonic()
    action()
    return began, time.monotonic()


def _rate(instants: Sequence[float], since: float, until: float) -> float:
    return sum(since <= t < until for t in instants) / (until - since)


def _longest_s(instants: Sequence[float], without: tuple[float, float]) -> float:
    since, until = without
    return max(
        later - earlier for earlier, later in pairwise(instants) if later < since or earlier > until
    )


def _by_host(fleet: Fleet) -> list[list[float]]:
    hosts: dict[str, list[float]] = {}
    for each in fleet.log():
        hosts.setdefault(each.host, []).append(each.t)
    return [sorted(instants) for instants in hosts.values()]


def _twice(urls: Sequence[str]) -> int:
    return len(urls) - len(set(urls))
