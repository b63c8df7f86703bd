"""The elements of pages in a file: compressed in streams, read in any order, bounded."""

from __future__ import annotations

import random
import zlib
from itertools import count
from typing import TYPE_CHECKING

import apsw
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crawler.store.store_disk import FailingDisk

from mannerly.crawler.store import zstd
from mannerly.crawler.store.base import Batch, ShardOptions, StoreError, StoreFull
from mannerly.crawler.store.contract import candidate, offer, page
from mannerly.crawler.store.element_streams import (
    BLOCK_BYTES,
    LARGEST,
    STREAM_BYTES,
    ElementStream,
    StreamDamaged,
    StreamReader,
    in_blocks,
    packed,
    unpacked,
)
from mannerly.crawler.store.sqlite.elements import MANY
from mannerly.crawler.store.sqlite.reader import SqliteReader
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

OPTIONS = ShardOptions(frontier_limit=10**6)
MENU = b"utf-8" + b"".join(b"\0/menu/%d\0Entry %d" % (n, n) for n in range(30))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    create_shard(tmp_path, 0, shards=1)
    return tmp_path


def opened(directory: Path, vfs: str | None = None) -> SqliteStore:
    return SqliteStore(directory, 0, OPTIONS, shards=1, vfs=vfs)


def keep(store: SqliteStore, contents: Sequence[bytes], first: int = 0) -> list[str]:
    """Record as many pages, in one commit; return their URLs."""
    new = store.commit(offer([candidate(f"/{first + n}") for n in range(len(contents))])).new
    elements = {each.seq: content for each, content in zip(new, contents, strict=True)}
    store.commit(Batch(pages=[(each, page(each)) for each in new], elements=elements))
    return [each.url for each in new]


def rows(directory: Path, query: str, *values: object) -> list[tuple[object, ...]]:
    """Read or change the file as another program would."""
    connection = apsw.Connection(str(directory / "shard-0.db"))
    try:
        return connection.execute(query, values).fetchall()  # type: ignore[arg-type]
    finally:
        connection.close()


def streams(directory: Path) -> int:
    return len(rows(directory, "SELECT DISTINCT begins FROM elements"))


