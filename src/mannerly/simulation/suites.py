"""A test bed: many servers, one law or several, one table.

    usual       a server of each kind of limit that can be named by a spec
    moving      limits that change, outages, errors: what a law has to get over
    FILE.py     your own: `SERVERS`, a dict from names to servers; FILE.py:NAME for another dict

A server of a suite is a spec (`spec`), a class or function without arguments (`servers`), or a
tuple of one of these with the virtual seconds and the settings that it needs.

A **law** is an object with the core's methods `reserve` and `report` (`laws` has the beginning of
one), made by a class or function that is called with the `Settings`, or with nothing. Every law
gets the same servers with the same seeds, and is judged by what the servers saw.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mannerly.politeness import Settings

from .run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .result import Result
    from .run import Controller
    from .servers import Server

Law: TypeAlias = "Callable[[Settings, int], Controller | None]"

DURATION_S = 900.0
SERVERS = "SERVERS"  # the name that a file's dict has by default

SUITES: dict[str, dict[str, str]] = {
    "usual": {
        "bucket, 5/s": "bucket:5:10",
        "bucket, 5/s, Retry-After": "bucket:5:10+retry-after",
        "bucket, 1 every 2 s": "bucket:0.5:5",
        "bucket, announced": "bucket:5:10+headers",
        "60 a minute": "fixed:60:60",
        "60 a minute, Retry-After": "fixed:60:60+retry-after",
        "100 in any 20 s": "sliding:100:20",
        "2 at once": "concurrency:2:0.4",
        "2 workers, a queue": "knee:2:0.4",
        "ban of 30 s": "ban:4:4:30",
        "ban that grows": "extending-ban:4:4:30",
    },
    "moving": {
        "rises to 8/s": "steps:2@0,8@300:5",
        "falls to 1.5/s": "steps:6@0,1.5@450:6",
        "falls and rises": "steps:6@0,1.5@300,6@600:5",
        "1 % errors": "bucket:5:10+noise=0.01",
        "pauses asked for": "bucket:5:10+pauses=0.01:2-10",
        "a minute of 503": "bucket:5:10+outage=300-360",
        "a minute of silence": "bucket:5:10+hang=300-360",
    },
}


class SuiteError(ValueError):
    """A suite or a law that cannot be used; the message says what to write."""


class SuiteServer(NamedTuple):
    """A server of a suite, and how it is run."""

    server: str | Callable[[], Server]
    duration_s: float = DURATION_S
    settings: Mapping[str, Any] = {}


class Standing(NamedTuple):
    """The figures of a law on one server, the mean of all seeds, or on all servers of a suite."""

    limit_used: float
    refused: float
    regret: float
    reached_after_s: float
    broken: int


def suite_named(name: str) -> dict[str, SuiteServer]:
    """Return the servers of a suite.

    Raises:
        SuiteError: there is no such suite.
    """
    found: Mapping[str, object] | None = SUITES.get(name)
    if found is None:
        place, _, dictionary = name.partition(".py:")
        if not (dictionary or name.endswith(".py")):
            raise SuiteError(f"there is no suite {name!r}: {', '.join(SUITES)}, or FILE.py")
        path = f"{place}.py" if dictionary else name
        wanted = dictionary or SERVERS
        found = getattr(_loaded(Path(path)), wanted, None)
        if not isinstance(found, dict) or not found:
            raise SuiteError(f"{path} has no dict {wanted} with servers by their names")
    return {str(label): _server(str(label), value) for label, value in found.items()}


def law_named(name: str) -> Law:
    """Return the law FILE.py:NAME.

    Raises:
        SuiteError: there is none.
    """
    path, colon, wanted = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise SuiteError(f"{name!r} is not FILE.py:NAME")
    make = getattr(_loaded(Path(path)), wanted, None)
    if not callable(make):
        raise SuiteError(f"{path} has no class or function {wanted}")
    takes_settings = bool(inspect.signature(make).parameters)
    probe = make(Settings()) if takes_settings else make()
    if not all(callable(getattr(probe, method, None)) for method in ("reserve", "report")):
        raise SuiteError(f"{name} makes no object with the methods reserve and report")

    def law(settings: Settings, seed: int) -> Controller:
        made: Controller = make(replace(settings, seed=seed)) if takes_settings else make()
        return made

    return law


def ours(settings: Settings, seed: int) -> Controller | None:  # noqa: ARG001 - a `Law`
    """Stand for the politeness core itself, with the strategy of the settings."""
    return None


def stand(
    entry: SuiteServer, law: Law, settings: Settings, seeds: Iterable[int], duration_s: float | None
) -> Standing:
    """Run a law against one server with every seed.

    Raises:
        SpecError: the server's spec is wrong.
    """
    own = replace(settings, **entry.settings)
    results = []
    for seed in seeds:
        server = entry.server if isinstance(entry.server, str) else entry.server()
        core = law(own, seed)
        results.append(run(own, server, duration_s or entry.duration_s, seed, core=core))
    return Standing(
        _mean([each.steady_util for each in results]),
        _mean([each.steady_rejected for each in results]),
        _mean([each.regret for each in results]),
        _mean([each.convergence_s for each in results]),
        sum(map(broken, results)),
    )


def overall(standings: Sequence[Standing]) -> tuple[Standing, float]:
    """Return the mean standing over servers, and the least part of a limit that was used."""
    mean = Standing(
        _mean([each.limit_used for each in standings]),
        _mean([each.refused for each in standings]),
        _mean([each.regret for each in standings]),
        _mean([each.reached_after_s for each in standings]),
        sum(each.broken for each in standings),
    )
    used = [each.limit_used for each in standings if not isnan(each.limit_used)]
    return mean, min(used, default=nan)


def broken(result: Result) -> int:
    """Return how many promises were broken in a run."""
    return (
        result.gap_violations
        + result.retry_after_violations
        + result.half_open_violations
        + result.in_flight_violations
    )


def _server(label: str, value: object) -> SuiteServer:
    if isinstance(value, tuple):
        return SuiteServer(*value)
    if isinstance(value, str) or callable(value):
        return SuiteServer(value)
    raise SuiteError(f"{label!r} is neither a spec nor a class nor a tuple of server and seconds")


def _mean(values: list[float]) -> float:
    known = [value for value in values if not isnan(value)]
    return fmean(known) if known else nan


def _loaded(path: Path) -> object:
    if not path.is_file():
        raise SuiteError(f"there is no file {path}")
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(f"mannerly_suite_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise SuiteError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module
