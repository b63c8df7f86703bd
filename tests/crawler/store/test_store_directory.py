"""A crawl's directory is recognised, held by one process, and never mistaken for another's."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import apsw
import pytest

from mannerly.crawler.store import exists, open_crawl, wipe
from mannerly.crawler.store.base import Manifest, ShardOptions, StoreError, StoreMissing
from mannerly.crawler.store.contract import candidate, offer
from mannerly.crawler.store.sqlite.crawl import SqliteCrawl
from mannerly.crawler.store.sqlite.inbox import Inbox, encode_links
from mannerly.crawler.store.sqlite.manifest import FORMAT
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from mannerly.crawler.store import open_crawl

held = open_crawl(Path(sys.argv[1]))
held.hold()
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def manifest() -> Manifest:
    return Manifest.new(
        seeds=["https://a.example/"],
        settings={"scope": "host", "include": ["*"], "max_depth": None},
        shards=2,
        created_at=1_800_000_000.5,
    )


@pytest.fixture
def path(tmp_path: Path, manifest: Manifest) -> Path:
    """A directory with a crawl that no process holds."""
    create(tmp_path / "crawl", manifest).close()
    return tmp_path / "crawl"


def create(path: Path, manifest: Manifest) -> SqliteCrawl:
    """Create a crawl, and hold it."""
    crawl = SqliteCrawl.create(str(path), manifest)
    crawl.hold()
    return crawl


def hold(path: Path) -> SqliteCrawl:
    """Open a crawl, and hold it."""
    crawl = SqliteCrawl.open(str(path))
    crawl.hold()
    return crawl


def read_manifest(path: Path) -> Manifest:
    crawl = open_crawl(path)
    crawl.close()
    return crawl.manifest


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir())


def test_a_crawl_is_found_again_as_it_was_created(path, manifest):
    """Everything that must not change on resume comes back."""
    with closing(hold(path)) as directory:
        assert directory.manifest == manifest
        assert repr(directory) == f"<SqliteCrawl {path} of 2 shards>"
    assert exists(path)
    assert read_manifest(path) == manifest


def test_a_created_crawl_has_its_shards(path):
    """Shards can be opened at once, and nothing else is in the directory."""
    for shard in range(2):
        SqliteStore(path, shard, ShardOptions(1), shards=2).close()

    assert names(path) == [
        "control.db",
        "crawl.json",
        "inbox-0.db",
        "inbox-1.db",
        "lock",
        "shard-0.db",
        "shard-0.lock",
        "shard-0.parsing",
        "shard-1.db",
        "shard-1.lock",
        "shard-1.parsing",
    ]


def test_two_crawls_have_nothing_in_common(manifest):
    """Each crawl gets an id of its own."""
    other = Manifest.new(seeds=[], settings={}, shards=1, created_at=0.0)

    assert other.id != manifest.id


def test_an_empty_directory_may_be_there_already(tmp_path, manifest):
    """A mounted volume is a directory before the crawl begins."""
    create(tmp_path, manifest).close()

    assert exists(tmp_path)


def test_a_second_crawl_is_not_created_over_the_first(path, manifest):
    """Creating says that there is one, and leaves it alone."""
    with pytest.raises(StoreError, match="holds a crawl already"):
        create(path, replace(manifest, id="other"))

    assert read_manifest(path) == manifest


def test_a_directory_of_something_else_is_refused(tmp_path, manifest):
    """A directory with foreign files is not a crawl's, for creating and for opening."""
    (tmp_path / "thesis.tex").write_text("mine")

    with pytest.raises(StoreError, match=r"thesis\.tex.*choose another --data-dir"):
        create(tmp_path, manifest)
    with pytest.raises(StoreMissing, match=r"no crawl.*thesis\.tex"):
        read_manifest(tmp_path)

    assert names(tmp_path) == ["thesis.tex"]


@pytest.mark.parametrize("where", ["nowhere", "."])
def test_no_crawl_is_no_crawl(tmp_path, where):
    """A missing or empty directory has nothing to resume."""
    with pytest.raises(StoreError, match="there is no crawl"):
        open_crawl(tmp_path / where)

    assert not exists(tmp_path / where)


def test_a_file_is_no_directory(tmp_path, manifest):
    """A path that is a file gives an error of ours."""
    (tmp_path / "file").touch()

    with pytest.raises(StoreError, match="cannot use"):
        create(tmp_path / "file", manifest)


