"""Directories of release 0.1 and of revision 1971ab0 open with the same records."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.crawler.store.checkup import examine
from tests.crawler.store.fixture_web import HOSTS, SEEDS, every_page, served
from tests.crawler.store.fixtures.make_format_10 import (
    ELEMENTS,
    GIVEN_UP,
    ITEMS,
    KEPT,
    LINKS,
    LISTED,
    ORDERS,
    PLACE,
    REQUEST,
)
from tests.crawler.store.killed import KILLED_AT
from tests.exports.stored_example import PAGES, QUEUED, SHARDING
from tests.harness.commands import invoke

from mannerly.crawler.control import RetryUrls
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry
from mannerly.crawler.store import create_crawl, open_crawl, wipe
from mannerly.crawler.store.base import Batch, ShardOptions, StoreError, StoreInUse
from mannerly.crawler.store.contract import new_manifest
from mannerly.crawler.store.sqlite.lock import OwnerLock
from mannerly.crawler.store.sqlite.manifest import FORMAT

FIXTURES = Path(__file__).parent / "fixtures"
PATIENCE_S = 60


def unpacked(name: str, place: Path) -> Path:
    with tarfile.open(FIXTURES / f"{name}.tar.gz") as archive:
        archive.extractall(place, filter="data")
    return place / "crawl"


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A finished crawl of one host, by release 0.1."""
    return unpacked("finished-1", tmp_path)


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """An interrupted crawl of two shards, by release 0.1."""
    return unpacked("interrupted-1", tmp_path)


def records(directory: Path) -> list[dict[str, object]]:
    outcome = invoke("export", directory, "-o", "-")
    assert outcome.exit_code == 0, outcome.stderr
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def exported_then(directory: Path) -> list[dict[str, object]]:
    """What release 0.1 exported, without the sitemaps that it took for pages."""
    text = (directory.parent / "pages.jsonl").read_text()
    return [record for record in map(json.loads, text.splitlines()) if record["depth"] >= 0]


def same(now: list[dict[str, object]], then: list[dict[str, object]]) -> bool:
    """Whether the records agree in every field that release 0.1 had."""
    return [{name: record[name] for name in then[0]} for record in now] == then


@pytest.mark.parametrize("name", ["finished-1", "interrupted-1"])
def test_export_of_an_earlier_release_has_the_same_records(tmp_path: Path, name: str) -> None:
    """Field for field and in the same order, but for the sitemaps."""
    directory = unpacked(name, tmp_path)

    assert same(records(directory), exported_then(directory))


def test_status_of_an_earlier_release_counts_pages_and_lists(finished: Path) -> None:
    """Sitemaps are lists, and the file holds together."""
    facts = json.loads(invoke("status", finished, "--json").stdout)
    total = facts["total"]

    assert facts["state"] == "finished"
    assert (total["fetched"], total["lists"]) == (len(exported_then(finished)), 1)
    assert (total["failed"], total["skipped"], total["queued"]) == (0, 1, 0)
    assert examine(finished, 0) == []


def test_status_of_an_interrupted_crawl_of_an_earlier_release(interrupted: Path) -> None:
    """Queued, waiting and outgoing URLs are all there."""
    facts = json.loads(invoke("status", interrupted, "--json").stdout)
    total = facts["total"]

    assert facts["state"] == "stopped"
    assert (total["fetched"], total["lists"]) == (6, 2)
    assert (total["queued"], total["waiting"], total["outgoing"]) == (10, 6, 4)
    assert [examine(interrupted, shard) for shard in range(2)] == [[], []]


def test_links_between_shards_get_a_kind(interrupted: Path) -> None:
    """Of an outbox and of an inbox, the sitemap among them."""
    with closing(open_crawl(interrupted)) as crawl:
        sent = [link for shard in range(2) for link in crawl.read(shard).outgoing()]
        unread = [link for shard in range(2) for link in crawl.unread_links(shard)]

    for links in (sent, unread):
        assert [(link.url.rpartition("/")[2], link.depth, link.kind) for link in links] == [
            ("late", 2, Kind.PAGE),
            ("sitemap-late.xml", 0, Kind.SITEMAP),
        ]
    explained = json.loads(invoke("explain", interrupted, sent[0].url, "--json").stdout)
    assert (explained["state"], explained["found_by"]) == ("queued", [SEEDS[0]])


