"""The store on disk keeps the contract, and what a file adds: reopening, refusing, readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import pytest
from tests.crawler.store.checkup import examine

from mannerly.crawler.model import HostRecord, Skipped
from mannerly.crawler.store.base import Batch, ShardOptions, StoreError
from mannerly.crawler.store.contract import (
    START,
    StoreContract,
    candidate,
    counts,
    offer,
    page,
)
from mannerly.crawler.store.sqlite.inbox import inbox_path, unread
from mannerly.crawler.store.sqlite.reader import SqliteReader, shard_path
from mannerly.crawler.store.sqlite.schema import SHARD
from mannerly.crawler.store.sqlite.shard import CARRY_OVER, SqliteStore, create_shard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def open_shard(directory: Path, shard: int = 0, *, shards: int = 1) -> SqliteStore:
    return SqliteStore(directory, shard, ShardOptions(100_000), shards=shards)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with one empty shard."""
    create_shard(tmp_path, 0, shards=1)
    return tmp_path


def damage(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def location(self, tmp_path: Path) -> Iterator[str]:
        path = tmp_path / "crawl"
        yield str(path)
        for file in path.glob("shard-*.db"):
            assert examine(path, int(file.stem.partition("-")[2])) == []


def test_everything_is_there_after_reopening(directory):
    """Queue, pages, skipped, hosts, totals and numbers go on where they stopped."""
    with open_shard(directory) as store:
        paths = ("/1", "/2", "/no")
        done, queued, no = store.commit(offer(candidate(path) for path in paths)).new
        record = HostRecord(host="a.example", adaptive_delay_s=0.3)
        store.commit(Batch(pages=[(done, page(done))], dropped=[(no, "robots")], hosts=[record]))

    with open_shard(directory) as store:
        (new,) = store.commit(offer([candidate("/3"), candidate("/1"), candidate("/no")])).new

        assert store.queued("a.example", after=START, limit=9) == [queued, new]
        assert [found for _, found in store.pages()] == [page(done)]
        assert list(store.skipped()) == [Skipped(no.url, "robots", no.depth, no.parent)]
        assert store.host("a.example") == record
        assert new.seq > queued.seq
        assert store.counts() == counts(queued=2, fetched=1, skipped=1, hosts=1)


def test_arrivals_are_carried_over_into_the_index_without_a_trace(directory):
    """URLs are known, found and listed once, before and after they were carried over."""
    urls = [candidate(f"/{n}") for n in range(CARRY_OVER)]
    with open_shard(directory) as store:
        store.commit(offer(urls))
        store.commit(offer([candidate("/one-more")]))

        again = store.commit(offer([*urls[:50], candidate("/one-more")]))

        assert again.new == []
        assert sum(1 for _ in store.urls()) == CARRY_OVER + 1
        assert store.find(urls[7].url) == store.queued("a.example", after=START, limit=8)[7]
    assert examine(directory, 0) == []


def test_urls_carried_over_while_they_are_listed_are_listed_once(directory):
    """A list that was begun before a carry-over has no URL twice and misses none."""
    urls = [candidate(f"/{n}") for n in range(CARRY_OVER)]
    with open_shard(directory) as store:
        store.commit(offer(urls))
        listing = store.urls()
        first = next(listing)
        store.commit(offer([candidate("/one-more")]))

        listed = [first, *listing]

    assert len(listed) == len(set(listed))
    assert set(listed) >= {url.url for url in urls}


def test_an_unusable_batch_changes_nothing(directory):
    """Text that cannot be stored fails the whole batch, and the store goes on."""
    with open_shard(directory) as store:
        (entry,) = store.commit(offer([candidate()])).new
        broken = page(entry)._replace(title="\ud800")

        with pytest.raises(UnicodeEncodeError):
            store.commit(Batch(pages=[(entry, broken)], found=[candidate(host="new.example")]))

        assert store.counts() == counts(queued=1, hosts=1)
        store.commit(Batch(found=[candidate(host="new.example")]))
        assert store.counts() == counts(queued=2, hosts=2)
    assert examine(directory, 0) == []


def test_a_reader_beside_the_owner_sees_the_last_commit(directory):
    """Another connection reads everything and writes nothing."""
    with open_shard(directory) as store, SqliteReader.beside(directory, 0) as reader:
        (entry,) = store.commit(offer([candidate()])).new

        assert reader.counts() == counts(queued=1, hosts=1)
        assert reader.find(entry.url) == entry
        assert list(reader.urls()) == [entry.url]
        assert repr(reader) == f"<SqliteReader {directory / 'shard-0.db'}>"


def test_a_reader_does_not_make_the_log_grow(directory):
    """Reading pages slowly while commits go on leaves the log as short as without a reader."""
    with open_shard(directory) as store:
        entries = store.commit(offer(candidate(f"/{n}") for n in range(3000))).new
        store.commit(Batch(pages=[(entry, page(entry)) for entry in entries]))
        reading = store.pages()
        next(reading)

        for number in range(60):
            store.commit(offer(candidate(f"/{number}/{n}", f"{n}.example") for n in range(200)))

        assert sum(1 for _ in reading) == 2999
        assert (directory / "shard-0.db-wal").stat().st_size < 24 << 20


def test_a_shard_has_one_owner(directory):
    """A second owner is refused with the first one's pid, and let in when that one is gone."""
    with open_shard(directory), pytest.raises(StoreError, match=r"in use by pid \d+"):
        open_shard(directory)

    open_shard(directory).close()


def test_a_missing_file_is_not_replaced_by_an_empty_one(tmp_path):
    """Opening a shard that is not there says so and makes nothing."""
    with pytest.raises(StoreError, match=r"shard-0\.db is missing"):
        open_shard(tmp_path)

    assert not shard_path(tmp_path, 0).exists()


def test_a_missing_inbox_is_noticed(directory):
    """A lost inbox may have held links: it is not replaced by an empty one."""
    inbox_path(directory, 0).unlink()

    with open_shard(directory) as store, pytest.raises(StoreError, match=r"inbox-0\.db is missing"):
        store.receive(10)


def test_an_empty_file_is_refused(directory):
    """A file of no bytes is not taken for a new shard."""
    shard_path(directory, 0).write_bytes(b"")

    with pytest.raises(StoreError, match="not a shard file"):
        open_shard(directory)


def test_a_file_of_something_else_is_refused_untouched(tmp_path):
    """Another program's database is left as it is."""
    path = shard_path(tmp_path, 0)
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match="choose another --data-dir"):
        open_shard(tmp_path)

    assert path.read_bytes() == before


