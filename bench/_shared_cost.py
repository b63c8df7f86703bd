"""Two crawls of one simulated web, step by step: one alone, one with a memory of hosts.

Each crawl is a process. The seeds are its brake: after every part of them it says how much CPU time
it has used, and waits until it may go on. So a round is the same part of the same crawl in both, at
the same time on one core (`_pairs`), and whatever else the machine does is in both.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from bench._cores import on_cores, two_cores
from bench._pairs import at_once, ratio
from bench.simulated import settings_of, web_of
from mannerly.simulation.crawl import ENOUGH, simulate_crawl
from mannerly.simulation.crawl_web import GeneratedWeb

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Braked(GeneratedWeb):
    """A web whose crawl waits for a line of input after every `part` of its seeds."""

    part: int

    def seeds(self) -> Iterator[str]:
        """Yield the seeds; stop in between."""
        for number, url in enumerate(GeneratedWeb.seeds(self)):
            if number >= ENOUGH and (number - ENOUGH) % self.part == 0:
                _say_and_wait()
            yield url


def _part(hosts: int, rounds: int) -> int:
    """Return the seeds of one round; the first ones are only read, until enough are queued."""
    if hosts - ENOUGH <= rounds:
        raise SystemExit(f"--hosts: at least {ENOUGH + rounds + 1:,}")
    return (hosts - ENOUGH - 1) // rounds


def _say_and_wait() -> None:
    print(json.dumps(time.process_time()), flush=True)
    sys.stdin.readline()


def _crawl(hosts: int, rounds: int, memory: str) -> None:
    web = web_of(hosts)
    described = {name: getattr(web, name) for name in GeneratedWeb.__slots__}
    settings, faults = settings_of()
    gc.disable()  # as in `simulated`: no object becomes garbage before the end
    simulate_crawl(
        _Braked(**described, part=_part(hosts, rounds)),
        settings,
        faults=faults,
        step_s=0.05,
        check_every=10**9,
        memory=memory or None,
        turn_s=0.25,
    )


class _Arm:
    """One of the two crawls."""

    def __init__(self, hosts: int, rounds: int, memory: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench._shared_cost", str(hosts), str(rounds), memory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._used_s = self._read()

    def _read(self) -> float:
        assert self._process.stdout is not None
        return float(json.loads(self._process.stdout.readline()))

    def step(self) -> float:
        """Let it crawl one part; return the CPU seconds that this took."""
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        before, self._used_s = self._used_s, self._read()
        return self._used_s - before

    def close(self) -> None:
        """End it: what is left of the crawl is not measured."""
        self._process.kill()
        self._process.communicate()


def measure(hosts: int, rounds: int) -> Cost:
    """Crawl both webs at once, and compare the rounds."""
    _part(hosts, rounds)  # or it ends here
    with TemporaryDirectory(prefix="mannerly-bench-") as folder:
        with on_cores({two_cores()[0]}):
            arms = {
                name: _Arm(hosts, rounds, name and f"{folder}/hosts.sqlite")
                for name in (_ALONE, _SHARED)
            }
        try:
            took = [at_once({name: arm.step for name, arm in arms.items()}) for _ in range(rounds)]
        finally:
            for arm in arms.values():
                arm.close()
    a_host = 1e6 / _part(hosts, rounds)
    alone, shared = ([each[name] for each in took] for name in (_ALONE, _SHARED))
    return Cost(rounds, ratio(shared, alone), median(alone) * a_host, median(shared) * a_host)


if __name__ == "__main__":
    _crawl(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
