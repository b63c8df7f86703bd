"""Notes of requests that are sent once, on a disk that is full or has lost power."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.model import Candidate, Entry
from mannerly.crawler.payload import payload
from mannerly.crawler.store.base import Batch, ShardOptions, StoreFull
from mannerly.crawler.store.sqlite.notes import AcknowledgedLog, SentLog, read_sent
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://a.example/order"


def store_of(directory: Path) -> SqliteStore:
    return SqliteStore(directory, 0, ShardOptions(frontier_limit=99), shards=1)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    create_shard(tmp_path, 0, shards=1)
    return store_of(tmp_path)


def queue(store: SqliteStore) -> Entry:
    """Queue a POST."""
    made = payload(method="POST", body=b"tea")
    assert made is not None
    found = Candidate(URL, "a.example", 1, 5, None, 0, made.kind, made)
    (entry,) = store.commit(Batch(found=[found])).new
    return entry


def fill(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Let a disk have room for so many more bytes of each write."""
    write = os.write

    def short(descriptor: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:room])

    monkeypatch.setattr(os, "write", short)


@pytest.mark.parametrize("room", [0, 3])
def test_a_note_without_room_leaves_no_part_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """The crawl waits for room, and later notes are read as they were written."""
    log = SentLog(tmp_path, 0, durable=False)
    log.add(1)
    with monkeypatch.context() as patched:
        fill(patched, room)
        with pytest.raises(StoreFull):
            log.add(2)

    log.add(3)
    log.close()

    assert read_sent(tmp_path, 0) == {1, 3}


def test_a_part_of_a_note_from_before_is_cut_off(tmp_path: Path) -> None:
    """As a power cut leaves it."""
    (tmp_path / "shard-0.sent").write_bytes(bytes(3))

    log = SentLog(tmp_path, 0, durable=False)
    log.add(1)
    log.close()

    assert read_sent(tmp_path, 0) == {1}


def test_an_acknowledgement_without_room_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the words of the store."""
    log = AcknowledgedLog(tmp_path, 0)
    fill(monkeypatch, 0)

    with pytest.raises(StoreFull, match=r"shard-0\.done"):
        log.add(1)
    log.close()


def test_a_commit_stands_although_a_note_fails_after_it(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next owner drops the note."""
    entry = queue(store)
    store.note_sent(entry.seq)
    with monkeypatch.context() as patched:
        fill(patched, 0)
        store.commit(Batch(dropped=[(entry, "excluded")]))
    store.close()

    again = store_of(tmp_path)
    unanswered, skipped = set(again.unanswered), [each.url for each in again.skipped()]
    again.close()

    assert (unanswered, skipped) == (set(), [URL])
    assert read_sent(tmp_path, 0) == set()


def test_a_note_of_a_request_that_a_power_cut_has_taken_is_dropped(
    store: SqliteStore, tmp_path: Path
) -> None:
    """Its number will be that of another request."""
    store.note_sent(1)
    store.close()

    again = store_of(tmp_path)
    entry = queue(again)
    unanswered = set(again.unanswered)
    again.close()

    assert entry.seq == 1
    assert unanswered == set()
    assert read_sent(tmp_path, 0) == set()
