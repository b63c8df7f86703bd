"""How close to a hidden limit, at what price: our strategies and the rivals' laws, in one run.

Two sets of servers (`mannerly.simulation.tuning`): the one that constants were tuned on, for every
controller, and the weak spots and unseen limits, for our own. Figures are means over seeds.
"""

from __future__ import annotations

import argparse
from math import isfinite, nan
from multiprocessing import get_context
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from bench.rivals import RIVALS
from mannerly.simulation import run as simulate
from mannerly.simulation.tuning import TUNING_SERVERS, UNSEEN_SERVERS, tuning_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mannerly.simulation import Result

OURS = ("learned", "aimd", "linear", "gradient", "fixed")
CONTROLLERS = (*OURS, *RIVALS)
PROCESSES = 2
CHANGE_S = 300  # when the limit of a rise or drop moves


class Row(NamedTuple):
    """One run, or the mean of several."""

    util: float
    steady_util: float
    steady_rejected: float
    regret: float
    p95_s: float
    convergence_s: float
    refused: float
    rise_s: float
    drop_refused: float
    violations: float


def run(options: Sequence[str] = ()) -> None:
    """Print the tables."""
    wanted = parse(options)
    controllers = tuple(wanted.only or CONTROLLERS)
    if wanted.set in ("tuning", "all"):
        rows = measure(controllers, TUNING_SERVERS, wanted.seeds)
        print(f"Tuning set: {len(TUNING_SERVERS)} servers, mean of {wanted.seeds} seeds\n")
        print_means(controllers, rows)
        print("\nSteady util / steady rejected % (p95 latency of the knee)\n")
        print_matrix(controllers, rows)
        if len(controllers) == 1:
            print()
            print_details(controllers[0], TUNING_SERVERS, rows)
    ours = tuple(name for name in controllers if wanted.only or name == "learned")
    if wanted.set in ("unseen", "all"):
        rows = measure(ours, UNSEEN_SERVERS, wanted.seeds)
        for name in ours:
            print(f"\nWeak spots and unseen limits: {name}\n")
            print_details(name, UNSEEN_SERVERS, rows)


def parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench strategies")
    parser.add_argument("--only", action="append", choices=CONTROLLERS, help="repeatable")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", choices=("tuning", "unseen", "all"), default="all")
    return parser.parse_args(list(options))


def measure(
    controllers: Iterable[str], servers: dict[str, str], seeds: int
) -> dict[tuple[str, str], Row]:
    """The mean row of every controller on every server."""
    pairs = [(controller, server) for controller in controllers for server in servers]
    tasks = [(c, servers[s], seed) for c, s in pairs for seed in range(1, seeds + 1)]
    with get_context("fork").Pool(PROCESSES) as pool:
        rows = pool.starmap(measure_one, tasks, chunksize=1)
    return {
        pair: Row(*map(mean, zip(*rows[i * seeds : (i + 1) * seeds], strict=True)))
        for i, pair in enumerate(pairs)
    }


def measure_one(controller: str, spec: str, seed: int) -> Row:
    rival = RIVALS.get(controller)
    settings = tuning_settings("fixed" if rival else controller)
    result = simulate(settings, spec, seed=seed, core=rival() if rival else None)
    return row_of(result, spec)


def row_of(result: Result, spec: str) -> Row:
    moves = spec.startswith("steps:")
    return Row(
        util=result.util,
        steady_util=result.steady_util,
        steady_rejected=result.steady_rejected,
        regret=result.regret,
        p95_s=result.p95_latency_s,
        convergence_s=result.convergence_s,
        refused=result.refused,
        rise_s=result.reached_after(CHANGE_S) if moves else nan,
        drop_refused=result.refused_between(CHANGE_S, CHANGE_S + 30) if moves else nan,
        violations=result.gap_violations
        + result.retry_after_violations
        + result.half_open_violations
        + result.in_flight_violations,
    )


def mean(values: Iterable[float]) -> float:
    """Infinite as soon as one run never got there."""
    return fmean(values)


def print_means(controllers: Iterable[str], rows: dict[tuple[str, str], Row]) -> None:
    head = "| controller | steady util | steady rejected | regret | worst util | worst rejected |"
    print(f"{head} violations |\n|---|---|---|---|---|---|---|")
    for controller in controllers:
        own = [row for (name, _), row in rows.items() if name == controller]
        print(
            f"| {controller} | {fmean(r.steady_util for r in own):.3f} "
            f"| {100 * fmean(r.steady_rejected for r in own):.2f} % "
            f"| {fmean(r.regret for r in own):.3f} "
            f"| {min(r.steady_util for r in own):.3f} "
            f"| {100 * max(r.steady_rejected for r in own):.1f} % "
            f"| {sum(r.violations for r in own):.0f} |"
        )


def print_matrix(controllers: Sequence[str], rows: dict[tuple[str, str], Row]) -> None:
    print("| server | " + " | ".join(controllers) + " |")
    print("|---|" + "---|" * len(controllers))
    for server in dict.fromkeys(server for _, server in rows):
        cells = []
        for controller in controllers:
            row = rows[controller, server]
            cell = f"{row.steady_util:.2f}/{100 * row.steady_rejected:.2f}"
            cells.append(f"{cell} ({row.p95_s:.2f} s)" if server.startswith("knee") else cell)
        print(f"| {server} | " + " | ".join(cells) + " |")


def print_details(
    controller: str, servers: dict[str, str], rows: dict[tuple[str, str], Row]
) -> None:
    print(
        "| server | util | steady util | steady rejected | regret | refused | converged | p95 "
        "| 85 % after a change | refused in 30 s after it |\n" + "|---" * 10 + "|"
    )
    for server in servers:
        row = rows[controller, server]
        cells = (
            f"{row.util:.3f}",
            f"{row.steady_util:.3f}",
            f"{100 * row.steady_rejected:.2f} %",
            f"{row.regret:.3f}",
            f"{row.refused:.1f}",
            seconds(row.convergence_s, 0),
            seconds(row.p95_s, 2),
            seconds(row.rise_s, 0),
            f"{row.drop_refused:.1f}" if isfinite(row.drop_refused) else "",
        )
        print(f"| {server} | " + " | ".join(cells) + " |")


def seconds(value: float, digits: int) -> str:
    if value != value:
        return ""
    return f"{value:.{digits}f} s" if isfinite(value) else "never"
