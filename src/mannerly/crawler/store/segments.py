"""Segments: files beside a store that are only appended to, such as the answers of a shard.

A segment is only appended to, and is valid up to the length that the store has committed, in the
transaction that records its pages. What is behind that is of pages whose commit was lost in a
crash: it is cut off when the shard is opened again, and the pages are fetched again. So every page
is in the archive exactly once.

`append` gives a record its place at once and never fails; `flush`, before a commit, writes what is
not written yet. On a full disk it raises StoreFull: the commit waits, nothing is lost, and as no
request is started meanwhile, what waits here is bounded. The caller counts it (`waiting_bytes`).

A segment that has `rotate_at` bytes is followed by the next. The segments of one writer are named
after its stem (`shard-3-1.warc.gz`), which no other writer of the crawl has.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from mannerly.crawler.model import ArchivePlace
from mannerly.database.files import open_regular

from .base import StoreError, StoreFull, repair_command, retry_missing_command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

WRITE_AT = 1 << 20  # bytes that wait; then they are written without waiting for a commit
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WARC = ".warc.gz"


class _Segment:
    """One file: how long it is with what waits, and how much of it is written."""

    def __init__(self, path: Path, length: int) -> None:
        self.path, self.name = path, path.name  # a path takes a microsecond to name itself
        self.length = self.written = length
        self.descriptor = -1  # it is made when it is first written to

    def write(self, data: bytes) -> int:
        """Append some of the data; return how many bytes."""
        if self.descriptor < 0:
            self.descriptor = open_regular(self.path, os.O_WRONLY | os.O_CREAT)
            os.ftruncate(self.descriptor, self.written)
        count = os.pwrite(self.descriptor, data, self.written)
        self.written += count
        return count

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class SegmentWriter:
    """Appends records to segments.

    Args:
        folder: the directory of the segments.
        stem: the beginning of their names.
        committed: valid lengths by name, as the store has them; other stems' are passed over.
        suffix: the end of their names.
        rotate_at: bytes after which a new segment is begun.
        begin: returns the first record of a segment, by its name.
        durable: wait for the disk before every commit.

    Raises:
        StoreError: a segment is missing or shorter than what was committed.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        committed: Mapping[str, int],
        *,
        suffix: str = WARC,
        rotate_at: int,
        begin: Callable[[str], bytes],
        durable: bool = False,
    ) -> None:
        self._folder = folder
        self._stem, self._suffix = stem, suffix
        self._rotate_at = rotate_at
        self._begin = begin
        self._durable = durable
        self._waiting: list[tuple[_Segment, bytes]] = []
        self.waiting_bytes = 0
        self._changed: dict[str, int] = {}  # lengths, since they were committed
        self._number = 0
        self._segment: _Segment | None = None
        self._recover(committed)

    def append(self, data: bytes) -> ArchivePlace:
        """Add a record, and return its place. It is written by the next `flush` at the latest."""
        segment = self._segment
        if segment is None or segment.length >= self._rotate_at:
            segment = self._next()
        place = ArchivePlace(segment.name, segment.length, len(data))
        self._add(segment, data)
        if self.waiting_bytes >= WRITE_AT:
            with suppress(StoreFull):  # the commit will say so
                self._write()
        return place

    def flush(self) -> dict[str, int]:
        """Write everything; return the lengths of the segments that have grown.

        Raises:
            StoreFull: there is no room; nothing is lost, try again later.
            StoreError: a segment cannot be written.
        """
        self._write()
        if self._durable and self._segment is not None and self._segment.descriptor >= 0:
            os.fsync(self._segment.descriptor)
        return self._changed

    def committed(self) -> None:
        """Note that the store has the lengths of the last `flush`."""
        self._changed = {}

    def close(self) -> None:
        """Close the files. What was not committed is cut off by the next writer."""
        for segment, _ in self._waiting:
            segment.close()
        if self._segment is not None:
            self._segment.close()

    def _next(self) -> _Segment:
        self._number += 1
        path = self._folder / f"{self._stem}-{self._number}{self._suffix}"
        self._segment = segment = _Segment(path, 0)
        if first := self._begin(path.name):
            self._add(segment, first)
        return segment

    def _add(self, segment: _Segment, data: bytes) -> None:
        self._waiting.append((segment, data))
        self.waiting_bytes += len(data)
        segment.length += len(data)
        self._changed[segment.name] = segment.length

    def _write(self) -> None:
        # Many small writes would take five times as long.
        self._waiting = waiting = [
            (segment, b"".join([data for _, data in pieces]))
            for segment, pieces in groupby(self._waiting, itemgetter(0))
        ]
        done = 0
        try:
            while done < len(waiting):
                segment, data = waiting[done]
                while data:
                    count = segment.write(data)
                    data = data[count:]
                    waiting[done] = (segment, data)
                    self.waiting_bytes -= count
                done += 1
                if segment is not self._segment and (
                    done == len(waiting) or waiting[done][0] is not segment
                ):
                    self._finish(segment)
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise StoreFull(f"no room to write {segment.path}: free some disk space") from error
            raise StoreError(
                f"cannot write {segment.path}: {error.strerror}; check the disk and the permissions"
            ) from error
        finally:
            del waiting[:done]

    def _finish(self, segment: _Segment) -> None:
        """Close a segment that is followed by another."""
        if self._durable and segment.descriptor >= 0:
            os.fsync(segment.descriptor)
        segment.close()

    def _recover(self, committed: Mapping[str, int]) -> None:
        """Cut off what was not committed, and go on with the last segment."""
        for path in self._folder.iterdir():
            if self._number_of(path.name) is not None and path.name not in committed:
                path.unlink()
        for name, length in committed.items():
            number = self._number_of(name)
            if number is None:
                continue
            path = self._folder / name
            size = path.lstat().st_size if path.exists() else 0
            if size < length:
                raise StoreError(
                    f"{path} is {size:,} bytes long, and {length:,} were committed: restore it "
                    f"from a copy, or run `{repair_command(self._folder)}`, and then "
                    f"`{retry_missing_command(self._folder)}`"
                )
            if size > length:
                descriptor = open_regular(path, os.O_WRONLY)
                os.ftruncate(descriptor, length)
                os.close(descriptor)
            if number > self._number:
                self._number = number
                self._segment = _Segment(path, length)

    def _number_of(self, name: str) -> int | None:
        """Return the number of a segment of this writer; None: the file is not one."""
        if not name.startswith(self._stem + "-") or not name.endswith(self._suffix):
            return None
        number = name[len(self._stem) + 1 : len(name) - len(self._suffix)]
        return int(number) if number.isascii() and number.isdigit() else None
