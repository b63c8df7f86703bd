"""The commands of the guides for archivists and data teams are run, as they are written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.exports.archive_site import archive_site
from tests.harness.commands import run

pytestmark = pytest.mark.processes

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
FAST = " --delay 0.01 --start-rate 100 --max-rate 100 --strategy fixed"
MADE = {
    "archives.md": ["site.warc.gz", "site.wacz"],
    "data.md": ["pages.parquet", "pages.jsonl.gz", "pages", "items.jsonl", "items.csv"],
}


@pytest.mark.parametrize("name", MADE)
def test_commands_of_the_guide_work(name: str, tmp_path: Path) -> None:
    """Every command and every Python example, in their order; only the site and its pace differ."""
    text = (GUIDES / name).read_text("utf-8")
    blocks = re.findall(r"^```(console|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    with archive_site() as site:
        for kind, block in blocks:
            if kind == "python":
                run_python(block, tmp_path)
                continue
            for line in re.findall(r"^\$ mannerly (.+)$", block, re.MULTILINE):
                run_line(adapted(line, site.url), tmp_path)

    assert [made for made in MADE[name] if not (tmp_path / made).exists()] == []


def adapted(line: str, url: str) -> str:
    """The command for the site of the test."""
    if line.startswith("crawl "):
        where = "" if "--data-dir" in line else " --data-dir crawl-example.com --fresh"
        return line.replace("https://example.com/", url) + where + FAST
    return line


def run_line(line: str, directory: Path) -> None:
    ended = run(*line.split(), cwd=directory)
    assert ended.returncode == 0, f"{line}\n{ended.stderr}"


def run_python(block: str, directory: Path) -> None:
    """Keep the function of an example for the command after it, and run everything else."""
    if block.startswith("# my_items.py"):
        (directory / "my_items.py").write_text(block)
        return
    ended = subprocess.run(
        [sys.executable, "-c", block], cwd=directory, capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
