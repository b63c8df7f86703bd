"""Measure how much of a hidden limit each strategy uses, and how many refusals that costs.

There are two sets of servers in `bench.tuning`. The set that constants were tuned on
is run for our strategies and for those of other projects; the set with weak spots and unseen limits
for ours only. The third, `bench.families`, is run with the default settings. Figures are means over
seeds.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from math import isfinite, isnan, nan
from multiprocessing import get_context
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from bench.families import FAMILIES, OTHERS, Trial
from bench.rivals import RIVALS
from bench.tuning import TUNING_SERVERS, UNSEEN_SERVERS, tuning_settings
from mannerly.politeness import Settings
from mannerly.simulation import parse_server, run_many

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mannerly.simulation import Result

OURS = ("learned", "aimd", "linear", "gradient", "fixed")
CONTROLLERS = (*OURS, *RIVALS)
PROCESSES = 2
DURATION_S = 900.0


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
    wakeups: float
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
    if wanted.set in ("families", "all"):
        trials = FAMILIES | OTHERS
        rows = measure(ours, trials, wanted.seeds)
        for name in ours:
            for title, part in (("Families", FAMILIES), ("Other limits", OTHERS)):
                print(f"\n{title}, default settings: {name}\n")
                print_means([name], {key: row for key, row in rows.items() if key[1] in part})
                print()
                print_details(name, part, rows)


def parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench strategies")
    parser.add_argument("--only", action="append", choices=CONTROLLERS, help="repeatable")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", choices=("tuning", "unseen", "families", "all"), default="all")
    return parser.parse_args(list(options))


def measure(
    controllers: Iterable[str], servers: Mapping[str, str | Trial], seeds: int
) -> dict[tuple[str, str], Row]:
    """Return the mean row of every controller on every server."""
    pairs = [(controller, server) for controller in controllers for server in servers]
    tasks = [(controller, servers[server], seeds) for controller, server in pairs]
    with get_context("fork").Pool(PROCESSES) as pool:
        rows = pool.starmap(measure_pair, tasks, chunksize=1)
    return dict(zip(pairs, rows, strict=True))


def measure_pair(controller: str, server: str | Trial, seeds: int) -> Row:
    rival = RIVALS.get(controller)
    strategy = "fixed" if rival else controller
    if isinstance(server, Trial):
        spec, duration_s, changed = server
        settings = Settings(strategy=strategy, **changed)
    else:
        spec, duration_s, settings = server, DURATION_S, tuning_settings(strategy)
    specs, all_seeds = {spec: spec}, range(1, seeds + 1)
    results = run_many(settings, specs, all_seeds, duration_s=duration_s, make_core=rival)[spec]
    rows = [row_of(result, *changes(spec)) for result in results]
    return Row(*map(fmean, zip(*rows, strict=True)))


def changes(spec: str) -> tuple[float, float]:
    """Return when the limit last rises and first drops by its schedule; nan if it does not."""
    steps = getattr(parse_server(spec), "steps", []) if spec.startswith("steps:") else []
    pairs = list(pairwise(steps))
    rises = [after[0] for before, after in pairs if after[1] > before[1]]
    drops = [after[0] for before, after in pairs if after[1] < before[1]]
    return rises[-1] if rises else nan, drops[0] if drops else nan


def row_of(result: Result, rise_at: float, drop_at: float) -> Row:
    return Row(
        util=result.util,
        steady_util=result.steady_util,
        steady_rejected=result.steady_rejected,
        regret=result.regret,
        p95_s=result.p95_latency_s,
        convergence_s=result.convergence_s,
        refused=result.refused,
        rise_s=nan if isnan(rise_at) else result.reached_after(rise_at),
        drop_refused=nan if isnan(drop_at) else result.refused_between(drop_at, drop_at + 30),
        wakeups=result.wakeups / max(1, len(result.starts)),
        violations=result.gap_violations
        + result.retry_after_violations
        + result.half_open_violations
        + result.in_flight_violations,
    )


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
    controller: str, servers: Iterable[str], rows: dict[tuple[str, str], Row]
) -> None:
    print(
        "| server | util | steady util | steady rejected | regret | refused | converged | p95 "
        "| 85 % of a raised limit | refused in 30 s after a drop "
        "| wake-ups per start |\n" + "|---" * 11 + "|"
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
            f"{row.wakeups:.2f}",
        )
        print(f"| {server} | " + " | ".join(cells) + " |")


def seconds(value: float, digits: int) -> str:
    if isnan(value):
        return ""
    return f"{value:.{digits}f} s" if isfinite(value) else "never"
