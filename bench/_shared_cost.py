"""Two crawls of one simulated web, step by step in turns: one alone, one with a memory of hosts.

Each crawl is a process. The seeds are its brake: after every part of them it says how much CPU time
it has used, and waits until it may go on. So a round is the same part of the same crawl in both,
seconds apart, and whatever else the machine does is in both.
"""

from __future__ import annotations

import gc
import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from bench.simulated import settings_of, web_of
from mannerly.simulation.crawl import ENOUGH, simulate_crawl
from mannerly.simulation.crawl_web import GeneratedWeb

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DRAWS = 2000  # of the rounds, for the interval of their sum
_ALONE = ""


class Cost(NamedTuple):
    """How much more CPU time a crawl takes that shares its hosts: 0.01 is one per cent."""

    rounds: int
    total: float  # of all rounds together
    low: float  # of its 90 % interval
    high: float
    median: float  # of the rounds: each is disturbed by what its crawl happens to do in it
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


def _total(pairs: Sequence[tuple[float, float]]) -> float:
    """Return how much more the second of all pairs are than the first."""
    return sum(two for _, two in pairs) / sum(one for one, _ in pairs) - 1.0


def measure(hosts: int, rounds: int) -> Cost:
    """Crawl both webs in turns, and compare the rounds."""
    _part(hosts, rounds)  # or it ends here
    with TemporaryDirectory(prefix="mannerly-bench-") as folder:
        alone, shared = (
            _Arm(hosts, rounds, memory) for memory in (_ALONE, f"{folder}/hosts.sqlite")
        )
        try:
            pairs = []
            for number in range(rounds):
                first, second = (alone, shared) if number % 2 else (shared, alone)
                took = {first: first.step(), second: second.step()}
                pairs.append((took[alone], took[shared]))
        finally:
            alone.close()
            shared.close()
    ratios = [with_s / without_s - 1.0 for without_s, with_s in pairs]
    drawn = random.Random(1)
    totals = sorted(_total(drawn.choices(pairs, k=rounds)) for _ in range(DRAWS))
    a_host = 1e6 / _part(hosts, rounds)
    return Cost(
        rounds,
        _total(pairs),
        totals[DRAWS // 20],
        totals[-DRAWS // 20],
        median(ratios),
        median(one for one, _ in pairs) * a_host,
        median(two for _, two in pairs) * a_host,
    )


if __name__ == "__main__":
    _crawl(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
