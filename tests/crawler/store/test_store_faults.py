"""Whatever fails, and whenever: nothing is lost, recorded twice, or half there."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

import apsw
import pytest
from tests.crawler.store.checkup import examine
from tests.crawler.store.store_crawl import PAGES, crawl, create_stores, link, opened, state
from tests.crawler.store.store_disk import FailingDisk
from virtual.store.memory import MemoryStore

from mannerly.crawler.store.base import Batch, ShardOptions, ShardStore, StoreError, StoreFull
from mannerly.crawler.store.contract import candidate, offer, page
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY_PAGE = sorted(link(number).url for number in range(PAGES))


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A crawl's empty files, to be copied: making them anew takes longer."""
    path = tmp_path / "template"
    path.mkdir()
    create_stores(path)
    return path


def crawl_files(directory: Path, disk: FailingDisk, *, durable: bool = False) -> None:
    """Crawl on what is in the directory, from wherever it stands."""
    with opened(directory, disk, durable=durable) as stores:
        crawl(stores)


def fetched(directory: Path) -> list[str]:
    """Every record of both shards, once the files were found to be whole."""
    assert [examine(directory, shard) for shard in range(2)] == [[], []]
    with opened(directory, FailingDisk()) as stores:
        return sorted(record.url for store in stores for _, record in store.pages())


def operations_of_a_crawl(template: Path) -> int:
    disk = FailingDisk()
    crawl_files(Path(copytree(template, template.with_name("whole"))), disk)
    return disk.operations


def test_a_crawl_survives_a_disk_that_dies_at_any_operation(tmp_path, template):
    """Every page is recorded once, whichever write, flush or removal was the last one."""
    operations = operations_of_a_crawl(template)
    wrong = {}

    for number in range(operations):
        directory = Path(copytree(template, tmp_path / str(number)))
        disk = FailingDisk()
        disk.arm(number)
        try:
            crawl_files(directory, disk)
        except StoreError:
            crawl_files(directory, FailingDisk())
        if (urls := fetched(directory)) != EVERY_PAGE:
            wrong[number] = urls

    assert operations > 100
    assert wrong == {}


@pytest.mark.parametrize("durable", [False, True])
def test_a_crawl_survives_a_power_cut_at_any_moment(tmp_path, template, durable):
    """Links on their way between two files are lost by neither, whatever the disk forgot."""
    operations = operations_of_a_crawl(template)
    wrong = {}

    for seed in range(40):
        rng = random.Random(seed)
        before, after = (
            Path(copytree(template, tmp_path / f"{seed}-{when}")) for when in ("before", "after")
        )
        disk = FailingDisk(power=True)
        disk.arm(rng.randrange(operations))
        with suppress(StoreError):  # closing keeps its failures to itself
            crawl_files(before, disk, durable=durable)
        disk.lose_power(rng, after)
        crawl_files(after, FailingDisk())
        if (urls := fetched(after)) != EVERY_PAGE:
            wrong[seed] = urls

    assert wrong == {}


def scripted(store: ShardStore) -> Iterator[Batch]:
    """Commits that touch every table, each made from what the store holds."""
    yield offer([candidate(f"/{n}") for n in range(6)])
    for number in range(10):
        host = "a.example" if number % 3 else "b.example"
        entries = store.queued(host, after=(-1, -1), limit=2)
        yield Batch(
            pages=[(entry, page(entry)) for entry in entries[:1]],
            dropped=[(entry, "robots") for entry in entries[1:]],
            found=[candidate(f"/{number}/{n}", host) for n in range(3)],
            outgoing=[(1, candidate(f"/{number}", "c.example"))],
            elements={entry.seq: f"links of {entry.url}".encode() for entry in entries[:1]},
        )


