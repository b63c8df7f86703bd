"""The crawl tests pass where epoll, poll, fcntl and fork are missing, as on macOS and Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
BARE = Path(__file__).parent / "bare"
# Crawls with real servers and processes: resuming, kills, signals, limits, several processes.
CRAWLS = ("test_resume", "test_kill", "test_shutdown", "test_scope_crawl", "test_supervisor")


@pytest.mark.parametrize("name", CRAWLS)
def test_crawl_tests_pass_on_a_bare_system(name: str) -> None:
    """Every one of them, in this process and in all that it starts."""
    paths = [str(BARE), str(ROOT / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    probe = "import select, sys; assert not hasattr(select, 'epoll'); import fcntl"

    done, bare = (
        subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        for words in (
            ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/crawler/runtime/{name}.py"],
            ["-c", probe],
        )
    )

    assert "ModuleNotFoundError: import of fcntl halted" in bare.stderr, "nothing was taken away"
    assert done.returncode == 0, done.stdout[-4000:]
