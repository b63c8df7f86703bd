"""A data directory is its owner's alone, links in it are not followed, and wipe knows its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.exports.stored_example import make_crawl
from tests.harness.commands import invoke

import mannerly
from mannerly.crawler.plugins.render import picture_name
from mannerly.crawler.store import create_crawl, open_crawl, wipe
from mannerly.crawler.store.base import ShardOptions, StoreError
from mannerly.crawler.store.contract import new_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPTIONS = ShardOptions(frontier_limit=9)


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """A file that must be as it was when the test is over."""
    file = tmp_path / "precious"
    file.write_text("mine")
    yield file
    assert file.read_text() == "mine"


def use(directory: Path) -> None:
    """Open every file of the first shard."""
    crawl = open_crawl(directory)
    crawl.hold()
    crawl.claim(0, OPTIONS)
    crawl.acknowledge(0, 1)
    crawl.orders()


def modes(directory: Path) -> set[int]:
    return {file.lstat().st_mode & 0o777 for file in directory.iterdir()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777 & ~0o700])
def test_files_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """While a crawl runs, with every side file, and afterwards."""
    before = os.umask(umask)
    try:
        crawl = create_crawl(tmp_path / "c", new_manifest(2))
        crawl.hold()
        with crawl.claim(0, OPTIONS) as store:
            crawl.order(mannerly.crawler.control.Pause())
            crawl.acknowledge(0, 1)
            store.pass_links(9)
            meanwhile = modes(tmp_path / "c")
        crawl.close()
    finally:
        os.umask(before)

    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700
    assert meanwhile == modes(tmp_path / "c") == {0o600}


@pytest.mark.parametrize(
    "name", ["lock", "shard-0.lock", "shard-0.db", "control.db", "shard-0.parsing", "shard-0.done"]
)
def test_a_link_in_the_place_of_a_file_is_refused(
    tmp_path: Path, precious: Path, name: str
) -> None:
    """What it points to is neither read nor written nor truncated."""
    make_crawl(tmp_path / "c")
    (tmp_path / "c" / name).unlink(missing_ok=True)
    (tmp_path / "c" / name).symlink_to(precious)

    with pytest.raises(StoreError, match="not a regular file"):
        use(tmp_path / "c")


def test_a_lock_with_another_name_is_refused(tmp_path: Path, precious: Path) -> None:
    """A hard link would be truncated, too."""
    make_crawl(tmp_path / "c")
    (tmp_path / "c" / "lock").unlink()
    os.link(precious, tmp_path / "c" / "lock")

    with pytest.raises(StoreError, match="hard link"):
        open_crawl(tmp_path / "c").hold()


def test_a_planted_temporary_name_is_not_followed(tmp_path: Path, precious: Path) -> None:
    """The manifest is written to a file of its own."""
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "crawl.json.new").symlink_to(precious)

    with pytest.raises(StoreError):
        create_crawl(tmp_path / "c", new_manifest())


def test_a_directory_that_is_reached_by_a_link_is_used(tmp_path: Path) -> None:
    """That is the user's own doing."""
    make_crawl(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    outcome = invoke("status", str(tmp_path / "link"))

    assert outcome.exit_code == 0, outcome.stderr
    with pytest.raises(StoreError, match="is a link"):
        wipe(tmp_path / "link")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("crawl.json", b'{"name": "somebody else"}'),
        ("shard-0.db", b"SQLite format 3\x00" + bytes(84)),
        ("control.db", b"notes of mine"),
        ("shard-0.done", b"a list of mine"),
    ],
)
def test_wipe_looks_into_files_that_are_named_like_ours(
    tmp_path: Path, name: str, content: bytes
) -> None:
    """Nothing is removed if another program wrote them."""
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / name).write_bytes(content)

    with pytest.raises(StoreError, match="nothing was removed"):
        wipe(tmp_path / "c")

    assert (tmp_path / "c" / name).read_bytes() == content


def test_wipe_does_not_follow_links(tmp_path: Path, precious: Path) -> None:
    """A link is not ours: nothing is removed."""
    make_crawl(tmp_path / "c")
    (tmp_path / "c" / "shard-0.done").symlink_to(precious)

    with pytest.raises(StoreError, match="nothing was removed"):
        wipe(tmp_path / "c")

    assert (tmp_path / "c" / "crawl.json").exists()


def test_pictures_of_pages_are_removed_with_their_crawl(tmp_path: Path) -> None:
    """They are in a folder of their own."""
    make_crawl(tmp_path / "c")
    pictures = tmp_path / "c" / "screenshots"
    pictures.mkdir()
    (pictures / picture_name("https://a.example/")).write_bytes(b"PNG")

    wipe(tmp_path / "c")

    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("name", ["holiday.png", "0" * 32])
def test_wipe_removes_no_other_file_beside_pictures(tmp_path: Path, name: str) -> None:
    """Nothing is removed if somebody has put a file of their own there."""
    make_crawl(tmp_path / "c")
    file = tmp_path / "c" / "screenshots" / name
    file.parent.mkdir()
    file.write_bytes(b"mine")

    with pytest.raises(StoreError, match=f"screenshots/{name}"):
        wipe(tmp_path / "c")

    assert file.exists()


def test_wipe_does_not_follow_a_link_to_pictures(tmp_path: Path) -> None:
    """Nothing is removed where it leads to."""
    make_crawl(tmp_path / "c")
    (tmp_path / "mine").mkdir()
    (tmp_path / "c" / "screenshots").symlink_to(tmp_path / "mine")

    with pytest.raises(StoreError, match="nothing was removed"):
        wipe(tmp_path / "c")

    assert (tmp_path / "mine").exists()


@pytest.mark.parametrize("damage", [b"", b"garbage", b'{"format": 3'])
def test_a_damaged_crawl_can_be_wiped(tmp_path: Path, damage: bytes) -> None:
    """Its databases show whose it is."""
    make_crawl(tmp_path / "c")
    (tmp_path / "c" / "crawl.json").write_bytes(damage)

    wipe(tmp_path / "c")

    assert not (tmp_path / "c").exists()


@pytest.mark.processes
def test_a_pipe_does_not_hold_a_command_up(tmp_path: Path) -> None:
    """It is refused at once, with exit code 4."""
    make_crawl(tmp_path / "c")
    (tmp_path / "c" / "shard-0.db-wal").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "c" / "shard-0.db-wal")

    command = [sys.executable, "-m", "mannerly", "status", str(tmp_path / "c")]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)

    assert done.returncode == 4
    assert b"not a regular file" in done.stderr
