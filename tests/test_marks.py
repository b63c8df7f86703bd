"""Marks of tests: a module that starts processes says so, or a failure for lack of CPU is final."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MODULES = sorted(TESTS.rglob("test_*.py"))
# Names that start processes, by the module that they are imported from.
STARTERS = {
    "tests.harness.commands": {"run", "run_at", "started"},
    "tests.crawler.runtime.harness": {"Crawler"},
    "tests.crawler.control.steering": {"Shell", "Running"},
    "tests.crawler.fleet.fleet_world": {"Fleet", "Worker", "run"},
    "tests.service.running": {"ServiceProcess"},
    "tests.hostile.commands": {"run"},
    "torture.command": {"Command", "ask"},
}


def starters(tree: ast.Module) -> set[str]:
    """Return what starts processes in a module: names, and the option of a crawl with several."""
    imported = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.name in STARTERS.get(node.module or "", ())
    }
    keywords = [
        each for node in ast.walk(tree) if isinstance(node, ast.Call) for each in node.keywords
    ]
    several = {
        "processes" for each in keywords if each.arg == "processes" and not _is_one(each.value)
    }
    return imported | several


def _is_one(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == 1


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(TESTS)))
def test_modules_that_start_processes_are_marked(module: Path) -> None:
    """At the top, or at the tests that do."""
    text = module.read_text(encoding="utf-8")

    assert not starters(ast.parse(text)) or "mark.processes" in text
