"""Two crawls of one simulated web at once: one alone, one with a memory of hosts.

A round is a pair of processes on one core (`_pairs`). Where the objects of a process happen to lie
makes it up to two per cent faster or slower for as long as it lives, so every round has new ones,
with the same seed of Python's hashes. The start is not measured: the seeds are a brake, and when
enough of them are queued a crawl says how much CPU time it has used, and waits until it may go on.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from virtual.crawl import ENOUGH, simulate_crawl
from virtual.web import GeneratedWeb

from bench._cores import on_cores, two_cores
from bench._pairs import at_once, ratio
from bench.simulated import settings_of, web_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench._pairs import Ratio

_ALONE, _SHARED = "", "shared"


class Cost(NamedTuple):
    """The CPU time of a crawl that shares its hosts, against one that does not."""

    rounds: int
    ratio: Ratio  # 1.01: one per cent more
    alone_us: float  # a host
    shared_us: float


class _Braked(GeneratedWeb):
    """A web whose crawl waits for a line of input when enough is queued, and at its last seed."""

    __slots__ = ()

    def seeds(self) -> Iterator[str]:
        """Yield the seeds; stop in between."""
        for number, url in enumerate(GeneratedWeb.seeds(self)):
            if number == ENOUGH:
                _say_and_wait()
            yield url
        _say_and_wait()


def _say_and_wait() -> None:
    print(json.dumps(time.process_time()), flush=True)
    sys.stdin.readline()


def _crawl(hosts: int, memory: str) -> None:
    web = web_of(hosts)
    described = {name: getattr(web, name) for name in GeneratedWeb.__slots__}
    settings, faults = settings_of()
    gc.disable()  # as in `simulated`: no object becomes garbage before the end
    simulate_crawl(
        _Braked(**described),
        settings,
        faults=faults,
        step_s=0.05,
        check_every=10**9,
        memory=memory or None,
        turn_s=0.25,
    )


class _Arm:
    """One of the two crawls."""

    def __init__(self, hosts: int, memory: str, seed: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench._shared_cost", str(hosts), memory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
        )
        self._used_s = self._read()

    def _read(self) -> float:
        assert self._process.stdout is not None
        return float(json.loads(self._process.stdout.readline()))

    def run(self) -> float:
        """Let it crawl the rest; return the CPU seconds that this took."""
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        return self._read() - self._used_s

    def close(self) -> None:
        """End it: what is left of the crawl is not measured."""
        self._process.kill()
        self._process.communicate()


def measure(hosts: int, rounds: int) -> Cost:
    """Crawl both webs at once, again and again, and compare the rounds."""
    if hosts <= ENOUGH:
        raise SystemExit(f"--hosts: more than {ENOUGH:,}")
    took = [_round(hosts, seed) for seed in range(rounds)]
    a_host = 1e6 / (hosts - ENOUGH)
    alone, shared = ([each[name] for each in took] for name in (_ALONE, _SHARED))
    return Cost(rounds, ratio(shared, alone), median(alone) * a_host, median(shared) * a_host)


def _round(hosts: int, seed: int) -> dict[str, float]:
    """Return the CPU seconds of both crawls."""
    with TemporaryDirectory(prefix="mannerly-bench-") as folder, ExitStack() as stack:
        file = f"{folder}/hosts.sqlite"
        with on_cores({two_cores()[0]}):
            started = {name: _Arm(hosts, name and file, seed) for name in (_ALONE, _SHARED)}
        for arm in started.values():
            stack.callback(arm.close)
        return at_once({name: arm.run for name, arm in started.items()})


if __name__ == "__main__":
    _crawl(int(sys.argv[1]), sys.argv[2])
