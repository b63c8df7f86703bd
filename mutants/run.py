"""Apply mutants one at a time in a copy of the tree, and run their tests there."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .model import SOURCE, Fate, Mutant, Result

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[1]
COPIED = (
    *("src", "tests", "docs", "bench", "examples", "torture", "mutants", "supply", "locks"),
    *("virtual", "pyproject.toml", "README.md", "Makefile"),
)
PATIENCE_S = 120.0  # for the tests of one mutant, which take some seconds
_PASSED, _FAILED = 0, 1  # pytest's exit codes; others mean that nothing was tested

# Words of failures that only say that time was over.
_CLOCK = re.compile(
    r"^E .*(?:DeadlineExceeded|TimeoutExpired|TimeoutError|did not come true within|Flaky)",
    re.MULTILINE,
)
_FAILURE = re.compile(r"^(?:FAILED|ERROR) tests/(\S+)", re.MULTILINE)


class Tree:
    """A copy of the project in which one file at a time is wrong."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        no_caches = shutil.ignore_patterns("__pycache__", ".hypothesis", "*.pyc")
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, directory / name, ignore=no_caches, dirs_exist_ok=True)
            elif source.exists():
                shutil.copy2(source, directory / name)

    def try_mutant(self, mutant: Mutant) -> Result:
        """Return what became of a mutant; afterwards the tree is as it was."""
        started = time.monotonic()
        file = self.directory / SOURCE / mutant.file
        try:
            text = file.read_text("utf-8")
            wrong = mutant.applied(text)
        except (OSError, ValueError) as error:
            return Result(mutant, Fate.BROKEN, str(error), 0.0)
        file.write_text(wrong, "utf-8")
        try:
            fate, detail = self._judge(*self.run_tests(mutant.tests))
        finally:
            file.write_text(text, "utf-8")
        return Result(mutant, fate, detail, time.monotonic() - started)

    def failing(self, tests: Iterable[str]) -> set[str]:
        """Return the tests that fail although nothing is wrong: they cannot notice anything.

        Raises:
            ValueError: not even that could be found out.
        """
        code, text = self.run_tests(tests, fail_fast=False)
        if code not in (_PASSED, _FAILED):
            raise ValueError(f"the tests cannot be run:\n{text}")
        return {name.partition("[")[0] for name in _FAILURE.findall(text)}

    def run_tests(self, tests: Iterable[str], *, fail_fast: bool = True) -> tuple[int | None, str]:
        """Return pytest's exit code (None: it did not end) and what it printed."""
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        words += ["-x"] if fail_fast else []
        words += ["-p", "no:xdist", "--hypothesis-seed=1", "--no-header", "--tb=short"]
        words += [f"tests/{test}" for test in tests]
        process = subprocess.Popen(
            words,
            cwd=self.directory,
            env=os.environ
            | {"PYTHONPATH": str(self.directory / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            text, _ = process.communicate(timeout=PATIENCE_S if fail_fast else None)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""
        return process.returncode, text

    @staticmethod
    def _judge(code: int | None, text: str) -> tuple[Fate, str]:
        if code is None:
            return Fate.HUNG, f"its tests did not end within {PATIENCE_S:g} s"
        if code == _PASSED:
            return Fate.SURVIVED, "every test passed"
        found = _FAILURE.search(text)
        if code != _FAILED or found is None:
            return Fate.BROKEN, (text.strip().splitlines() or ["pytest said nothing"])[-1]
        if _CLOCK.search(text):
            return Fate.TIMED, found[1]
        return Fate.KILLED, found[1]
