"""Measure the start: importing the library, and `mannerly --help`.

Each row is the best of twenty runs in new processes, with warm caches; the rows take turns, so that
other load affects all of them. The time above that of a bare interpreter is ours and that of our
dependencies. Wall time is what a person waits, CPU time what a loop of short processes costs. The
ten slowest imports come from `-X importtime`, each without the imports that it causes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter
from typing import NamedTuple

ROUNDS = 20
SLOWEST = 10
BARE = "python -c pass"
PROGRAMS = {
    BARE: ["-c", "pass"],
    "import typing, random, heapq": ["-c", "import typing, random, heapq"],
    "import mannerly.politeness": ["-c", "import mannerly.politeness"],
    "Politeness().reserve(…)": [
        "-c",
        "from mannerly.politeness import Politeness; Politeness().reserve('example.com', now=0.0)",
    ],
    "import click": ["-c", "import click"],
    "mannerly --help": ["-m", "mannerly", "--help"],
}
TARGETS_MS = {"import mannerly.politeness": "60 above", "mannerly --help": "150 wall"}


class Spent(NamedTuple):
    """Return the seconds from the start of one process to its end."""

    wall_s: float
    cpu_s: float


def _environment() -> dict[str, str]:
    """Return our environment with bytecode caching on, so that no import has to compile."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _run(arguments: list[str]) -> Spent:
    start = perf_counter()
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, *arguments],
        _environment(),
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"python {' '.join(arguments)} failed")
    return Spent(perf_counter() - start, usage.ru_utime + usage.ru_stime)


def _best() -> dict[str, Spent]:
    for arguments in PROGRAMS.values():
        _run(arguments)
    rounds = [{name: _run(words) for name, words in PROGRAMS.items()} for _ in range(ROUNDS)]
    return {
        name: Spent(*(min(spent) for spent in zip(*(row[name] for row in rounds), strict=True)))
        for name in PROGRAMS
    }


def _imports(arguments: list[str]) -> list[tuple[int, str]]:
    """Return microseconds and name of every import of a program, the slowest first."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        env=_environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    lines = [line.removeprefix("import time:").split("|") for line in told.splitlines()]
    rows = [(int(own), name.strip()) for own, _, name in lines if own.strip().isdigit()]
    return sorted(rows, reverse=True)


def run() -> None:
    """Print the time of each start, and the slowest imports."""
    best = _best()
    floor = best[BARE]
    print(f"Start-up, best of {ROUNDS} processes each, ms")
    print(f"{'':32}{'wall':>8}{'CPU':>8}{'above bare':>12}{'target':>12}")
    for name, spent in best.items():
        above = spent.wall_s - floor.wall_s
        numbers = f"{spent.wall_s * 1e3:8.1f}{spent.cpu_s * 1e3:8.1f}{above * 1e3:12.1f}"
        print(f"{name:32}{numbers}{TARGETS_MS.get(name, ''):>12}")
    for name in TARGETS_MS:
        slowest = _imports(PROGRAMS[name])[:SLOWEST]
        print(f"\nThe {SLOWEST} slowest imports of `{name}`, µs, without what they import:")
        print("  " + ", ".join(f"{module} {own_us:,}" for own_us, module in slowest))


if __name__ == "__main__":
    run()