@pytest.mark.processes
def test_a_crawl_is_held_by_one_process(path, manifest):
    """The second is told the pid of the first, and may come when that is gone."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        holder.stdout.readline()

        with pytest.raises(StoreError, match=f"is in use by pid {holder.pid}$"):
            hold(path)
        with pytest.raises(StoreError, match="in use"):
            wipe(path)
        holder.kill()

    hold(path).close()


@pytest.mark.parametrize("file", ["shard-1.db", "inbox-0.db", "control.db"])
def test_a_missing_file_is_noticed_before_anything_starts(path, file):
    """A crawl without one of its files is refused, and the lock is free again."""
    (path / file).unlink()

    for _ in range(2):
        with pytest.raises(StoreError, match=rf"{file} is missing.*--fresh"):
            open_crawl(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (b'{"format": 2, "id', "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"[]", "not a manifest"),
        (b'{"name": "someone else"}', "not a manifest"),
        (b'{"format": 99}', f"has format 99, and this version of mannerly knows format {FORMAT}"),
        (b'{"format": %d}' % FORMAT, r"damaged \(id\)"),
    ],
)
def test_a_manifest_that_cannot_be_trusted_is_refused(path, content, message):
    """Cut short, foreign, newer or incomplete: each says what it is."""
    (path / "crawl.json").write_bytes(content)

    with pytest.raises(StoreError, match=message):
        open_crawl(path)


@pytest.mark.parametrize("change", [{"shards": "2"}, {"seeds": None}, {"colour": "red"}])
def test_a_manifest_with_a_wrong_value_is_refused(path, change):
    """Types and keys are checked, so that nothing strange goes on into a crawl."""
    values = json.loads((path / "crawl.json").read_bytes()) | change
    (path / "crawl.json").write_text(json.dumps(values))

    with pytest.raises(StoreError, match="is damaged"):
        open_crawl(path)


def test_a_start_that_was_cut_short_is_made_anew(tmp_path, manifest):
    """Empty shards without a manifest are left over from a start, and no obstacle to the next."""
    create_shard(tmp_path, 0, shards=5)
    (tmp_path / "shard-1.db").touch()
    (tmp_path / "crawl.json.new").write_text("{")

    create(tmp_path, manifest).close()

    SqliteStore(tmp_path, 0, ShardOptions(1), shards=2).close()


HALF_MADE = """
import os, signal, sys
import apsw

connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA cache_size = 1; BEGIN; CREATE TABLE queue (url TEXT)")
for number in range(1000):
    connection.execute("INSERT INTO queue VALUES (?)", ("x" * 1000,))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.processes
@pytest.mark.parametrize("name", ["shard-1.db", "inbox-0.db", "control.db"])
def test_a_start_that_was_killed_within_a_file_is_made_anew(tmp_path, manifest, name):
    """The file has a journal of what was not finished, and a reader cannot undo that."""
    path = tmp_path / "crawl"
    path.mkdir(mode=0o700)
    create_shard(path, 0, shards=2)
    (path / name).unlink(missing_ok=True)
    subprocess.run([sys.executable, "-c", HALF_MADE, str(path / name)], check=False, timeout=60)
    was_hot = (path / f"{name}-journal").stat().st_size > 0

    create(path, manifest).close()

    assert was_hot
    assert open_crawl(path).manifest == manifest


def test_a_crawl_that_lost_its_manifest_is_not_started_over(path, manifest):
    """Shards with URLs in them are a crawl, whatever else is missing."""
    with SqliteStore(path, 0, ShardOptions(9), shards=2) as store:
        store.commit(offer([candidate()]))
    (path / "crawl.json").unlink()

    with pytest.raises(StoreError, match=r"without its crawl\.json"):
        create(path, manifest)

    with SqliteStore(path, 0, ShardOptions(9), shards=2) as store:
        assert store.counts().queued == 1


def test_links_on_their_way_are_a_crawl_too(path, manifest):
    """An inbox with links in it keeps its directory from being started over."""
    inbox = Inbox(path, 1)
    inbox.post(encode_links([candidate()]))
    inbox.close()
    (path / "crawl.json").unlink()

    with pytest.raises(StoreError, match=r"without its crawl\.json"):
        create(path, manifest)


def test_wiping_removes_everything_of_ours(path):
    """The directory goes with its files, and wiping nothing is harmless."""
    wipe(path)
    wipe(path)

    assert not path.exists()


def test_wiping_refuses_what_is_not_ours(path):
    """One foreign file, and nothing at all is removed."""
    (path / "notes.txt").write_text("mine")
    before = names(path)

    with pytest.raises(StoreError, match=r"notes\.txt.*nothing was removed"):
        wipe(path)

    assert names(path) == before


def test_wiping_waits_for_no_worker(path):
    """A worker that outlived its parent still holds its shard, and the crawl is left alone."""
    with SqliteStore(path, 1, ShardOptions(9), shards=2):
        with pytest.raises(StoreError, match=r"shard-1\.db is in use"):
            wipe(path)

        assert exists(path)


def test_the_owner_waits_for_a_file_that_is_locked_for_a_moment(path: Path) -> None:
    """`status` closes a shard's file while a crawl opens it: SQLite locks it for that."""
    with closing(SqliteCrawl.open(str(path))) as crawl:
        reader = apsw.Connection(str(path / "shard-0.db"))
        list(reader.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE"))
        closing_soon = threading.Timer(0.2, reader.close)
        closing_soon.start()
        shard = crawl.claim(0, ShardOptions(1000))
        closing_soon.join()

        assert shard.counts().queued == 0
