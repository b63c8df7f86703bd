"""Measure how much of a hidden limit each strategy uses, and how many refusals that costs.

There are two sets of servers in `bench.tuning`. The set that constants were tuned on
is run for our strategies and for those of other projects; the set with weak spots and unseen limits
for ours only. Those of `bench.families` and `bench.fresh` are run with the default settings.
Figures are means over seeds.

With `--defaults` the tuning set is the part of it that is within reach of the default settings, and
every set is run with them: the figures that a user of mannerly gets.

    python -m bench strategies --only learned --defaults
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from math import inf, isfinite, isnan, nan
from multiprocessing import get_context
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.families import FAMILIES, OTHERS, Trial
from bench.fresh import FRESH
from bench.rivals import RIVALS
from bench.tuning import REACHABLE_SERVERS, TUNING_SERVERS, UNSEEN_SERVERS, tuning_settings
from mannerly.politeness import Settings
from mannerly.simulation import parse_server
from mannerly.simulation import run as run_one

if TYPE_CHECKING:
    import random
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
    ours = tuple(name for name in controllers if wanted.only or name == "learned")
    if wanted.set in ("tuning", "all") and not wanted.defaults:
        rows = measure(controllers, TUNING_SERVERS, wanted.seeds)
        print(f"Tuning set: {len(TUNING_SERVERS)} servers, mean of {wanted.seeds} seeds\n")
        print_means(controllers, rows)
        print("\nSteady util / steady rejected % (p95 latency of the knee)\n")
        print_matrix(controllers, rows)
        if len(controllers) == 1:
            print()
            print_details(controllers[0], TUNING_SERVERS, rows)
    if wanted.set in ("unseen", "all") and not wanted.defaults:
        rows = measure(ours, UNSEEN_SERVERS, wanted.seeds)
        for name in ours:
            print(f"\nWeak spots and unseen limits: {name}\n")
            print_details(name, UNSEEN_SERVERS, rows)
    for title, servers in default_sets(wanted.set, with_specs=wanted.defaults).items():
        rows = measure(ours, servers, wanted.seeds)
        for name in ours:
            print(f"\n{title}, default settings: {name}\n")
            print_means([name], rows)
            print()
            print_details(name, servers, rows)


def default_sets(name: str, *, with_specs: bool) -> dict[str, dict[str, Trial]]:
    """Return the sets that are run with the default settings, by their titles."""
    sets = {
        "tuning": {"Tuning set within reach": trials(REACHABLE_SERVERS)},
        "unseen": {"Weak spots and unseen limits": trials(UNSEEN_SERVERS)},
        "families": {"Families": FAMILIES, "Other limits": OTHERS},
        "fresh": {"Fresh": FRESH},
    }
    if not with_specs:
        del sets["tuning"], sets["unseen"]
    return {
        title: servers
        for key, titles in sets.items()
        if name in (key, "all")
        for title, servers in titles.items()
    }


def trials(specs: Mapping[str, str]) -> dict[str, Trial]:
    """Return specs as trials with the default settings."""
    return {name: Trial(spec) for name, spec in specs.items()}


def parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench strategies")
    parser.add_argument("--only", action="append", choices=CONTROLLERS, help="repeatable")
    parser.add_argument("--seeds", type=int, default=5)
    sets = ("tuning", "unseen", "families", "fresh", "all")
    parser.add_argument("--set", choices=sets, default="all")
    parser.add_argument("--defaults", action="store_true", help="the shipped settings everywhere")
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
    results = []
    for seed in range(1, seeds + 1):
        core = rival() if rival else None
        if isinstance(server, Trial):
            spec, duration_s, changed = server
            settings = Settings(strategy=strategy, **changed)
            model = UpToCeiling(parse_server(spec), settings.rate_ceiling, duration_s)
            results.append(run_one(settings, model, duration_s, seed, core=core))
        else:
            spec, settings = server, tuning_settings(strategy)
            results.append(run_one(settings, spec, DURATION_S, seed, core=core))
    rows = [row_of(result, *changes(spec)) for result in results]
    return Row(*map(fmean, zip(*rows, strict=True)))


class UpToCeiling:
    """A server whose stated limit is the smaller of its own and the client's ceiling.

    The burst that a server allows in its first second is used up at the ceiling.
    """

    def __init__(self, server: Any, ceiling: float, duration_s: float) -> None:
        self._server = server
        self._ceiling = ceiling
        self._seconds = int(duration_s)
        self.request = server.request

    def reset(self, rng: random.Random) -> None:
        self._server.reset(rng)
        self._total = [0.0]
        burst = inf
        for second in range(self._seconds):
            allowed = self._server.allowed(second, second + 1.0)
            used = min(self._ceiling, allowed + (burst if second else 0.0))
            burst = max(0.0, min(burst, allowed + (burst if second else 0.0) - used))
            self._total.append(self._total[-1] + used)

    def allowed(self, start: float, end: float) -> float:
        """Return what may be sent between two whole seconds."""
        return self._total[int(end)] - self._total[int(start)]


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
