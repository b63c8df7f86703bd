"""A crawl on a file system that is mounted for reading can be looked at.

A mount is made in a name space of its own, which some systems do not allow: then it is skipped.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.exports.stored_example import make_crawl

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

MOUNT = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


def run_mounted(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command while a directory is mounted for reading."""
    command = ["unshare", "-rm", "sh", "-c", MOUNT, str(place), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """A crawl as a backup has it: without the files that SQLite makes beside its own."""
    place = tmp_path / "mounted"
    place.mkdir()
    try:
        tried = run_mounted(place, "touch", str(place / "x"))
    except OSError:
        pytest.skip("there is no unshare here")
    if "Read-only" not in tried.stderr:
        pytest.skip(f"no mount can be made here: {tried.stderr}")
    directory = make_crawl(place / "crawl")
    for file in [*directory.glob("*-wal"), *directory.glob("*-shm")]:
        file.unlink()
    return directory


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("hosts",),
        ("export", "-o", "-"),
        ("host", "show", "", "a.example"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_crawl_can_be_looked_at_where_nothing_can_be_written(
    crawl: Path, words: tuple[str, ...]
) -> None:
    """Every command that only looks ends with exit code 0."""
    given = [word or str(crawl) for word in words]
    given += [] if "" in words else [str(crawl)]

    done = run_mounted(crawl.parent, sys.executable, "-P", "-m", "mannerly", *given)

    assert done.returncode == 0, done.stderr


def test_crawl_whose_last_commits_are_in_a_log_is_refused(crawl: Path) -> None:
    """It is not read without them; where it can be written to, they are there."""
    (shard,) = crawl.glob("shard-0.db")
    shard.with_name("shard-0.db-wal").write_bytes(b"x" * 4096)

    done = run_mounted(crawl.parent, sys.executable, "-P", "-m", "mannerly", "status", str(crawl))

    assert done.returncode == 4
    assert "shard-0.db" in done.stderr
