"""Every example runs, as a reader would run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

EXAMPLES = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != "local_server.py")


@pytest.mark.parametrize("program", PROGRAMS)
def test_example_runs(program: str) -> None:
    """It ends well, and prints something."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout
