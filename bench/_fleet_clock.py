"""The clock of the server is set while a fleet runs, and a worker is killed: what comes too early?

The server runs under libfaketime, which sets its clock from a file; where that is missing, this
part is skipped. (Servers that use jemalloc, as those of Debian, do not start under it.) Every
worker takes itself for a machine of its own, so that none can read the clock of another
(`bench._fleet_boot`).
"""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tests.crawler.store.valkey_server import LocalServer

from mannerly.demo import Site

from ._fleet_judge import judge
from ._fleet_world import World
from ._owners import Owners

if TYPE_CHECKING:
    from ._fleet_judge import Judged

DELAY_S, SHARDS, WORKERS = 1.0, 24, 3
TAKEOVER_S = 60.0
PAUSES = "bucket:1000:1000+pauses=0.08:25-35"
SETTINGS = ("+60s", "-60s", "+3600s", "-3600s", "+0s x1.05", "+0s x0.95")


def clock() -> bool:
    """Set the server's clock, and kill a worker; return whether every promise was kept."""
    library = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
    if library is None:
        print("skipped: this needs libfaketime (the package faketime)")
        return True
    kept = [_part(setting, library) for setting in SETTINGS]
    return all(kept)


class FakedServer(LocalServer):
    """A server whose clock is set by a file."""

    def __init__(self, library: Path) -> None:
        super().__init__("--appendonly", "yes")
        self._setting = self.folder / "clock"
        self.set_clock("+0s")
        wrapper = self.folder / "server.sh"
        wrapper.write_text(
            f"#!/bin/sh\nexec env LD_PRELOAD={library} FAKETIME_NO_CACHE=1 "
            f"FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_TIMESTAMP_FILE={self._setting} "
            f'{self.binary} "$@"\n'
        )
        wrapper.chmod(0o755)
        self.binary = str(wrapper)

    def set_clock(self, setting: str) -> None:
        """Set the clock, in the words of libfaketime."""
        new = self._setting.with_suffix(".new")
        new.write_text(setting + "\n")
        new.replace(self._setting)

    def ahead_s(self) -> float:
        """Return how far its clock is ahead."""
        with self.client() as client:
            seconds, micros = client.time()
        return float(seconds + micros / 1e6 - time.time())


def _sites() -> list[Site]:
    numbers = count(77)
    return [
        Site(
            name=f"{word}-{n}", seed=next(numbers), disallow=(), neighbours=2, pages=30, limit=limit
        )
        for word, limit in (("pausing", PAUSES), ("plain", None))
        for n in range(8)
    ]


def _part(setting: str, library: Path) -> bool:
    sites = _sites()
    pages = sum(site.pages for site in sites)
    with World(sites, server=FakedServer(library)) as world:
        faked = world.server
        assert isinstance(faked, FakedServer)
        fleet = world.fleet(
            *("--delay", str(DELAY_S), "--shards", str(SHARDS), "--memory", faked.url)
        )
        fleet.program = "bench._fleet_boot"
        alive = [fleet.join() for _ in range(WORKERS)]
        with Owners(faked, fleet, SHARDS) as owners:
            fleet.until_requests(120)
            faked.set_clock(setting)
            time.sleep(3.0)
            ahead_s = faked.ahead_s()
            owners.kill(alive.pop())
            codes = [worker.end(900.0) for worker in alive]
        code, urls = fleet.exported(*fleet.workers)
        found = judge(fleet.log(), world.web.sites, owners.claims, owners.kills, DELAY_S)
        took = max(owners.takeovers_s(), default=0.0)
        broken = _broken(found, pages - len(set(urls)), took, has_failed=any(codes) or bool(code))
        fleet.close()
    print(
        f"{setting:10} ahead by {ahead_s:+8.1f} s; exit codes {codes}, export {code}; "
        f"{pages - len(set(urls))} of {pages} pages lost; {found.retry_afters} Retry-Afters, "
        f"{len(found.inside)} requests inside; smallest gap {found.smallest_gap_s:.3f} s "
        f"({DELAY_S:.3f} in force); longest takeover {took:.1f} s"
        + "".join(f"; BROKEN {each}" for each in broken),
        flush=True,
    )
    return not broken


def _broken(found: Judged, lost: int, took_s: float, *, has_failed: bool) -> list[str]:
    promises = {
        "exit codes": has_failed,
        "pages lost": lost > 0,
        "requests inside a Retry-After": bool(found.inside),
        "gaps too small": bool(found.close),
        f"takeovers after {TAKEOVER_S:.0f} s": took_s > TAKEOVER_S,
    }
    return [what for what, is_broken in promises.items() if is_broken]
