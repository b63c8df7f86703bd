"""Workers that are cut off from their server, or stopped: who sends meanwhile, what is refused?

    deaf    the answers of the server are lost
    mute    what the worker says is lost
    cut     both
    slow    everything takes 0.3 s longer
    asleep  the process is stopped (SIGSTOP) for three times its lease, and woken

Each is a crawl of its own with two workers, one of them behind a proxy.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from tests.crawler.fleet.chaos_proxy import ChaosProxy, Way

from ._fleet_judge import judge
from ._fleet_world import World
from ._owners import Owners

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crawler.fleet.fleet_world import Worker

LEASE_S, DELAY_S = 15.0, 0.9
HOSTS, PAGES, SHARDS = 20, 45, 32
METRICS = "metrics.prom"
WAYS = (Way.DEAF, Way.MUTE, Way.CUT, Way.SLOW, None)


def partitions() -> bool:
    """One of two workers is cut off, slow or asleep; return whether every promise was kept."""
    kept = [_part(way) for way in WAYS]
    return all(kept)


def _part(way: Way | None) -> bool:
    with World.plain(HOSTS, PAGES) as world, ChaosProxy(world.server.port) as proxy:
        fleet = world.fleet(
            *("--delay", str(DELAY_S), "--shards", str(SHARDS), "--memory", world.server.url)
        )
        metrics = ("--metrics-file", str(world.folder / METRICS))
        behind, other = fleet.join(*metrics, url=proxy.url), fleet.join()
        with Owners(world.server, fleet, SHARDS) as owners:
            while sorted(owners.shares().values()) != [SHARDS // 2] * 2:
                time.sleep(0.1)
            if way is None:
                _sleep(behind)
            else:
                proxy.way = way
                time.sleep(LEASE_S + 6.0)
                proxy.heal()
            codes = [behind.end(600.0), other.end(600.0)]
        code, urls = fleet.exported(behind, other)
        found = judge(fleet.log(), world.web.sites, owners.claims, (), DELAY_S)
        refused = _metric(world.folder / METRICS, "mannerly_shards_lost_total")
        lost = HOSTS * PAGES - len(set(urls))
        name = "asleep" if way is None else way.value
        print(
            f"{name:<8} exit codes {codes}, export {code}; {lost} lost, "
            f"{len(urls) - len(set(urls))} recorded twice, {len(found.twice)} fetched twice; "
            f"{refused:.0f} shards refused to the first worker; smallest gap "
            f"{found.smallest_gap_s:.3f} s ({DELAY_S:.3f} in force)",
            flush=True,
        )
        fleet.close()
    return not (any(codes) or code or lost or len(urls) - len(set(urls)) or found.close)


def _metric(path: Path, name: str) -> float:
    """Return the value of a metric that a worker wrote when it ended."""
    lines = path.read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name)))


def _sleep(worker: Worker) -> None:
    worker.signal(signal.SIGSTOP)
    time.sleep(3 * LEASE_S)
    worker.signal(signal.SIGCONT)
