"""`mannerly simulate`: run a strategy against a simulated server, in virtual time.

It reads the options, calls `mannerly.simulation.run` and prints the result.
"""

from __future__ import annotations

from dataclasses import replace
from math import isinf, isnan
from pathlib import Path  # noqa: TC003 - the command line reads the annotations
from typing import TYPE_CHECKING, Annotated, NamedTuple

import click

from mannerly.crawler.options.option import SECONDS, Option, ProjectUse, declaration
from mannerly.politeness.errors import SettingsError
from mannerly.politeness.settings import Settings

from .terminal import fail, safe_term, show

if TYPE_CHECKING:
    from mannerly.simulation import Result
    from mannerly.simulation.suites import Law, Standing


_DEFAULTS = Settings()
DEFAULT_S = 900.0


def _setting(name: str) -> Option:
    """Return the declaration of an option that is a setting of the politeness core."""
    facts = Settings.__dataclass_fields__[name].metadata
    metavar = SECONDS if name.endswith("_s") else None
    return Option(facts["doc"], allowed=facts["range"], metavar=metavar)


def simulate(
    *,
    server: Annotated[
        str,
        declaration(
            "Server to simulate, such as bucket:5:10 (5 requests/s, bursts of 10). "
            "All forms are in docs/reference/simulation.md, and an invalid SPEC lists them.",
            metavar="SPEC",
            project_use=ProjectUse.NONE,  # it may name code
        ),
    ] = "bucket:5:10",
    strategy: Annotated[str, _setting("strategy")] = _DEFAULTS.strategy,
    seconds: Annotated[
        float, declaration("Duration in virtual seconds.", low=1, high=604_800, metavar="S")
    ] = DEFAULT_S,
    seed: Annotated[
        int,
        declaration("Random seed: the same one repeats a run exactly.", low=0, metavar="N"),
    ] = 1,
    max_rate: Annotated[float | str, _setting("max_rate")] = _DEFAULTS.max_rate,
    start_delay: Annotated[float, _setting("start_delay_s")] = _DEFAULTS.start_delay_s,
    max_concurrency: Annotated[int, _setting("max_concurrency")] = _DEFAULTS.max_concurrency,
    compare: Annotated[bool, declaration("Run all strategies and print one table.")] = False,
    suite: Annotated[
        str | None,
        declaration(
            "Run a suite of servers and print one table: usual, moving, or FILE.py with a dict "
            "SERVERS of your own (FILE.py:NAME for another dict).",
            metavar="NAME",
            is_order=True,
            project_use=ProjectUse.NONE,  # it may name code
        ),
    ] = None,
    law: Annotated[
        str | None,
        declaration(
            "With --suite: run a control law of your own beside the strategy, FILE.py:NAME. It is "
            "called with the settings, and has the methods reserve and report.",
            metavar="FILE.py:NAME",
            is_order=True,
            project_use=ProjectUse.NONE,
        ),
    ] = None,
    seeds: Annotated[
        int,
        declaration("With --suite: runs of each server, with this many seeds.", low=1, high=1000),
    ] = 3,
    json: Annotated[bool, declaration("Print JSON.")] = False,
    plot: Annotated[
        Path | None, declaration("Also draw the run as an SVG file.", metavar="FILE", is_order=True)
    ] = None,
) -> None:
    """Run a strategy against a simulated server.

    The server has a limit that the strategy does not know. Time is virtual.
    """
    plan = SimulationPlan(server, seconds, seed)
    try:
        settings = replace(
            _DEFAULTS,
            strategy=strategy,
            max_rate=max_rate,  # type: ignore[arg-type]  # its range is checked, by both
            start_delay_s=start_delay,
            max_concurrency=max_concurrency,
        )
    except SettingsError as error:
        fail(str(error))
    if law and not suite:
        fail("--law runs on a suite: add --suite usual")
    if suite:
        if plot:
            fail("--plot draws one run: leave out --suite")
        bench = SuitePlan(suite, law, range(seed, seed + seeds), _given_seconds(seconds))
        _stand(bench, settings, compare=compare, json=json)
        return
    if compare:
        if plot:
            fail("--plot draws one run: leave out --compare")
        _compare(plan, settings, json=json)
        return
    result = _run(plan, settings)
    if plot:
        _draw(plot, plan.title(strategy), result)
    if json:
        _print_json(plan.described(result, strategy))
    else:
        _show(plan.title(strategy), result, settings)


class SimulationPlan(NamedTuple):
    """A run without its strategy: server, duration and random seed."""

    server: str
    seconds: float
    seed: int

    def title(self, strategy: str) -> str:
        """Return the title of a chart."""
        return f"{strategy} against {safe_term(self.server)}, {self.seconds:g} s, seed {self.seed}"

    def described(self, result: Result, strategy: str) -> dict[str, object]:
        """Return the figures of a result with the server, the strategy and the seed."""
        about = {"server": self.server, "strategy": strategy, "seed": self.seed}
        return {**about, **result.to_dict()}


class SuitePlan(NamedTuple):
    """A run of a suite: its name, a law beside the strategies, seeds, seconds if they are set."""

    suite: str
    law: str | None
    seeds: range
    seconds: float | None


def _given_seconds(seconds: float) -> float | None:
    """Return the seconds of each run; None for the default, where a server may have its own."""
    return None if seconds == DEFAULT_S else seconds


