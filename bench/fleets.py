"""Fleets in virtual time: every promise over many seeds, and whether planted errors are found.

    python -m bench fleets                       20 seeds of small worlds, and the planted errors
    python -m bench fleets --seeds 100           more of them
    python -m bench fleets --large               200 members, 10,000 hosts of 20 pages, most of a
                                                 day, one seed (`--seed 2`: another)
    python -m bench fleets --seed 7              one run, with what happened in it

Members are killed, stopped and woken, cut off one way or both ways, and join; the server restarts,
with and without its last second, and goes away; wall clocks are wrong by up to two hours. The code
of members and store is the real one, scripts included (`mannerly.simulation.fleet`).
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from mannerly.simulation.fleet.plan import Plan
from mannerly.simulation.fleet.planted import PLANTED, SMALL
from mannerly.simulation.fleet.world import simulate_fleet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.simulation.fleet.plan import FleetOutcome

WITHIN = 20  # seeds in which a planted error has to be found
LARGE = Plan(
    members=200,
    hosts=10_000,
    pages=20,
    shards=256,
    faults=24,
    busy_s=60_000.0,
    crawl_delays_s=(0.0, 5.0, 25.0, 600.0, 2400.0),
    refusals=0.002,
    is_calm=True,
)


def run(options: Sequence[str] = ()) -> None:
    """Run the fleets, and print the figures."""
    parser = ArgumentParser(prog="python -m bench fleets")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--large", action="store_true")
    chosen = parser.parse_args(options)
    if chosen.large or chosen.seed is not None:
        plan = LARGE if chosen.large else SMALL
        _show(chosen.seed or 1, *_timed(plan, chosen.seed or 1))
        return
    sound = 0
    cpu_s = 0.0
    for seed in range(1, chosen.seeds + 1):
        outcome, took_s = _timed(SMALL, seed)
        sound += outcome.is_sound
        cpu_s += took_s
        if not outcome.is_sound:
            _show(seed, outcome, took_s)
    print(f"{sound} of {chosen.seeds} seeds kept every promise, {cpu_s / chosen.seeds:.1f} s each")
    for planted in PLANTED:
        seed = planted.found_by(range(1, WITHIN + 1))
        print(f"{planted.name:40} {'NOT FOUND' if seed is None else f'found by seed {seed}'}")


def _timed(plan: Plan, seed: int) -> tuple[FleetOutcome, float]:
    began = time.process_time()
    return simulate_fleet(plan, seed=seed), time.process_time() - began


def _show(seed: int, outcome: FleetOutcome, took_s: float) -> None:
    print(f"seed {seed}: {'sound' if outcome.is_sound else 'BROKEN'}, {took_s:.1f} s of CPU time")
    for name, value in outcome._asdict().items():
        print(f"  {name:16} {value}")
