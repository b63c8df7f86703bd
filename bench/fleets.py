"""Fleets in virtual time: every promise over many seeds, and whether planted errors are found.

    python -m bench fleets                       20 seeds of small worlds, and the planted errors
    python -m bench fleets --seeds 100           more of them
    python -m bench fleets --large               one world of 200 members, 10,000 hosts of 20 pages
                                                 and a day (`--seed 2`: another)
    python -m bench fleets --large --seeds 100   many of them, a minute each
    python -m bench fleets --all                 three large worlds, 100 small ones and the planted
                                                 errors, with the time of each
    python -m bench fleets --seed 7              one run, with what happened in it

Members are killed, stopped and woken, cut off one way or both ways, and join; the server restarts,
with and without its last second, goes away, answers slowly, loses connections in the middle of
exchanges, and is replaced by its replica; wall clocks are wrong by up to two hours. The code
of members and store is the real one, scripts included (`virtual.fleet`).

Hosts of the large world ask for a Crawl-delay of 58 minutes, so 20 pages take 19 hours, and a day
with the waits after faults. Hosts are found on two seeds, so their requests come in waves, one in
58 minutes: half of the faults come during one, the others at any time. Times are CPU time of one
core.
"""

from __future__ import annotations

import gc
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from virtual.fleet.plan import Plan
from virtual.fleet.planted import PLANTED, SMALL
from virtual.fleet.world import simulate_fleet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from virtual.fleet.plan import FleetOutcome

WHOLE = 0.99  # of the pages of a large world have to be fetched
WITHIN = 20  # seeds in which a planted error has to be found
LARGE = Plan(
    members=200,
    hosts=10_000,
    pages=20,
    shards=256,
    faults=24,
    busy_s=80_000.0,
    duration_s=2 * 86_400.0,
    crawl_delays_s=(3500.0,),  # of more than an hour: hosts would be given up
    others=0,
    host_fan_out=5000,  # a page with more would be parsed in another process, in real time
    seed_hosts=2,  # which lead to all others
    refusals=0.002,
    is_calm=True,
)


def run(options: Sequence[str] = ()) -> None:
    """Run the fleets, and print the figures."""
    parser = ArgumentParser(
        prog="python -m bench fleets",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, help="worlds to run (20 small ones, or 1 large one)")
    parser.add_argument("--seed", type=int, help="run one world, and show all its figures")
    parser.add_argument("--large", action="store_true", help="run one large world")
    parser.add_argument("--all", action="store_true", help="show everything that is promised")
    chosen = parser.parse_args(options)
    if chosen.large and chosen.seeds is not None:
        _show_many(LARGE, range(1, chosen.seeds + 1))
        return
    if chosen.large or chosen.seed is not None:
        plan = LARGE if chosen.large else SMALL
        outcome, took_s = _timed(plan, chosen.seed or 1)
        _show(chosen.seed or 1, outcome, took_s, is_whole=_is_whole(plan, outcome))
        return
    if chosen.all:
        _show_many(LARGE, range(1, 4))
    _show_many(SMALL, range(1, (100 if chosen.all else chosen.seeds or 20) + 1))
    _show_planted()


def _show_many(plan: Plan, seeds: Sequence[int]) -> None:
    sound, times_s = 0, []
    for seed in seeds:
        outcome, took_s = _timed(plan, seed)
        is_whole = _is_whole(plan, outcome)
        sound += outcome.is_sound and is_whole
        times_s.append(took_s)
        if not outcome.is_sound or not is_whole:
            _show(seed, outcome, took_s, is_whole=is_whole)
        elif plan is LARGE:
            _show_line(seed, outcome, took_s)
    size = "large" if plan is LARGE else "small"
    print(f"{sound} of {len(seeds)} {size} worlds kept every promise, {_times(times_s)}")


def _show_planted() -> None:
    for planted in PLANTED:
        times_s: list[float] = []
        found = None
        for seed in range(1, WITHIN + 1):
            with _clocked(times_s):
                outcome = planted.run(seed)
            if not outcome.is_sound:
                found = seed
                break
        said = "NOT FOUND" if found is None else f"found by seed {found}"
        print(f"{planted.breaks:4} {planted.name:50} {said:18} {_times(times_s)}", flush=True)


def _timed(plan: Plan, seed: int) -> tuple[FleetOutcome, float]:
    times_s: list[float] = []
    with _clocked(times_s):
        outcome = simulate_fleet(plan, seed=seed)
    return outcome, times_s[0]


@contextmanager
def _clocked(times_s: list[float]) -> Iterator[None]:
    """Add the CPU time of a run; the garbage collector is off, as for every run."""
    gc.collect()
    gc.disable()
    began = time.process_time()
    try:
        yield
        times_s.append(time.process_time() - began)
    finally:
        gc.enable()


def _times(times_s: Iterable[float]) -> str:
    times = list(times_s)
    return f"{sum(times) / len(times):.1f} s a seed, {max(times):.1f} s at most"


def _show_line(seed: int, outcome: FleetOutcome, took_s: float) -> None:
    print(
        f"seed {seed}: sound, {took_s:.1f} s; {outcome.records:,} pages, {outcome.requests:,} "
        f"requests, {outcome.virtual_s / 3600:.1f} virtual hours",
        flush=True,
    )


def _is_whole(plan: Plan, outcome: FleetOutcome) -> bool:
    """Return whether a large world has fetched nearly all its pages.

    A crawl whose seeds are given up because of a fault keeps its promises, and shows nothing.
    """
    return plan is SMALL or outcome.records >= plan.hosts * plan.pages * WHOLE


def _show(seed: int, outcome: FleetOutcome, took_s: float, *, is_whole: bool = True) -> None:
    said = "BROKEN" if not outcome.is_sound else "sound" if is_whole else "TOO FEW PAGES"
    print(f"seed {seed}: {said}, {took_s:.1f} s of CPU time")
    for name, value in outcome._asdict().items():
        print(f"  {name:16} {value}")
