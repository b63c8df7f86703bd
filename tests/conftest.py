"""What holds for every test."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import virtual.store  # noqa: F401 - it makes crawls in memory known
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# An example takes long on a busy machine, too: no clock decides whether a test passes.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# No test learns from another one, or from the crawls of whoever runs them: a test that is about the
# memory of hosts names a file of its own.
os.environ["MANNERLY_MEMORY"] = "none"

# These take longest, mostly waiting. They begin first: the last file would otherwise run alone.
LONG = (
    "portability/test_portability.py",
    "docs/test_console.py",
    "service/test_live_page.py",
    "warming/test_warm.py",
    "hostile/test_killed.py",
    "crawler/fleet/test_workers.py",
    "crawler/fleet/test_partitions.py",
    "hostile/test_dying_parts.py",
    "crawler/runtime/test_stuck.py",
    "library/test_iteration.py",
    "library/test_resuming.py",
    "service/test_job_kinds.py",
    "docs/test_site.py",
    "test_wheel.py",
    "cli/test_recrawl.py",
    "crawler/runtime/test_orders.py",
    "crawler/runtime/test_shutdown.py",
    "crawler/runtime/test_kill.py",
    "crawler/store/test_store_faults.py",
    "report/test_browser.py",
    "report/test_check.py",
    "service/test_serve.py",
    "test_examples.py",
)


RARELY = 100_000  # as in `mannerly.__main__`: a tenth of the CPU time of tests of pure code
REPEATABLE = 8  # the exit code with --repeatable; pytest's own end at 5


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make test` ask whether what failed may be repeated."""
    parser.addoption(
        "--repeatable",
        action="store_true",
        help=f"exit with {REPEATABLE} if tests have failed, and all of them are marked `processes`",
    )


def _failed(config: pytest.Config) -> list[pytest.TestReport | pytest.CollectReport]:
    stats = config.pluginmanager.get_plugin("terminalreporter").stats
    return [*stats.get("failed", ()), *stats.get("error", ())]


def _may_be_repeated(report: pytest.TestReport | pytest.CollectReport) -> bool:
    return isinstance(report, pytest.TestReport) and "processes" in report.keywords


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Tell failures that lack of CPU time may have caused from all others: those fail at once."""
    if session.config.getoption("repeatable") and exitstatus == pytest.ExitCode.TESTS_FAILED:
        failed = _failed(session.config)
        if failed and all(map(_may_be_repeated, failed)):
            session.exitstatus = REPEATABLE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests are repeated, or why none is."""
    config = terminalreporter.config
    if not config.getoption("repeatable") or not (failed := _failed(config)):
        return
    others = [report.nodeid for report in failed if not _may_be_repeated(report)]
    terminalreporter.section("repeats")
    if others:
        terminalreporter.line(f"none: {len(others)} of {len(failed)} are not marked `processes`")
    else:
        terminalreporter.line(f"{len(failed)}, all marked `processes`: each runs once more, alone")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the long files to the front, and keep all others as they are."""
    tests = Path(__file__).parent
    ranks = {tests / name: rank for rank, name in enumerate(LONG)}
    assert all(file.exists() for file in ranks), "a file of LONG has moved"
    items.sort(key=lambda item: ranks.get(item.path, len(LONG)))


def pytest_configure() -> None:
    """Obey signals that a shell (`&`) or `nohup` has had ignored: commands would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collected tests are a million objects that stay: each look of `gc` at them takes 0.5 s."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(RARELY)
        gc.enable()