def test_an_inbox_is_no_shard(directory):
    """Files of ours that were swapped are told apart."""
    inbox_path(directory, 0).replace(shard_path(directory, 0))

    with pytest.raises(StoreError, match="not a shard file"):
        open_shard(directory)


@pytest.mark.parametrize("version", [SHARD.version - 1, SHARD.version + 1])
def test_another_format_is_refused_with_what_to_do(directory, version):
    """A file of a newer or older version names both versions."""
    other = apsw.Connection(str(shard_path(directory, 0)))
    other.execute(f"PRAGMA user_version = {version}")
    other.close()

    with pytest.raises(StoreError, match=f"format {version}.*knows format {SHARD.version}"):
        open_shard(directory)


def test_a_file_of_another_shard_is_refused(tmp_path):
    """Renamed files cannot mix two shards' URLs."""
    create_shard(tmp_path, 1, shards=2)
    shard_path(tmp_path, 1).rename(shard_path(tmp_path, 0))

    with pytest.raises(StoreError, match="is not shard 0 of 1"):
        open_shard(tmp_path)


def test_a_damaged_header_is_refused_with_what_to_do(directory):
    """A file that is no database any more says so and names ways out."""
    damage(shard_path(directory, 0), 0, b"\xff" * 64)

    with pytest.raises(StoreError, match=r"damaged.*doctor --repair.*--fresh"):
        open_shard(directory)


def test_damage_further_in_is_found_when_it_is_read(directory):
    """A flipped page raises an error of ours, and the checkup finds it too."""
    with open_shard(directory) as store:
        store.commit(offer(candidate(f"/{n}", f"{n}.example") for n in range(3000)))
    damage(shard_path(directory, 0), 40 * 4096, b"\xff" * 4096 * 40)

    with pytest.raises(StoreError, match="damaged"), open_shard(directory) as store:
        [store.queued(f"{n}.example", after=START, limit=9) for n in range(3000)]

    with pytest.raises(StoreError, match="damaged"):
        assert examine(directory, 0) == []


def test_a_failed_open_leaves_the_shard_free(directory):
    """The lock is given back when the file is refused."""
    good = shard_path(directory, 0).read_bytes()
    damage(shard_path(directory, 0), 0, b"\xff" * 64)
    with pytest.raises(StoreError):
        open_shard(directory)

    shard_path(directory, 0).write_bytes(good)

    open_shard(directory).close()


def test_an_inbox_that_is_busy_is_left_for_the_next_round(tmp_path):
    """A sender does not fail or wait long when another process has the inbox."""
    for shard in range(2):
        create_shard(tmp_path, shard, shards=2)
    other = apsw.Connection(str(inbox_path(tmp_path, 1)))
    with open_shard(tmp_path, 0, shards=2) as store:
        store.commit(Batch(outgoing=[(1, candidate(host="b.example"))]))
        other.execute("BEGIN IMMEDIATE")

        while_busy = store.deliver()
        other.execute("COMMIT")
        afterwards = store.deliver()

    other.close()
    assert (while_busy, afterwards) == (0, 1)
    assert (unread(tmp_path, 0), unread(tmp_path, 1)) == (0, 1)


def test_a_full_inbox_is_read_as_far_as_wanted(tmp_path):
    """What has piled up behind the links that are taken now costs nothing: it is not opened."""
    for shard in range(2):
        create_shard(tmp_path, shard, shards=2)
    with open_shard(tmp_path, 0, shards=2) as store:
        for number in range(3):
            store.commit(Batch(outgoing=[(1, candidate(f"/{number}", "b.example"))]))
        store.deliver()
    other = apsw.Connection(str(inbox_path(tmp_path, 1)))
    other.execute("UPDATE link_batches SET links = 'damaged' WHERE id = 3")
    other.close()

    with open_shard(tmp_path, 1, shards=2) as owner:
        received = owner.receive(2).new

    assert [entry.url for entry in received] == ["https://b.example/0", "https://b.example/1"]
    assert unread(tmp_path, 1) == 1


def test_a_damaged_batch_of_links_stops_the_crawl_and_is_kept(tmp_path):
    """Its links cannot be read, so it is neither passed over nor thrown away."""
    for shard in range(2):
        create_shard(tmp_path, shard, shards=2)
    with open_shard(tmp_path, 0, shards=2) as store:
        store.commit(Batch(outgoing=[(1, candidate(host="b.example"))]))
        store.deliver()
    other = apsw.Connection(str(inbox_path(tmp_path, 1)))
    other.execute("UPDATE link_batches SET links = substr(links, 1, 9)")
    other.close()

    with open_shard(tmp_path, 1, shards=2) as owner:
        with pytest.raises(StoreError, match="batch of links between two shards is damaged"):
            owner.receive(10)

        assert owner.counts() == counts()
    assert unread(tmp_path, 1) == 1