def _stand(plan: SuitePlan, settings: Settings, *, compare: bool, json: bool) -> None:
    import sys

    from mannerly.politeness.settings import STRATEGIES
    from mannerly.simulation import SpecError
    from mannerly.simulation.suites import SuiteError, law_named, ours, overall, stand, suite_named

    sys.path.append("")
    names = STRATEGIES if compare else (settings.strategy,)
    try:
        servers = suite_named(plan.suite)
        laws: dict[str, tuple[Law, Settings]] = {
            name: (ours, replace(settings, strategy=name)) for name in names
        }
        if plan.law is not None:
            laws[plan.law.rpartition(":")[2]] = (law_named(plan.law), settings)
        found = {
            name: {
                label: stand(server, law, own, plan.seeds, plan.seconds)
                for label, server in servers.items()
            }
            for name, (law, own) in laws.items()
        }
    except (SuiteError, SpecError) as error:
        fail(str(error))
    totals = {name: overall(list(rows.values())) for name, rows in found.items()}
    if json:
        _print_json(
            {
                name: {
                    "servers": {label: _plain(row) for label, row in rows.items()},
                    "mean": _plain(totals[name][0]),
                    "worst_limit_used": _plain_number(totals[name][1]),
                }
                for name, rows in found.items()
            }
        )
        return
    show(f"suite {safe_term(plan.suite)}, seeds {plan.seeds[0]} to {plan.seeds[-1]}\n")
    width = max(len("worst limit used"), *map(len, servers)) + 2
    click.echo(" " * width + "".join(f"{safe_term(name):>24}" for name in found))
    click.echo(" " * width + f"{'limit used, refused':>24}" * len(found))
    for label in servers:
        row = [_cell(rows[label]) for rows in found.values()]
        click.echo(f"{safe_term(label):{width}}" + "".join(f"{cell:>24}" for cell in row))
    lines = {
        "mean": [_cell(mean) for mean, _ in totals.values()],
        "worst limit used": [_number(worst, ".3f") for _, worst in totals.values()],
        "regret": [_number(mean.regret, ".3f") for mean, _ in totals.values()],
        "rules broken": [str(mean.broken) for mean, _ in totals.values()],
    }
    click.echo()
    for label, cells in lines.items():
        click.echo(f"{label:{width}}" + "".join(f"{cell:>24}" for cell in cells))


def _cell(row: Standing) -> str:
    return f"{_number(row.limit_used, '.3f')} {_number(100 * row.refused, '8.2f', ' %')}"


def _plain(row: Standing) -> dict[str, object]:
    return {name: _plain_number(value) for name, value in row._asdict().items()}


def _plain_number(value: float) -> float | None:
    return None if isnan(value) or isinf(value) else value


def _run(plan: SimulationPlan, settings: Settings) -> Result:
    import sys

    from mannerly.simulation import SpecError, run
    from mannerly.simulation.spec import names_module

    if names_module(plan.server):  # it may be in the working directory, but must hide no other one
        sys.path.append("")
    try:
        return run(settings, plan.server, plan.seconds, plan.seed)
    except SpecError as error:
        fail(str(error))


def _compare(plan: SimulationPlan, settings: Settings, *, json: bool) -> None:
    from mannerly.politeness.settings import STRATEGIES

    results = {name: _run(plan, replace(settings, strategy=name)) for name in STRATEGIES}
    if json:
        _print_json({name: plan.described(result, name) for name, result in results.items()})
        return
    show(f"{plan.server}, {plan.seconds:g} s, seed {plan.seed}\n")
    names = [name for name, _ in _figures(next(iter(results.values())))]
    click.echo(f"{'':10}" + "".join(f"{name:>18}" for name in names))
    for strategy, result in results.items():
        cells = "".join(f"{value:>18}" for _, value in _figures(result))
        click.echo(f"{strategy:10}{cells}")


def _show(title: str, result: Result, settings: Settings) -> None:
    import os
    import shutil
    import sys

    from mannerly.simulation.chart import plot_text

    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size().columns
    click.echo(plot_text(result, title, width=width, color=color), color=color or None)
    click.echo()
    for name, value in _figures(result):
        click.echo(f"  {name:<18}{value:>10}")
    limit = result.timeline[-1].allowed
    if limit > settings.rate_ceiling:
        click.echo(
            f"--max-rate is {settings.rate_ceiling:g} requests/s, below the server's limit: "
            f"with --max-rate {limit * 1.5:.0f} the strategy could reach it.",
            err=True,
        )


def _figures(result: Result) -> list[tuple[str, str]]:
    """Return the most important figures, with their names."""
    from mannerly.simulation.suites import broken

    return [
        ("limit used", _number(result.steady_util, ".3f")),
        ("refused", _number(100 * result.steady_rejected, ".2f", " %")),
        ("regret", _number(result.regret, ".3f")),
        ("85 % after", _number(result.convergence_s, ".0f", " s")),
        ("p95 latency", _number(result.p95_latency_s, ".2f", " s")),
        ("rules broken", str(broken(result))),
    ]


def _number(value: float, form: str, unit: str = "") -> str:
    if isnan(value):
        return "unknown"
    return "never" if isinf(value) else f"{value:{form}}{unit}"


def _print_json(value: dict[str, object]) -> None:
    from json import dumps

    click.echo(dumps(value, allow_nan=False))


def _draw(path: Path, title: str, result: Result) -> None:
    from mannerly.simulation.chart import plot_svg

    try:
        path.write_text(plot_svg(result, title), encoding="utf-8")
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}")
