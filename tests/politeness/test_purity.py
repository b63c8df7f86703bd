"""The politeness core is pure: only the standard library, and I/O only where it is named."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from tests.politeness.cases import case

import mannerly.politeness

ROOT = Path(mannerly.politeness.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Modules that do I/O or read a clock, and the only files that may import them.
IO_MODULES = frozenset(
    {
        *("time", "datetime", "asyncio", "threading", "socket", "select", "selectors", "ssl"),
        *("logging", "os", "io", "subprocess", "multiprocessing", "concurrent", "signal", "http"),
        *("urllib", "sqlite3", "pathlib", "tempfile", "shutil", "queue", "sched", "contextvars"),
    }
)
MAY = {
    "clock.py": {"time"},
    "drivers/aio.py": {"asyncio"},
    "drivers/aio_policies.py": {"asyncio"},
    "drivers/policies.py": {"urllib"},  # to join URLs; nothing of it opens one
    "drivers/threads.py": {"threading"},
    "drivers/thread_policies.py": {"threading", "concurrent"},
    "drivers/observe.py": {"logging"},
    "memory/sqlite.py": {"sqlite3", "threading", "pathlib"},
    # For the calendar and times of day, not for the present: see the clock's own test below.
    "headers.py": {"datetime"},
    "robots/extensions.py": {"datetime"},
}
CLOCKS = frozenset({"now", "utcnow", "today", "monotonic", "perf_counter", "time_ns", "time"})


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path, *, at_runtime: bool = False) -> set[str]:
    """The top-level names of all absolute imports in a file, wherever they stand."""
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set(_typing_only(tree)) if at_runtime else set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


def _typing_only(tree: ast.Module) -> list[ast.AST]:
    """Everything under `if TYPE_CHECKING:`, which never runs."""
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return [inner for block in blocks for line in block.body for inner in ast.walk(line)]


def test_only_the_standard_library_is_imported() -> None:
    """No file of the package names a module from elsewhere, not even this project's."""
    for path in FILES:
        with case(path):
            assert imports(path) <= sys.stdlib_module_names | {"__future__"}


def test_relative_imports_stay_inside() -> None:
    """The package can be moved whole: no import climbs out of it."""
    for path in FILES:
        with case(path):
            depth = len(path.relative_to(ROOT).parts)
            levels = [
                node.level
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.ImportFrom)
            ]

            assert max(levels, default=0) <= depth


def test_io_is_done_only_where_it_is_allowed() -> None:
    """No clock, socket, event loop, thread, log or file outside the modules made for it."""
    for path in FILES:
        with case(path):
            imported = imports(path, at_runtime=True) & IO_MODULES

            assert imported == MAY.get(name_of(path), set())


def test_clock_is_read_in_one_place() -> None:
    """Only `clock.py` calls anything of `time` or `datetime` that tells the present time."""
    for path in FILES:
        with case(path):
            calls = {
                node.func.attr
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in ("time", "datetime", "date")
            }

            assert name_of(path) == "clock.py" or not calls & CLOCKS


def test_nothing_is_printed_or_opened() -> None:
    """The package neither prints nor opens files."""
    for path in FILES:
        with case(path):
            called = {
                node.func.id
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }

            assert not called & {"print", "open", "input", "exec", "eval", "breakpoint"}


def test_random_numbers_come_from_a_seeded_generator() -> None:
    """No module uses the global generator: every jitter comes from a seeded `Random`."""
    for path in FILES:
        with case(path):
            used = {
                node.attr
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "random"
            }

            assert used <= {"Random"}
