"""Run the tests of every row, and write docs/explanation/reliability.md with the figure of each."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.hostile.threats import FAULTS, ROWS, THREATS

if TYPE_CHECKING:
    from tests.hostile.rows import Row

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "reliability.md"

HEAD = """\
# Reliability

Faults and attacks, the promise that still holds, and the measured figures. `make reliability` runs
the tests of each row and writes this page; `make test` runs the short ones, `make torture` the
others. Servers, disks, clocks and processes are real or injected; requests are checked against the
servers' logs.
"""
TAIL = """\
## Promises that can fail

`make mutants` makes one line at a time wrong, in a copy of the source, and shows which test
notices. `make torture` crawls random webs while processes are killed, stopped and interrupted at
random; a seed repeats a run.
"""


@dataclass(eq=False)  # pytest keeps its plugins in a set
class Outcomes:
    """A plugin of pytest that collects what became of each test, and its figures."""

    passed: dict[str, bool] = field(default_factory=dict)
    figures: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    seconds: float = 0.0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.removeprefix("tests/").partition("[")[0]
        self.passed[name] = self.passed.get(name, True) and not report.failed
        if report.when == "call":
            for row, text in report.user_properties:
                if text not in self.figures[row]:
                    self.figures[row].append(str(text))


def measure(*, with_long: bool) -> Outcomes:
    """Run the tests of all rows."""
    outcomes, began = Outcomes(), time.monotonic()
    tests = sorted({f"tests/{test}" for row in ROWS for test in row.tests})
    words = ["-q", "-p", "no:cacheprovider", "--numprocesses", "4", "--dist", "loadfile"]
    words += ["--no-loadscope-reorder"]  # the longest begin first
    words += ["-m", "long or not long" if with_long else "not long"]
    pytest.main([*words, *tests], [outcomes])
    outcomes.seconds = time.monotonic() - began
    return outcomes


def page(outcomes: Outcomes) -> str:
    """Return the text of docs/explanation/reliability.md."""
    parts = [HEAD]
    for title, rows in (("Faults", FAULTS), ("Threats", THREATS)):
        parts.append(f"## {title}\n\n| | Fault | Promise | Measured | Tests |")
        parts[-1] += "\n|---|---|---|---|---|\n" + "".join(
            _line(row, outcomes) for row in rows if row.tests
        )
    waiting = defaultdict(list)
    for row in ROWS:
        if row.waits_for:
            waiting[row.waits_for].append(row.id)
    if waiting:
        named = "; ".join(f"{what} ({', '.join(ids)})" for what, ids in waiting.items())
        parts.append(f"These rows have no case yet: {named}.\n")
    return "\n".join([*parts, TAIL])


def _line(row: Row, outcomes: Outcomes) -> str:
    failed = [test for test in row.tests if outcomes.passed.get(test) is False]
    figures = "; ".join(outcomes.figures.get(row.id, ()))
    passed = sum(test in outcomes.passed for test in row.tests)
    measured = f"**{len(failed)} failed**" if failed else figures or f"{passed} passed"
    tests = ", ".join(f"`{test.partition('::')[2]}`" for test in row.tests)
    cells = (row.id, row.what, row.holds, measured, tests)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
