"""The command `mannerly` in tests: within this process, or as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from tests.harness.processes import kill_session
from tests.harness.waiting import PATIENCE_S

from mannerly.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from click.testing import Result

ROOT = Path(__file__).parents[2]
# The code under test, and whatever else this process was given (see tests/portability).
SOURCE_PATH = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT / "src")])
PYTHON = (sys.executable,)
MANNERLY = (sys.executable, "-m", "mannerly")


def invoke(
    *words: object, env: Mapping[str, str | None] | None = None, stdin: str | None = None
) -> Result:
    """Run the command within this process: fast, but signals and exits are not the real ones."""
    return CliRunner().invoke(app, [str(word) for word in words], input=stdin, env=env)


def environment(**more: str) -> dict[str, str]:
    """Return the variables of this process, with the code under test first on the path."""
    return os.environ | {"PYTHONPATH": SOURCE_PATH} | more


def bare(home: Path) -> dict[str, str]:
    """Return the few variables of a user who has set nothing, and whose home is a directory."""
    return {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": SOURCE_PATH}


def run(
    *words: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    within_s: float = 2 * PATIENCE_S,
    program: tuple[str, ...] = MANNERLY,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run the command, or another program such as PYTHON, as a process until its end.

    `options` are further arguments of `subprocess.run`.
    """
    return subprocess.run(
        [*program, *map(str, words)],
        cwd=cwd,
        env=environment() if env is None else env,
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
        **options,
    )


def run_at(home: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the command as a user who has set nothing, in the directory that is the user's home."""
    return run(*words, cwd=home, env=bare(home))


@contextmanager
def started(
    *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, **pipes: Any
) -> Iterator[subprocess.Popen[str]]:
    """Start the command in a session of its own; at the end of the block all of it is killed.

    Its standard error can be read; `pipes` are further arguments of `Popen`.
    """
    pipes = {"stderr": subprocess.PIPE} | pipes
    process = subprocess.Popen(
        [*MANNERLY, *map(str, words)],
        cwd=cwd,
        env=environment() if env is None else env,
        text=True,
        start_new_session=True,
        **pipes,
    )
    try:
        yield process
    finally:
        kill_session(process.pid)
        process.communicate()


def live_page(process: subprocess.Popen[str]) -> str:
    """Return the address of the live page, which a crawl with --dashboard prints first."""
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    return next(line.split()[-1] for line in lines if line.startswith("Live page:"))