def resume(directory: Path) -> None:
    command = [sys.executable, "-m", "mannerly", "resume", str(directory), "--max-urls=99", "-q"]
    subprocess.run(command, check=True, timeout=PATIENCE_S, cwd=directory.parent)


@pytest.mark.processes
def test_resume_of_an_earlier_release_fetches_the_rest_once(interrupted: Path) -> None:
    """Nothing is lost, nothing is fetched again, and the earlier records are as they were."""
    with served():
        resume(interrupted)

    found = records(interrupted)
    then = exported_then(interrupted)
    kept = [record for record in found if record["url"] in {each["url"] for each in then}]
    assert same(kept, then)
    assert sorted(str(record["url"]) for record in found) == sorted(
        url for host in HOSTS for url in every_page(host)
    )
    assert json.loads(invoke("status", interrupted, "--json").stdout)["state"] == "finished"


@pytest.mark.processes
def test_resume_of_a_finished_crawl_sends_nothing(finished: Path) -> None:
    """There is no server, and no request fails."""
    resume(finished)

    assert same(records(finished), exported_then(finished))


KILLED = (
    KILLED_AT
    + """
from mannerly.crawler.store import open_crawl
open_crawl(sys.argv[1]).close()
"""
)


@pytest.mark.processes
def test_a_migration_that_is_killed_goes_on_at_the_next_open(tmp_path: Path) -> None:
    """At whichever statement: the directory opens, and has the same records."""
    wrong = []
    kills = 0
    for number in range(0, 2000, 16):
        directory = unpacked("interrupted-1", tmp_path / str(number))
        command = [sys.executable, "-c", KILLED, str(directory), str(number)]
        killed = subprocess.run(command, check=False, timeout=PATIENCE_S)
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL
        kills += 1
        is_same = same(records(directory), exported_then(directory))
        if not is_same or any(examine(directory, shard) for shard in range(2)):
            wrong.append(number)

    assert kills > 10
    assert wrong == []


def test_an_earlier_release_at_work_is_left_alone(interrupted: Path) -> None:
    """Exit code 4 and the process, whichever lock it holds; nothing is changed."""
    before = {file.name: file.read_bytes() for file in interrupted.glob("*.db")}
    shard = OwnerLock(interrupted / "shard-1.lock", what=interrupted)
    try:
        outcome = invoke("status", interrupted)
    finally:
        shard.release()

    assert outcome.exit_code == 4
    assert f"in use by pid {os.getpid()}" in outcome.stderr
    assert {file.name: file.read_bytes() for file in interrupted.glob("*.db")} == before


def test_a_damaged_directory_of_an_earlier_release_is_refused(interrupted: Path) -> None:
    """Exit code 4 and what to do."""
    connection = apsw.Connection(str(interrupted / "shard-1.db"))
    connection.execute("UPDATE outbox SET text = substr(text, 1, 9)")
    connection.close()

    outcome = invoke("status", interrupted)

    assert outcome.exit_code == 4
    assert "--fresh" in outcome.stderr


def test_a_directory_of_an_earlier_release_can_be_wiped(interrupted: Path) -> None:
    """Starting over needs no migration."""
    wipe(interrupted)

    assert not interrupted.exists()


# ---------------------------------------------------------------------- the present format


def schema(file: Path) -> tuple[object, ...]:
    """Everything that a reader of a database relies on."""
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        tables = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        marks = [connection.pragma(name) for name in ("application_id", "user_version")]
    finally:
        connection.close()
    return (tables, *marks)