@given(
    commits=st.lists(st.lists(st.binary(max_size=60), max_size=5), min_size=1, max_size=6),
    failing=st.sets(st.integers(0, 5)),
    reopened=st.sets(st.integers(0, 5)),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_what_is_kept_is_read_in_any_order(
    tmp_path_factory: pytest.TempPathFactory,
    commits: list[list[bytes]],
    failing: set[int],
    reopened: set[int],
    seed: int,
) -> None:
    """Whatever the elements, after commits that failed, restarts, and while more is written."""
    directory = tmp_path_factory.mktemp("store")
    create_shard(directory, 0, shards=1)
    disk = FailingDisk(dies=False, error=apsw.FullError)
    kept: dict[str, bytes] = {}
    store = opened(directory, disk.name)
    reader = SqliteReader.beside(directory, 0)
    for number, contents in enumerate(commits):
        if number in reopened:
            store.close()
            store = opened(directory, disk.name)
        found = [candidate(f"/{number}/{n}") for n in range(len(contents))]
        new = store.commit(offer(found)).new
        elements = {each.seq: content for each, content in zip(new, contents, strict=True)}
        batch = Batch(pages=[(each, page(each)) for each in new], elements=elements)
        if number in failing and new:
            disk.arm(0)
            with pytest.raises(StoreFull):
                store.commit(batch)
        store.commit(batch)
        kept |= dict(zip([each.url for each in new], contents, strict=True))
        assert [content for _, content in reader.elements()] == list(kept.values())

    urls = list(kept)
    random.Random(seed).shuffle(urls)
    with store, reader, SqliteReader.beside(directory, 0) as fresh:
        assert [fresh.elements_of(url) for url in urls] == [kept[url] for url in urls]
        assert [content for _, content in store.elements()] == list(kept.values())


def test_pages_that_are_alike_take_little_room(directory: Path) -> None:
    """Also where every page has a commit of its own, as in a slow crawl."""
    with opened(directory) as store:
        for number in range(50):
            keep(store, [MENU + b"\0/page/%d\0Next" % number], number)
    sizes = [size for (size,) in rows(directory, "SELECT length(data) FROM elements")]

    assert len(sizes) == 50
    assert sum(map(int, sizes[1:])) < 49 * 40  # type: ignore[call-overload]
    assert streams(directory) == 1


def test_a_stream_ends_and_a_fast_crawl_begins_its_own(directory: Path) -> None:
    """So reading one page takes bounded work, and a fast crawl does not compress as hard."""
    noise = random.Random(1)
    pages = count()

    def commit(store: SqliteStore, number: int, size: int) -> list[str]:
        contents = [noise.randbytes(size) for _ in range(number)]
        return keep(store, contents, next(pages) * 1000)

    with opened(directory) as store:
        commit(store, 1, 10)
        commit(store, MANY, 10)
        fast = streams(directory)
        commit(store, 1, 10)
        same = streams(directory)
        commit(store, 9, STREAM_BYTES // 8)
        (url,) = commit(store, 1, 10)
        full = streams(directory)

        assert (fast, same, full) == (2, 2, 3)
        assert len(store.elements_of(url) or b"") == 10


def test_a_commit_of_many_bytes_is_several_rows() -> None:
    """None of them is more than a reader takes."""
    blocks = list(in_blocks({seq: bytes(BLOCK_BYTES // 2) for seq in range(5)}))

    assert [list(block) for block in blocks] == [[0, 1], [2, 3], [4]]
    assert list(in_blocks({})) == []
    assert 2 * BLOCK_BYTES + STREAM_BYTES < LARGEST


def test_rows_of_an_earlier_release_are_read_beside_new_ones(directory: Path) -> None:
    """Each of them was compressed alone, with zlib; revision 1971ab0 has left them so."""
    with opened(directory) as store:
        (earlier,) = keep(store, [b"replaced below"])
    alone = zlib.compress(msgspec.msgpack.encode([MENU]))
    connection = apsw.Connection(str(directory / "shard-0.db"))
    connection.execute("UPDATE elements SET begins = 0, data = ?", (alone,))
    connection.close()

    with opened(directory) as store:
        (later,) = keep(store, [b"utf-8"], first=1)

        assert [store.elements_of(url) for url in (later, earlier)] == [b"utf-8", MENU]


DAMAGES = {
    "truncated": "UPDATE elements SET data = substr(data, 1, length(data) - 3) WHERE first = 3",
    "other bytes": "UPDATE elements SET data = x'00112233445566778899' WHERE first = 3",
    "empty": "UPDATE elements SET data = x'' WHERE first = 3",
    "text": "UPDATE elements SET data = 'text' WHERE first = 3",
    "a row is missing": "DELETE FROM elements WHERE first = 3",
    "begins later": "UPDATE elements SET begins = 99 WHERE first = 4",
    "begins in the middle": "UPDATE elements SET begins = 3 WHERE first = 4",
    "begins nowhere": "UPDATE elements SET begins = 'x' WHERE first = 4",
    "begins below zero": "UPDATE elements SET begins = -5 WHERE first = 4",
    "as if of an earlier release": "UPDATE elements SET begins = 0 WHERE first = 4",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_elements_are_named(directory: Path, damage: str) -> None:
    """The file and what to do; pages before the damage are still read."""
    with opened(directory) as store:
        urls = [keep(store, [MENU + b"%d" % number], number)[0] for number in range(5)]
    rows(directory, DAMAGES[damage])

    with opened(directory) as store:
        assert store.elements_of(urls[0]) == MENU + b"0"
        with pytest.raises(StoreError, match=r"shard-0.db is damaged \(.*doctor --repair"):
            store.elements_of(urls[3])
        assert store.elements_of(urls[1]) == MENU + b"1"


def bomb(size: int) -> bytes:
    return zstd.compress(bytes(size))


@pytest.mark.parametrize(
    "data", [bomb(LARGEST + 1), bomb(4 * LARGEST), b"", b"\xc1", b"(\xb5/\xfd", "text", None]
)
def test_a_forged_stream_is_refused_in_bounded_memory(data: object) -> None:
    """More than a reader takes, no frame at all, or no elements in it."""
    with pytest.raises(StreamDamaged):
        StreamReader().next(data)


def test_a_stream_that_looks_back_too_far_is_refused() -> None:
    """The window is memory of the reader, and the stream says how large it is."""
    options = {zstd.CompressionParameter.window_log: 27}
    compressor = zstd.ZstdCompressor(options=options)
    data = compressor.compress(b"\x91\xc4\x01x", compressor.FLUSH_BLOCK)

    with pytest.raises(StreamDamaged):
        unpacked(data)


@given(st.lists(st.lists(st.binary(max_size=40), max_size=4), max_size=6), st.booleans())
def test_a_stream_gives_back_what_was_added(commits: list[list[bytes]], is_fast: bool) -> None:
    """Commit by commit; and so does what was packed alone."""
    stream, reader = ElementStream(is_fast=is_fast), StreamReader()

    assert [reader.next(stream.add(each)) for each in commits] == commits
    assert [unpacked(packed(each)) for each in commits] == commits
