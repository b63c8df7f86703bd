"""What one decision costs, next to `aiolimiter`'s acquire in the same run.

The two are alternated in short rounds and the median of the rounds' ratios is printed, so that a
noisy machine slows both. `reserve` is the fast path: known host, slot free. Time is an argument
of the core, so nothing is waited for; `aiolimiter` is given a rate it never exhausts. With 100,000
hosts each is asked in turn, so that neither finds its state in the processor's caches: aiolimiter
then has a dict of as many limiters.
"""

from __future__ import annotations

import asyncio
import gc
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from aiolimiter import AsyncLimiter

from mannerly.politeness import Grant, Politeness, Response, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

ROUND = 20_000
ROUNDS = 9
OK = Response(status=200, latency_s=0.05)
HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-length": "45012",
    "date": "Sun, 15 Nov 2026 12:00:00 GMT",
    "server": "nginx",
    "cache-control": "max-age=60",
    "etag": '"5f-62a"',
    "vary": "accept-encoding",
}
OK_WITH_HEADERS = Response(status=200, latency_s=0.05, headers=HEADERS)


class _Limiters:
    """As many limiters, asked in the same order."""

    def __init__(self, names: list[str], order: list[str]) -> None:
        self.names = names
        self.order = order

    def acquire(self) -> float:
        async def rounds() -> float:
            limiters = {name: AsyncLimiter(1e12, 1.0) for name in self.names}
            for limiter in limiters.values():
                await limiter.acquire()
            start = perf_counter()
            for name in self.order:
                await limiters[name].acquire()
            return perf_counter() - start

        return asyncio.run(rounds()) / len(self.order)


class _Hosts:
    """A core that knows `count` hosts, asked one after the other."""

    def __init__(self, count: int) -> None:
        self.core = Politeness(Settings(max_rate="unlimited", min_delay_s=0.0, seed=1))
        self.names = [f"www.host-{index}.example" for index in range(count)]
        # A host is asked again when its gap is over, and before it counts as idle.
        self.step = 1.1 / min(count, ROUND)
        self.now = 0.0
        for _ in range(3):
            for name in self.names:
                self.now += 1.1 / count
                decision = self.core.reserve(name, now=self.now)
                assert isinstance(decision, Grant)
                self.core.report(decision.permit, OK, now=self.now + 0.05)
        self.order = [self.names[index % count] for index in range(ROUND)]

    def reserve(self) -> float:
        core, now, step = self.core, self.now, self.step
        permits = []
        spent = 0.0
        for name in self.order:
            now += step
            start = perf_counter()
            decision = core.reserve(name, now=now)
            spent += perf_counter() - start
            permits.append(decision.permit)  # type: ignore[union-attr]
            core.cancel(permits.pop(), now=now)
        self.now = now
        return spent / ROUND

    def reserve_report(self, response: Response = OK) -> float:
        core, now, step = self.core, self.now, self.step
        start = perf_counter()
        for name in self.order:
            now += step
            core.report(core.reserve(name, now=now).permit, response, now=now + 0.05)  # type: ignore[union-attr]
        self.now = now
        return (perf_counter() - start) / ROUND


def _timer() -> float:
    """The cost of reading the clock twice, to be taken off `reserve`."""
    spent = 0.0
    for _ in range(ROUND):
        start = perf_counter()
        spent += perf_counter() - start
    return spent / ROUND


def run() -> None:
    """Print the costs and their ratios."""
    print("Cost of one decision, ratio to aiolimiter's acquire in the same run")
    print(f"{'':50}{'µs':>8}{'ratio':>8}{'target':>8}")
    for count in (1, 100_000):
        hosts = _Hosts(count)
        gc.collect()
        gc.freeze()
        rows: dict[str, tuple[Callable[[], float], float]] = {
            "reserve": (lambda hosts=hosts: hosts.reserve() - _timer(), 1.5),
            "reserve + report": (hosts.reserve_report, 4.0),
            "reserve + report, 7 headers": (
                lambda hosts=hosts: hosts.reserve_report(OK_WITH_HEADERS),
                4.0,
            ),
        }
        limiters = _Limiters(hosts.names, hosts.order)
        for name, (measure, target) in rows.items():
            pairs = [(measure(), limiters.acquire()) for _ in range(ROUNDS)]
            ours = median(pair[0] for pair in pairs)
            ratio = median(one / other for one, other in pairs)
            label = f"{name}, {count:,} known host{'s' if count > 1 else ''}"
            print(f"{label:50}{ours * 1e6:8.2f}{ratio:8.2f}{target:8.1f}")
        gc.unfreeze()
        label = f"aiolimiter acquire, {count:,} limiter{'s' if count > 1 else ''}"
        print(f"{label:50}{limiters.acquire() * 1e6:8.2f}{1:8.2f}")


if __name__ == "__main__":
    run()