def test_the_schema_is_that_of_the_fixture(tmp_path: Path) -> None:
    """A changed table, column or manifest needs a new FORMAT, a migration and a new fixture."""
    stored = unpacked(f"crawl-{FORMAT}", tmp_path)
    create_crawl(tmp_path / "new", new_manifest(2)).close()
    new = tmp_path / "new"

    for name in ("shard-0.db", "inbox-0.db", "control.db"):
        assert schema(new / name) == schema(stored / name), f"{name} differs from crawl-{FORMAT}"
    manifests = [json.loads((each / "crawl.json").read_bytes()) for each in (new, stored)]
    assert manifests[0].keys() == manifests[1].keys()


@pytest.mark.parametrize("number", [6, FORMAT])
def test_everything_in_a_fixture_is_read_as_it_was_written(tmp_path: Path, number: int) -> None:
    """Pages, queue, waiting room, links, control records and suspects; a migration changes none."""
    here = SHARDING.shard_of("a.example")
    directory = unpacked(f"crawl-{number}", tmp_path)
    with closing(open_crawl(directory)) as crawl:
        pages = [record for shard in range(2) for _, record in crawl.read(shard).pages()]
        pages = [record for record in pages if record.url != KEPT]
        with crawl.claim(here, ShardOptions(frontier_limit=1)) as store:
            (queued,) = store.queued("a.example", after=(-1, -1), limit=9)

            assert sorted(pages) == sorted(PAGES)
            assert queued.url == QUEUED
            assert store.counts().waiting == 1
            assert dict(store.suspects) == {queued.seq: 1}
            assert list(store.outgoing()) == LINKS
            assert store.counts().applied == 1
            assert store.has_payloads == (number == FORMAT)
            if number == FORMAT:
                assert store.labelled([REQUEST.url]) == {REQUEST.url}
        assert list(crawl.unread_links(1 - here)) == LINKS
        assert [order for _, order in crawl.orders()] == ORDERS
    assert [examine(directory, shard) for shard in range(2)] == [[], []]


def test_given_up_urls_of_an_earlier_release_can_be_brought_back(finished: Path) -> None:
    """They are told apart from skipped ones by their reasons, and failed pages from fetched."""
    connection = apsw.Connection(str(finished / "shard-0.db"))
    connection.execute("UPDATE skipped SET reason = 'host_retired: 20 in a row'")
    ((lost_then,),) = connection.execute("SELECT url FROM skipped").fetchall()
    failed_then = SEEDS[0]
    connection.execute("UPDATE pages SET status = NULL WHERE url = ?", (failed_then,))
    connection.execute("UPDATE totals SET failed = 1")
    fetched = len(exported_then(finished)) - 1
    connection.close()

    with (
        closing(open_crawl(finished)) as crawl,
        crawl.claim(0, ShardOptions(frontier_limit=9)) as store,
    ):
        before = store.counts()
        lost = [each.url for each in store.given_up()]
        store.commit(Batch(retries=[RetryUrls()]))
        back = sum(len(each.new) + each.waiting for each in [store.bring_back(9) for _ in "12"])

        assert (before.fetched, before.failed) == (fetched, 1)
        assert (before.given_up, before.skipped, before.lists) == (1, 0, 1)
        assert lost == [lost_then]
        assert back == 2
        assert isinstance(store.find(lost_then), Entry)
    assert examine(finished, 0) == []


def test_refused_pages_of_an_earlier_format_have_failed(tmp_path: Path) -> None:
    """They were counted as fetched; after the migration they can be brought back."""
    directory = unpacked("crawl-6", tmp_path)
    here = SHARDING.shard_of("a.example")
    connection = apsw.Connection(str(directory / f"shard-{here}.db"))
    connection.execute("UPDATE pages SET status = 503 WHERE url = ?", (KEPT,))
    ((fetched, failed),) = connection.execute("SELECT fetched, failed FROM totals").fetchall()
    connection.execute("UPDATE hosts SET fetched = 5 WHERE host = 'a.example'")
    connection.close()

    with (
        closing(open_crawl(directory)) as crawl,
        crawl.claim(here, ShardOptions(frontier_limit=99)) as store,
    ):
        before, host = store.counts(), store.host("a.example")
        store.commit(Batch(retries=[RetryUrls(given_up=False)]))
        store.bring_back(99)

        assert isinstance(store.find(KEPT), Entry)
    assert (before.fetched, before.failed) == (fetched - 1, failed + 1)
    assert host is not None
    assert (host.fetched, host.failed) == (4, 1)
    assert examine(directory, here) == []