@pytest.mark.parametrize("durable", [False, True])
def test_a_power_cut_leaves_the_state_after_some_commit(tmp_path, template, durable):
    """The file opens, holds together, and equals an earlier state: with `durable`, the latest."""
    wrong = []

    for seed in range(30):
        rng = random.Random(seed)
        before, after = tmp_path / f"{seed}-before", tmp_path / f"{seed}-after"
        for directory in (before, after):
            copytree(template, directory)
        disk = FailingDisk(power=True)
        disk.arm(rng.randrange(5, 250))
        states, acknowledged = run_until_the_cut(before, disk, durable=durable)
        disk.lose_power(rng, after)
        allowed = states[acknowledged:] if durable else states
        with SqliteStore(after, 0, ShardOptions(4), shards=2) as store:
            found = state(store)
        if found not in allowed or examine(after, 0):
            wrong.append(seed)

    assert wrong == []


def run_until_the_cut(directory, disk, *, durable):
    """The states that a model went through, and how many commits the store acknowledged."""
    model = MemoryStore.group(2, frontier_limit=4)[0]
    states = [state(model)]
    acknowledged = 0
    store = None
    try:
        store = reopened(directory, disk, durable=durable)
        for batch in scripted(model):
            model.commit(batch)
            states.append(state(model))
            store.commit(batch)
            acknowledged += 1
            if acknowledged % 4 == 0:
                store.close()
                store = reopened(directory, disk, durable=durable)
    except StoreError:
        pass
    if store:
        store.close()
    return states, acknowledged


def reopened(directory, disk, *, durable):
    return SqliteStore(
        directory, 0, ShardOptions(4, durable=durable), shards=2, carry_over=5, vfs=disk.name
    )


def test_a_full_disk_is_told_apart_and_the_batch_can_be_offered_again(tmp_path):
    """At whichever write there is no room: nothing is half there, and with room it goes on."""
    model = MemoryStore.group(2, frontier_limit=4)[0]
    create_shard(tmp_path, 0, shards=2)
    disk = FailingDisk(dies=False, error=apsw.FullError)
    with SqliteStore(tmp_path, 0, ShardOptions(4), shards=2, carry_over=99, vfs=disk.name) as store:
        for number, batch in enumerate(scripted(model)):
            before = state(store)
            disk.arm(number % 4)

            with pytest.raises(StoreFull, match="free some disk space"):
                store.commit(batch)

            assert state(store) == before
            assert store.commit(batch) == model.commit(batch)
            assert state(store) == state(model)

    assert examine(tmp_path, 0) == []


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from mannerly.crawler.store.contract import candidate, offer, page
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.model import HostRecord
from mannerly.crawler.store.sqlite.shard import SqliteStore

store = SqliteStore(Path(sys.argv[1]), 0, ShardOptions(10**6), shards=1, carry_over=50)
store.commit(offer([candidate("/0/0")]))
number = store.counts().fetched
while True:
    (entry,) = store.queued("a.example", after=(-1, -1), limit=1)
    number += 1
    store.commit(Batch(
        pages=[(entry, page(entry))],
        found=[candidate(f"/{number}/{n}") for n in range(3)],
        hosts=[HostRecord(host="a.example", fetched=number)],
        elements={entry.seq: entry.url.encode()},
    ))
    print(number, flush=True)
"""


@pytest.mark.processes
def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path):
    """After each of ten kills every acknowledged commit is there, and the last one whole."""
    create_shard(tmp_path, 0, shards=1)
    rng = random.Random(1)

    for _ in range(10):
        acknowledged = run_and_kill(tmp_path, after=rng.randrange(1, 60))
        with SqliteStore(tmp_path, 0, ShardOptions(10**6), shards=1) as store:
            done = store.counts().fetched
            urls = {candidate(f"/{n}/{i}").url for n in range(1, done + 1) for i in range(3)}
            record = store.host("a.example")
            kept = [(record.url.encode(), elements) for record, elements in store.elements()]

            assert [elements for _, elements in kept] == [url for url, _ in kept]
            assert done >= acknowledged
            assert set(store.urls()) == urls | {candidate("/0/0").url}
            assert record is not None
            assert record.fetched == done
        assert examine(tmp_path, 0) == []


def run_and_kill(directory: Path, *, after: int) -> int:
    """The last commit that the process had acknowledged when it was killed."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(directory), __file__.rpartition("/")[0]],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child:
        for _ in range(after):
            child.stdout.readline()
        child.kill()
        rest = child.stdout.read().split()
        child.wait()
    return int(rest[-1]) if rest else after
