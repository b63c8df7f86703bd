"""Workers are killed with -9 at random instants, others join: what is lost, repeated, or too early?

Some hosts answer now and then with a Retry-After that outlives a takeover, others have a long
Crawl-delay: a next instant that is forgotten in a takeover shows there only.
"""

from __future__ import annotations

import random
import time
from itertools import count
from typing import TYPE_CHECKING

from mannerly.demo import Site

from ._fleet_judge import judge
from ._fleet_world import World
from ._owners import Owners

if TYPE_CHECKING:
    from tests.crawler.fleet.fleet_world import Fleet, Worker

    from ._fleet_judge import Judged

LEASE_S, TAKEOVER_S = 15.0, 20.0
DELAY_S = 1.5
KILLS, TOGETHER, SHARDS = 20, 4, 64
PAUSES = "bucket:1000:1000+pauses=0.03:20-40"  # as good as no limit, but for its Retry-Afters
CRAWL_DELAY_S = 20.0


def sites(seed: int) -> list[Site]:
    """Return 44 hosts that ask for pauses, 8 with a long Crawl-delay, 8 without either."""
    numbers = count(seed * 1000)

    def some(number: int, word: str, **options: object) -> list[Site]:
        return [
            Site(name=f"{word}-{n}", seed=next(numbers), disallow=(), neighbours=2, **options)  # type: ignore[arg-type]
            for n in range(number)
        ]

    return [
        *some(44, "pausing", pages=36, limit=PAUSES),
        *some(8, "slow", pages=5, crawl_delay_s=CRAWL_DELAY_S),
        *some(8, "plain", pages=36),
    ]


def kills(seed: int) -> bool:
    """Kill 20 workers, one after the other; return whether every promise was kept."""
    chance = random.Random(seed)
    web = sites(seed)
    pages = sum(site.pages for site in web)
    with World(web) as world:
        fleet = world.fleet(
            *("--delay", str(DELAY_S), "--shards", str(SHARDS), "--memory", world.server.url)
        )
        alive: list[Worker] = [fleet.join() for _ in range(TOGETHER)]
        with Owners(world.server, fleet, SHARDS) as owners:
            fleet.until_requests(100)
            began = time.monotonic()
            for _ in range(KILLS):
                time.sleep(chance.uniform(1.0, 6.0))
                owners.kill(alive.pop(chance.randrange(len(alive))))
                alive.append(fleet.join())
            killed_s = time.monotonic() - began
            codes = [worker.end(900.0) for worker in alive]
        code, urls = fleet.exported(*fleet.workers)
        found = judge(fleet.log(), world.web.sites, owners.claims, owners.kills, DELAY_S)
        took = sorted(owners.takeovers_s())
        print(f"seed {seed}: exit codes {codes}, export {code}; {KILLS} kills in {killed_s:.0f} s")
        print(
            f"pages                {pages:,}, {pages - len(set(urls))} lost, "
            f"{len(urls) - len(set(urls))} recorded twice"
        )
        _print(found)
        print(
            f"takeovers            {len(took)} shards, median {took[len(took) // 2]:.1f} s, "
            f"longest {took[-1]:.1f} s after the kill (lease {LEASE_S:.0f} s)"
        )
        _print_silences(owners)
        broken = [
            (f"exit codes {codes}, export {code}", any(codes) or code),
            ("pages lost", pages - len(set(urls))),
            ("pages recorded twice", len(urls) - len(set(urls))),
            ("pages fetched twice that were not in flight", len(found.unexplained)),
            ("requests inside a Retry-After", len(found.inside)),
            ("gaps too small", len(found.close)),
            (f"takeovers after {TAKEOVER_S:.0f} s", sum(each > TAKEOVER_S for each in took)),
        ]
        _show(fleet, found)
        fleet.close()
    for what, number in broken:
        if number:
            print(f"BROKEN               {what}: {number}")
    return not any(number for _, number in broken)


def _print(found: Judged) -> None:
    print(
        f"fetched twice        {len(found.twice)} pages; {found.in_flight} requests were in flight "
        f"at the kills; {len(found.unexplained)} of the former were not among the latter"
    )
    print(
        f"Retry-After          {found.retry_afters} of 20-40 s, {len(found.inside)} requests "
        f"inside one ({found.untold} answers came less than 0.5 s before a kill)"
    )
    print(
        f"smallest gap         {found.smallest_gap_s:.3f} s ({DELAY_S:.3f} in force), with a "
        f"Crawl-delay {found.smallest_delay_s:.2f} s ({CRAWL_DELAY_S:.2f} in force)"
    )


def _print_silences(owners: Owners) -> None:
    silences = owners.silences()
    for number in sorted({each.kills for each in silences}):
        longest = max(each for each in silences if each.kills == number)
        print(
            f"longest silence      {longest.seconds:.1f} s of a host, {number} of its owners "
            "killed in it"
        )


def _show(fleet: Fleet, found: Judged) -> None:
    """Print what broke a promise, with the seconds since the first request."""
    zero = min(each.t for each in fleet.log())
    for word, some in (("repeated", found.unexplained), ("inside", found.inside)):
        for each in some[:5]:
            print(f"  {word} {each.host}{each.path} at {each.t - zero:.2f} s")
    for first, after in found.close[:5]:
        print(f"  close {first.host}{first.path} at {first.t - zero:.2f} s, {after.path}", end=" ")
        print(f"{after.t - first.t:.3f} s later")