def test_what_was_given_up_and_marked_is_in_the_fixture(tmp_path: Path) -> None:
    """Given-up URLs and the times and marks of pages, as they were written."""
    with closing(open_crawl(unpacked(f"crawl-{FORMAT}", tmp_path))) as crawl:
        found = {each.url: each.reason for n in range(2) for each in crawl.read(n).given_up()}

    assert found == GIVEN_UP


@pytest.mark.parametrize("number", [6, FORMAT])
def test_links_and_what_sitemaps_say_are_in_the_fixture(tmp_path: Path, number: int) -> None:
    """The elements of a page, and the lastmod of its sitemap, as they were written."""
    here = SHARDING.shard_of("a.example")
    with closing(open_crawl(unpacked(f"crawl-{number}", tmp_path))) as crawl:
        reader = crawl.read(here)
        found = {record.url: (record, each) for record, each in reader.elements()}

    record, elements = found[KEPT]
    assert (record.in_sitemap, record.lastmod) == (True, LISTED[0].lastmod)
    assert (record.lang, record.etag) == ("en", '"1"')
    assert elements == ELEMENTS


def test_answers_and_items_are_in_the_fixture(tmp_path: Path) -> None:
    """The place of an answer, the length of its segment, and what was extracted."""
    here = SHARDING.shard_of("a.example")
    directory = unpacked(f"crawl-{FORMAT}", tmp_path)
    with closing(open_crawl(directory)) as crawl, crawl.read(here) as reader:
        places = [place for _, _, place in reader.kept_pages() if place is not None]
        items = [each for _, _, each in reader.items()]

        assert reader.segments() == {PLACE.segment: PLACE.length}
    assert places == [PLACE]
    assert items == [ITEMS]


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    """Both numbers are named, and nothing is changed."""
    directory = unpacked(f"crawl-{FORMAT}", tmp_path)
    manifest = directory / "crawl.json"
    manifest.write_text(manifest.read_text().replace(f'"format": {FORMAT}', '"format": 99'))

    with pytest.raises(StoreError, match=f"format 99, and .* knows format {FORMAT}"):
        open_crawl(directory)


@pytest.mark.parametrize(
    ("number", "reader"),
    [
        *((number, "revision 1971ab0 can read") for number in (2, 3, 4, 5)),
        (7, "version that wrote it"),
    ],
)
def test_a_format_that_was_never_released_is_refused(
    tmp_path: Path, number: int, reader: str
) -> None:
    """Exit code 4 and the version that can read it; nothing is changed."""
    directory = unpacked("crawl-6", tmp_path)
    manifest = directory / "crawl.json"
    manifest.write_text(manifest.read_text().replace('"format": 6', f'"format": {number}'))
    before = {file.name: file.read_bytes() for file in directory.iterdir()}

    outcome = invoke("status", directory)

    assert outcome.exit_code == 4
    assert f"has format {number}, " in outcome.stderr
    assert reader in " ".join(outcome.stderr.split())
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == before


@pytest.mark.processes
def test_two_commands_may_migrate_at_the_same_time(interrupted: Path) -> None:
    """The second waits for the first, and finds its work done."""
    code = "import sys; from mannerly.crawler.store import open_crawl; open_crawl(sys.argv[1])"
    command = [sys.executable, "-c", code, str(interrupted)]
    both = [subprocess.Popen(command) for _ in range(2)]

    assert [each.wait(PATIENCE_S) for each in both] == [0, 0]
    assert same(records(interrupted), exported_then(interrupted))


def test_a_held_crawl_of_an_earlier_release_is_in_use(
    interrupted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run is named."""
    monkeypatch.setattr("mannerly.crawler.store.sqlite.migration._PATIENCE_S", 0.0)
    lock = OwnerLock(interrupted / "lock", what=interrupted)
    try:
        with pytest.raises(StoreInUse, match=f"in use by pid {os.getpid()}"):
            open_crawl(interrupted)
    finally:
        lock.release()
