"""A data directory that somebody has tampered with: it opens, or it is a StoreError. Never a hang.

Every try damages one thing at random in a copy of a small crawl, and then does everything that a
command does: open, look, export, run the shards, repair, wipe. SQLite is interrupted after a number
of steps that no honest file needs, so a statement without an end shows as a failure.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import signal
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import apsw
import pytest
from tests.exports.stored_example import make_crawl

from mannerly.crawler.crawl import Crawl
from mannerly.crawler.inspection import explain, hosts
from mannerly.crawler.inspection.status import status_of
from mannerly.crawler.inspection.view import settings_of, view
from mannerly.crawler.store import examine, exists, open_crawl, repair, wipe
from mannerly.crawler.store.base import Batch, ShardOptions, StoreError
from mannerly.crawler.store.contract import candidate
from mannerly.crawler.web.choices import HostSort
from mannerly.exports.rows import page_row, skipped_row, write_jsonl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mannerly.crawler.store.base import CrawlStore

TRIES = 40  # of each kind
HANG_S = 60
ODD = ["NULL", "-1", "0", "1", "9223372036854775807", "1e300", "'x'", "''", "x'ff'", "'1'", "9e999"]
ODD += ["CAST(x'fffe' AS TEXT)", "'http://'", "'https://a.example/'", "'null'", "zeroblob(9)"]
HOSTILE = [
    "CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT * FROM r",
    (
        "DROP TABLE totals; CREATE VIEW totals AS WITH RECURSIVE r(next_seq) AS (SELECT 1 UNION "
        "ALL SELECT next_seq FROM r) SELECT * FROM r"
    ),
    (
        "CREATE TRIGGER t AFTER UPDATE ON owner BEGIN INSERT INTO skipped SELECT n, 'u', 'r', 0, "
        "NULL FROM (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
        "SELECT n FROM r); END"
    ),
    "DROP TABLE pages",
    "ALTER TABLE queue RENAME COLUMN url TO lru",
    "CREATE TABLE more (a)",
    "CREATE INDEX i ON pages (abs(links))",
    "ALTER TABLE pages ADD COLUMN g GENERATED ALWAYS AS (url || url) VIRTUAL",
    "PRAGMA user_version = 99",
    "PRAGMA application_id = 1",
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_crawl(tmp_path_factory.mktemp("original") / "crawl")


@pytest.fixture(autouse=True)
def _nothing_hangs() -> Iterator[None]:
    """Interrupt a test that waits for ever, in SQLite or in an open of a pipe."""

    def interrupted(*_: object) -> None:
        raise AssertionError(f"nothing happened for {HANG_S} s")

    def guarded(connection: apsw.Connection) -> None:
        deadline = time.monotonic() + HANG_S / 2
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)

    before = signal.signal(signal.SIGALRM, interrupted)
    apsw.connection_hooks.append(guarded)
    signal.alarm(HANG_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    apsw.connection_hooks.remove(guarded)


def change_row(directory: Path, rng: random.Random) -> str:
    file = rng.choice([*sorted(directory.glob("*-[01].db")), directory / "control.db"])
    with closing(apsw.Connection(str(file))) as connection:
        tables = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        table = rng.choice(tables)
        column = rng.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
        statement = f"UPDATE OR IGNORE {table} SET {column} = {rng.choice(ODD)}"
        try:
            connection.execute(statement)
        except apsw.Error:
            return "nothing"
    return f"{file.name}: {statement}"


def change_schema(directory: Path, rng: random.Random) -> str:
    file = rng.choice([*sorted(directory.glob("*-[01].db")), directory / "control.db"])
    statement = rng.choice(HOSTILE)
    with closing(apsw.Connection(str(file))) as connection:
        try:
            connection.execute(statement)
        except apsw.Error:
            return "nothing"
    return f"{file.name}: {statement}"


def change_bytes(directory: Path, rng: random.Random) -> str:
    file = rng.choice([each for each in sorted(directory.iterdir()) if each.stat().st_size])
    content = bytearray(file.read_bytes())
    if rng.random() < 0.3:
        del content[rng.randrange(len(content)) :]
    for _ in range(rng.choice([1, 1, 8, 200]) if content else 0):
        content[rng.randrange(len(content))] = rng.randrange(256)
    file.write_bytes(content)
    return f"{file.name}: bytes"


def change_file(directory: Path, rng: random.Random) -> str:
    file = rng.choice(sorted(directory.iterdir()))
    target = (
        file if rng.random() < 0.6 else file.with_name(file.name + rng.choice(["-wal", ".new"]))
    )
    target.unlink(missing_ok=True)
    how = rng.choice(["pipe", "link", "loop", "directory", "missing", "device"])
    if how == "pipe":
        os.mkfifo(target)
    elif how == "link":
        target.symlink_to(directory.parent / "precious")
    elif how == "loop":
        target.symlink_to(target)
    elif how == "directory":
        target.mkdir()
    elif how == "device":
        target.symlink_to("/dev/zero")
    return f"{target.name}: {how}"


def change_manifest(directory: Path, rng: random.Random) -> str:
    file = directory / "crawl.json"
    text = file.read_text()
    old = rng.choice(
        ['"format": 4', '"shards": 2', '"id"', "1700000000.25", '"https://a.example/"']
    )
    new = rng.choice(
        [
            "1e999",
            "-1",
            "null",
            "[" * 3000,
            '"shards": 1000000000',
            '"format": 1',
            '"\\ud800"',
            "NaN",
        ]
    )
    file.write_text(text.replace(old, new, 1))
    return f"crawl.json: {old} became {new[:30]}"


def look(crawl: CrawlStore) -> None:
    """Do what status, hosts, explain and export do."""
    settings_of(crawl.manifest)
    with view(crawl) as seen:
        now = time.time()
        status_of(seen, now=now)
        for sort in HostSort:
            hosts.HostViews(seen, now=now).top(sort, 9)
        hosts.one_host(seen, "a.example", now=now)
        explain.explain(seen, "https://a.example/later", now=now)
        write_jsonl(map(page_row, seen.pages()), io.BytesIO())
        write_jsonl(map(skipped_row, [*seen.skipped(), *seen.given_up()]), io.BytesIO())


def work(crawl: CrawlStore) -> None:
    """Do what a run does to its shards."""
    crawl.hold()
    for shard in range(crawl.manifest.shards):
        with crawl.claim(shard, ShardOptions(frontier_limit=100)) as store:
            for host, _ in store.queued_hosts():
                entries = store.queued(host, after=(-1, -1), limit=9)
                store.commit(Batch(dropped=[(entry, "excluded") for entry in entries]))
            store.commit(Batch(found=[candidate("/x")]))
            store.pass_links(9)
            store.admit_waiting(9)
            store.robots("https://a.example")


def used(directory: Path) -> None:
    """Do everything with a directory; a StoreError is an answer."""
    exists(directory)
    for use in (look, work):
        try:
            with closing(open_crawl(directory)) as crawl:
                use(crawl)
        except StoreError:
            pass
    for command in (examine, repair, examine, wipe):
        with suppress(StoreError):
            command(directory)


@pytest.mark.parametrize(
    "tamper", [change_row, change_schema, change_bytes, change_file, change_manifest]
)
def test_a_poisoned_directory_opens_or_is_refused(
    original: Path, tmp_path: Path, tamper: Callable[[Path, random.Random], str]
) -> None:
    """No other exception, no wait, and nothing outside of the directory is touched."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    rng = random.Random(20261117)
    wrong = []
    for number in range(TRIES):
        directory = tmp_path / f"crawl-{number}"
        shutil.copytree(original, directory)
        done = tamper(directory, rng)
        try:
            used(directory)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            wrong.append(f"{done}: {error!r}")
        shutil.rmtree(directory, ignore_errors=True)

    assert wrong == []
    assert precious.read_text() == "mine"


def test_a_poisoned_directory_can_be_run_or_is_refused(original: Path, tmp_path: Path) -> None:
    """A few of them by the crawler itself, which sends nothing: everything is excluded."""
    rng = random.Random(7)
    for number in range(3):
        directory = tmp_path / f"crawl-{number}"
        shutil.copytree(original, directory)
        change_row(directory, rng)
        try:
            with Crawl(data_dir=directory, duration=0.2, allow_net=["127.0.0.0/8"]) as crawl:
                crawl.exclude("*")
                crawl.run()
        except StoreError:
            pass
