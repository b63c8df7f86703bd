"""Measure the time of one decision and the bytes per host, next to other projects' limiters.

All take turns in short rounds of one run (`_rounds.py`), on one known key and on 100,000 keys. Each
round uses another fifth of the keys, and never the fifth that our core has used just before, so
that no limiter finds its state in the processor's caches. `limiters.py` says what each of the
others does more or less than ours.

`reserve` is the fast path: known host, slot free. Time is an argument of the core and is invented
here, so that there is no waiting. The others read a clock in every call, so the time of reading one
is added to each call of ours. `report` is where the core learns. The `slot` of the asyncio driver
does both in a context manager, and also parses the URL and measures the latency.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from time import perf_counter
from typing import TYPE_CHECKING, cast

from mannerly.politeness import Grant, Politeness, Response, Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness

from . import _figures
from ._rounds import Rounds
from .limiters import PEERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROUND = 20_000
ROUNDS = 15
KEYS = 100_000
GAP_S = 1.1  # a host is asked again when its gap is over, and long before it counts as idle
LATENCY_S = 0.05
SETTINGS = Settings(max_rate="unlimited", min_delay_s=0.0, seed=1)
OK = Response(status=200, latency_s=LATENCY_S)
HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-length": "45012",
    "date": "Sun, 15 Nov 2026 12:00:00 GMT",
    "server": "nginx",
    "cache-control": "max-age=60",
    "etag": '"5f-62a"',
    "vary": "accept-encoding",
}
OK_WITH_HEADERS = Response(status=200, latency_s=LATENCY_S, headers=HEADERS)
RESERVE, REPORT, REPORT_HEADERS = "reserve", "reserve + report", "reserve + report, 7 headers"
SLOT = "slot + report, asyncio driver"
BASE = "aiolimiter"
# What the core may cost at most, in acquires of aiolimiter.
TARGETS = {RESERVE: 1.5, REPORT: 4.0, REPORT_HEADERS: 4.0}


class _Core:
    """A politeness core with invented time, in which every request is granted at once."""

    def __init__(self) -> None:
        self._core = Politeness(SETTINGS)
        self._now = 0.0

    def reserve(self, keys: Sequence[str]) -> float:
        core, now, step = self._core, self._now, GAP_S / len(set(keys))
        spent = 0.0
        for key in keys:
            now += step
            start = perf_counter()
            decision = core.reserve(key, now=now)
            # Between the two readings lies the cost of one: the clock that ours is charged for.
            spent += perf_counter() - start
            assert isinstance(decision, Grant)
            core.cancel(decision.permit, now=now)
        self._now = now
        return spent

    def reserve_report(self, keys: Sequence[str], response: Response = OK) -> float:
        reserve = cast("Callable[..., Grant]", self._core.reserve)
        report, now, step = self._core.report, self._now, GAP_S / len(set(keys))
        start = perf_counter()
        for key in keys:
            now += step
            perf_counter()
            grant = reserve(key, now=now)
            perf_counter()
            report(grant.permit, response, now=now + LATENCY_S)
        self._now = now
        return perf_counter() - start


class _MadeUpClock:
    """The driver's clock, advanced by the caller of `slot`."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return 1_700_000_000.0 + self.at


class _Driver:
    def __init__(self) -> None:
        self._clock = _MadeUpClock()
        self._runner = asyncio.Runner()
        self._politeness = AsyncPoliteness(SETTINGS, clock=self._clock)

    def spend(self, keys: Sequence[str]) -> float:
        return self._runner.run(self._slots(keys))

    async def _slots(self, keys: Sequence[str]) -> float:
        clock, slot, step = self._clock, self._politeness.slot, GAP_S / len(set(keys))
        start = perf_counter()
        for key in keys:
            clock.at += step
            async with slot(key) as place:
                place.report(status=200)
        return perf_counter() - start

    def close(self) -> None:
        self._runner.run(self._politeness.aclose())
        self._runner.close()


def _measure(names: list[str]) -> Rounds:
    parts = [names[at : at + ROUND] for at in range(0, len(names), ROUND)]
    if len(names) == 1:
        parts = [names * ROUND]
    core, driver = _Core(), _Driver()
    peers = {name: make() for name, make in PEERS.items()}
    rivals: dict[str, Callable[[Sequence[str]], float]] = {
        RESERVE: core.reserve,
        BASE: peers[BASE].spend,
        REPORT: core.reserve_report,
        REPORT_HEADERS: lambda keys: core.reserve_report(keys, OK_WITH_HEADERS),
        SLOT: driver.spend,
        **{name: peer.spend for name, peer in peers.items()},
    }
    for part in parts:
        for _ in range(3):
            core.reserve_report(part)
            driver.spend(part)
        for peer in peers.values():
            peer.spend(part)
    gc.collect()
    gc.freeze()
    turns = {name: _turn(spend, parts, shift) for shift, (name, spend) in enumerate(rivals.items())}
    rounds = Rounds(turns, ROUNDS)
    gc.unfreeze()
    for closing in (driver, *peers.values()):
        closing.close()
    return rounds


def _turn(
    spend: Callable[[Sequence[str]], float], parts: list[list[str]], shift: int
) -> Callable[[int], float]:
    """A measure that takes the next part of the keys in each round."""
    return lambda number: spend(parts[(number + shift) % len(parts)]) / ROUND


def _bytes_a_key(names: list[str]) -> dict[str, float]:
    """Return the bytes that one use of each key leaves behind, without the key's name."""
    peers = {name: make() for name, make in PEERS.items()}
    uses = {REPORT: _Core().reserve_report, **{name: peer.spend for name, peer in peers.items()}}
    sizes = {}
    for name, use in uses.items():
        gc.collect()
        tracemalloc.start()
        use(names)
        gc.collect()
        sizes[name] = tracemalloc.get_traced_memory()[0] / len(names)
        tracemalloc.stop()
    for peer in peers.values():
        peer.close()
    return sizes


def run() -> None:
    """Print and write the costs, their ratios and the sizes."""
    names = [f"www.host-{index}.example" for index in range(KEYS)]
    sizes = _bytes_a_key(names)
    figures: dict[str, object] = {"bytes a key": sizes}
    for count in (1, KEYS):
        rounds = _measure(names[:count])
        known = f"{count:,} known key{'s' if count > 1 else ''}"
        print(f"{known:34}{'µs':>8}{'× reserve':>11}{'× ' + BASE:>14}{'target':>8}")
        rows = {}
        for name in (*TARGETS, SLOT, *PEERS):
            row = (rounds.microseconds(name), rounds.ratio(name, RESERVE), rounds.ratio(name, BASE))
            rows[name] = dict(zip(("us", "to_reserve", "to_aiolimiter"), row, strict=True))
            target = f"{TARGETS[name]:8.1f}" if name in TARGETS else ""
            print(f"{name:34}{row[0]:8.2f}{row[1]:11.2f}{row[2]:14.2f}{target}")
        figures[known] = rows
        print()
    print("bytes a key: " + ", ".join(f"{name} {size:,.0f}" for name, size in sizes.items()))
    print(f"\nwritten to {_figures.write('cost', figures)}")


if __name__ == "__main__":
    run()
