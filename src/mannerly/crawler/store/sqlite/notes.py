"""Notes of a shard that need no commit, in small files that outlive a crash.

shard-<n>.parsing   the page that is being parsed: eight mapped bytes. Writing to them is a
                    store into memory (0.1 µs), and the kernel keeps it when the process is
                    killed. A power cut may lose it, which is fine: it was not the page's fault
shard-<n>.done      the pages that the consumer of a crawl is done with, eight bytes each,
                    appended by a write to the kernel (2 µs). They matter only until the page is
                    committed; those that are were removed at the start of the next run, by the
                    run itself, so the file never changes while a process appends to it
shard-<n>.sent      requests that are sent once, appended before their first byte leaves; with
                    a minus sign when they were refused, or have a result
"""

from __future__ import annotations

import mmap
import os
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from struct import Struct
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreError, StoreFull
from mannerly.database.files import open_regular, read_file, write_file

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from pathlib import Path

_SEQ = Struct("<q")
NOTHING = bytes(_SEQ.size)
_NO_ROOM = (ENOSPC, EDQUOT, EFBIG)


class ParsingNote:
    """The mapped number of a shard's page; `cell[0]` is 0 if none is being parsed."""

    def __init__(self, directory: Path, shard: int) -> None:
        path = parsing_path(directory, shard)
        try:
            with os.fdopen(open_regular(path, os.O_RDWR | os.O_CREAT), "r+b") as file:
                if os.fstat(file.fileno()).st_size != len(NOTHING):
                    file.truncate(0)
                    file.write(NOTHING)  # not by truncating: a hole in a full disk would be fatal
                    file.flush()
                self._map = mmap.mmap(file.fileno(), len(NOTHING))
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot use {path}: {error}") from error
        self._bytes = memoryview(self._map)
        self.cell = self._bytes.cast("q")

    def close(self) -> None:
        """Close the file, and leave the note as it is; closing twice is harmless."""
        self.cell.release()
        self._bytes.release()
        self._map.close()


class _NumberLog:
    """Appends numbers to a file, each with one write to the kernel."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _explained(path):
            self._descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._cut()

    def add(self, number: int) -> None:
        """Append a number, or nothing."""
        with _explained(self._path):
            if os.write(self._descriptor, _SEQ.pack(number)) < _SEQ.size:
                self._cut()
                raise OSError(ENOSPC, os.strerror(ENOSPC))

    def _cut(self) -> None:
        """Remove a part of a number from the end, which would shift all later ones."""
        if torn := os.fstat(self._descriptor).st_size % _SEQ.size:
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - torn)

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class AcknowledgedLog(_NumberLog):
    """Appends to a shard's list of acknowledged pages."""

    def __init__(self, directory: Path, shard: int) -> None:
        super().__init__(acknowledged_path(directory, shard))


class SentLog(_NumberLog):
    """Appends to a shard's list of requests that are sent once.

    `durable`: a note is on disk before the request leaves, as the commits of such a crawl are.
    """

    def __init__(self, directory: Path, shard: int, *, durable: bool) -> None:
        super().__init__(sent_path(directory, shard))
        self._durable = durable

    def add(self, number: int) -> None:
        """Append a request, with a minus sign one that may be sent again."""
        super().add(number)
        if self._durable:
            with _explained(self._path):
                os.fsync(self._descriptor)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = StoreFull if error.errno in _NO_ROOM else StoreError
        raise kind(f"cannot write {path}: {error.strerror}") from error


def read_sent(directory: Path, shard: int) -> set[int]:
    """Return the requests that were sent and not refused."""
    sent: set[int] = set()
    for number in _numbers(sent_path(directory, shard)):
        if number > 0:
            sent.add(number)
        else:
            sent.discard(-number)
    return sent


def prune_sent(directory: Path, shard: int, left: Iterable[int]) -> None:
    """Begin the list of sent requests anew with these. Nothing may append meanwhile."""
    path = sent_path(directory, shard)
    data = b"".join([_SEQ.pack(seq) for seq in sorted(left)])
    with _explained(path):
        if path.exists() and path.stat().st_size != len(data):
            write_file(path, data)


def read_acknowledged(directory: Path, shard: int) -> set[int]:
    """Return the pages in a shard's list; a last piece that was cut by a crash is left out."""
    return set(_numbers(acknowledged_path(directory, shard)))


def _numbers(path: Path) -> list[int]:
    try:
        data = read_file(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot use {error.filename or path}: {error.strerror}") from error
    whole = len(data) // _SEQ.size * _SEQ.size
    return [number for (number,) in _SEQ.iter_unpack(data[:whole])]


def prune_acknowledged(directory: Path, shard: int, committed: Container[int]) -> None:
    """Keep only the pages that are not committed yet. Nothing may append meanwhile."""
    known = read_acknowledged(directory, shard)
    left = [seq for seq in known if seq not in committed]
    if len(left) == len(known):
        return
    write_file(acknowledged_path(directory, shard), b"".join([_SEQ.pack(seq) for seq in left]))


def parsing_path(directory: Path, shard: int) -> Path:
    """Return the file of the page that is being parsed."""
    return directory / f"shard-{shard}.parsing"


def acknowledged_path(directory: Path, shard: int) -> Path:
    """Return the file of the acknowledged pages."""
    return directory / f"shard-{shard}.done"


def sent_path(directory: Path, shard: int) -> Path:
    """Return the file of the requests that are sent once."""
    return directory / f"shard-{shard}.sent"
