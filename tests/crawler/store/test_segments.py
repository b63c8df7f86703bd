"""Segments are valid up to what was committed, on full disks and after crashes."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.model import ArchivePlace
from mannerly.crawler.store.base import StoreError, StoreFull
from mannerly.crawler.store.segments import WRITE_AT, SegmentWriter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FIRST = "shard-3-1.warc.gz"


def begin(name: str) -> bytes:
    return f"<{name}>".encode()


def writer(
    folder: Path, committed: Mapping[str, int] | None = None, rotate_at: int = 1000
) -> SegmentWriter:
    return SegmentWriter(folder, "shard-3", committed or {}, rotate_at=rotate_at, begin=begin)


def test_record_is_where_its_place_says(tmp_path: Path) -> None:
    """After the first record of its segment, and after `flush`."""
    segments = writer(tmp_path)

    one, two = segments.append(b"one"), segments.append(b"twotwo")
    lengths = segments.flush()

    content = (tmp_path / FIRST).read_bytes()
    assert one == ArchivePlace(FIRST, len(begin(FIRST)), 3)
    assert content[two.offset :][: two.length] == b"twotwo"
    assert lengths == {FIRST: len(content)}
    segments.close()


def test_segments_are_private_to_their_owner(tmp_path: Path) -> None:
    """Mode 600, like the rest of a data directory."""
    segments = writer(tmp_path)
    segments.append(b"x")
    segments.flush()
    segments.close()

    assert (tmp_path / FIRST).stat().st_mode & 0o777 == 0o600


def test_nothing_is_made_before_the_first_record(tmp_path: Path) -> None:
    """A crawl without answers has no segment."""
    segments = writer(tmp_path)

    assert segments.flush() == {}
    assert list(tmp_path.iterdir()) == []
    segments.close()


def test_full_segment_is_followed_by_the_next(tmp_path: Path) -> None:
    """Each begins with a record of its own; both lengths are committed together."""
    segments = writer(tmp_path, rotate_at=50)

    places = [segments.append(b"x" * 40) for _ in range(2)]
    lengths = segments.flush()

    assert [place.segment for place in places] == [FIRST, "shard-3-2.warc.gz"]
    assert lengths == {name: (tmp_path / name).stat().st_size for name in lengths}
    assert (tmp_path / "shard-3-2.warc.gz").read_bytes().startswith(b"<shard-3-2.warc.gz>")
    segments.close()


def test_what_was_not_committed_is_cut_off(tmp_path: Path) -> None:
    """The tail of a segment, and segments that no commit knows; others' files stay."""
    segments = writer(tmp_path, rotate_at=60)
    segments.append(b"kept")
    committed = dict(segments.flush())
    segments.committed()
    for _ in range(4):
        segments.append(b"y" * 30)
    segments.flush()
    segments.close()
    other = tmp_path / "shard-4-1.warc.gz"
    other.write_bytes(b"of another shard")

    again = writer(tmp_path, committed, rotate_at=60)
    cut = (tmp_path / FIRST).read_bytes()  # also if nothing is kept any more
    place = again.append(b"new")
    again.flush()
    again.close()

    assert cut == begin(FIRST) + b"kept"
    assert place == ArchivePlace(FIRST, committed[FIRST], 3)
    assert (tmp_path / FIRST).read_bytes() == begin(FIRST) + b"keptnew"
    assert sorted(each.name for each in tmp_path.iterdir()) == [FIRST, other.name]


def test_numbers_of_segments_go_on(tmp_path: Path) -> None:
    """After a restart the next one does not take the place of the last."""
    segments = writer(tmp_path, rotate_at=10)
    segments.append(b"a")
    segments.append(b"b")
    committed = segments.flush()
    segments.close()

    again = writer(tmp_path, committed, rotate_at=10)

    assert again.append(b"c").segment == "shard-3-3.warc.gz"
    again.close()


def test_lost_bytes_are_noticed(tmp_path: Path) -> None:
    """A segment that is shorter than what was committed is refused."""
    (tmp_path / FIRST).write_bytes(b"short")

    with pytest.raises(StoreError, match="were committed"):
        writer(tmp_path, {FIRST: 100})


def test_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`append` goes on, `flush` says so, and writes everything when there is room."""
    room = 30
    real = os.pwrite

    def full(descriptor: int, data: bytes, offset: int) -> int:
        nonlocal room
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = real(descriptor, data[:room], offset)
        room -= count
        return count

    monkeypatch.setattr(os, "pwrite", full)
    segments = writer(tmp_path, rotate_at=40)
    records = [bytes([65 + number]) * 25 for number in range(4)]
    places = [segments.append(record) for record in records]

    with pytest.raises(StoreFull, match="free some disk space"):
        segments.flush()
    waiting = segments.waiting_bytes
    room = 10**6
    segments.flush()

    assert waiting > 0
    assert segments.waiting_bytes == 0
    found = [(tmp_path / at.segment).read_bytes()[at.offset :][: at.length] for at in places]
    assert found == records
    segments.close()


def test_much_is_written_before_a_commit(tmp_path: Path) -> None:
    """Memory does not hold all answers between two commits."""
    segments = writer(tmp_path, rotate_at=100 * WRITE_AT)

    for _ in range(5):
        segments.append(bytes(WRITE_AT // 2))

    assert segments.waiting_bytes < WRITE_AT
    segments.close()
