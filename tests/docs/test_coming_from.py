"""The tasks of "Coming from Scrapy or Crawlee": both versions make the same items."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.docs.console import ROOT, parts
from tests.harness.commands import PYTHON, environment, run
from tests.harness.sites import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

PRACTICE = "127.0.0.1:8080"
TASKS = {"price": 12, "search": 5, "login": 1, "failed": 2, "site": 12}  # with their items


def files(page: str) -> dict[str, str]:
    """The files of a page, by their names."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return {each[0]: each[1] for each in parts(text) if isinstance(each, tuple) and len(each) == 2}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with all files, while the shop of the tutorial is there."""
    folder = tmp_path_factory.mktemp("tasks")
    port = free_port()
    found = files("how-to/coming-from.md")
    found["practice_site.py"] = files("tutorial-spiders.md")["practice_site.py"]
    for name, text in found.items():
        text = text.replace(PRACTICE, f"127.0.0.1:{port}").replace("8080", str(port))
        (folder / name).write_text(text, "utf-8")
    shop = subprocess.Popen([sys.executable, "practice_site.py"], cwd=folder)
    try:
        yield folder
    finally:
        shop.kill()
        shop.wait()


def items(file: Path) -> list[str]:
    lines = file.read_text().splitlines()
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines)


@pytest.mark.parametrize("task", TASKS)
def test_both_versions_make_the_same_items(place: Path, task: str) -> None:
    """Scrapy as it comes, and ours."""
    theirs, ours = place / f"scrapy-{task}.jsonl", place / f"{task}.jsonl"
    words = ("-m", "scrapy", "runspider", f"scrapy_{task}.py", "-O", theirs, "-L", "ERROR")
    quick = ("--start-rate", "20", "--max-rate", "50", "--quiet")

    scrapy = run(*words, cwd=place, env=environment(), program=PYTHON)
    done = run("run", f"{task}.py", "-o", ours, *quick, cwd=place)

    assert scrapy.returncode == 0, scrapy.stderr
    assert done.returncode == 0, done.stderr
    assert len(items(ours)) == TASKS[task]
    assert items(ours) == items(theirs)


def test_every_task_has_a_version_for_crawlee() -> None:
    """It is Python; Crawlee is not installed where tests run."""
    found = files("how-to/coming-from.md")

    assert sorted(found) == sorted(
        f"{prefix}{task}.py" for task in TASKS for prefix in ("", "scrapy_", "crawlee_")
    )
    for name, text in found.items():
        compile(text, name, "exec")
