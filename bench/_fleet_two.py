"""Two crawls in one server want the same hosts, with three workers each: one delay for both."""

from __future__ import annotations

from itertools import pairwise

from mannerly.demo.log import GAP_TOLERANCE, by_host

from ._fleet_world import World

HOSTS, PAGES, WORKERS, DELAY_S = 5, 60, 3, 0.5


def two() -> bool:
    """Two crawls of the same five hosts; return whether every promise was kept."""
    with World.plain(HOSTS, PAGES) as world:
        fleets = [world.fleet("--delay", str(DELAY_S), "--memory", world.server.url) for _ in "12"]
        workers = [fleet.join() for _ in range(WORKERS) for fleet in fleets]
        codes = [worker.end(900.0) for worker in workers]
        exported = [fleet.exported(*fleet.workers) for fleet in fleets]
        log = by_host(fleets[0].log())  # both crawls began after it was opened
        gaps = [after.t - first.t for each in log.values() for first, after in pairwise(each)]
        for fleet in fleets:
            fleet.close()
    least_s = DELAY_S * (1 - GAP_TOLERANCE) - 0.02
    recorded = [(code, len(urls), len(set(urls))) for code, urls in exported]
    print(f"exit codes           {codes}")
    print(f"recorded             {recorded} (export's exit code, records, URLs) of {HOSTS * PAGES}")
    print(
        f"smallest gap         {min(gaps):.3f} s of {len(gaps):,} ({DELAY_S:.3f} in force), "
        "of both crawls together"
    )
    everything = [(0, HOSTS * PAGES, HOSTS * PAGES)] * 2
    return not any(codes) and recorded == everything and min(gaps) >= least_s
