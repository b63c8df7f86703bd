"""The crawl tests pass where epoll, poll, fcntl and fork are missing, as on macOS and Windows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.harness.commands import PYTHON, ROOT, environment, run

pytestmark = pytest.mark.processes

BARE = Path(__file__).parent / "bare"
RUNTIME = "tests/crawler/runtime"
# Crawls with real servers and processes: kills, signals, limits, resuming, several processes.
CRAWLS = (
    "test_kill.py::test_a_crawl_that_is_killed_before_its_first_commit_starts_over",
    "test_kill.py::test_a_child_that_is_killed_alone_is_started_again",
    "test_shutdown.py::test_the_second_signal_stops_at_once",
    "test_shutdown.py::test_workers_of_a_dead_supervisor_end_by_themselves",
    "test_shutdown.py::test_a_second_crawler_on_the_same_directory_is_refused_at_once",
    "test_shutdown.py::test_max_urls_is_exact",
    "test_resume.py::test_a_resumed_crawl_keeps_its_scope_and_its_robots_files",
    "test_scope_crawl.py::test_limits_of_depth_and_number_hold_exactly",
    "test_supervisor.py::test_several_processes_fetch_every_page_once",
)
MODULES = ("test_resume", "test_kill", "test_shutdown", "test_scope_crawl", "test_supervisor")


@pytest.mark.parametrize(
    "tests",
    [
        pytest.param(CRAWLS, id="one of each kind"),
        *(pytest.param((f"{each}.py",), marks=pytest.mark.long, id=each) for each in MODULES),
    ],
)
def test_crawl_tests_pass_on_a_bare_system(tests: tuple[str, ...]) -> None:
    """In this process and in all that it starts."""
    paths = [str(BARE), str(ROOT / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    probe = "import select, sys; assert not hasattr(select, 'epoll'); import fcntl"

    env = environment(PYTHONPATH=os.pathsep.join(filter(None, paths)))
    chosen = [f"{RUNTIME}/{each}" for each in tests]
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen)
    done = run(*words, program=PYTHON, cwd=ROOT, env=env, within_s=600)
    bare = run("-c", probe, program=PYTHON, cwd=ROOT, env=env)

    assert "ModuleNotFoundError: import of fcntl halted" in bare.stderr, "nothing was taken away"
    assert done.returncode == 0, done.stdout[-4000:]
