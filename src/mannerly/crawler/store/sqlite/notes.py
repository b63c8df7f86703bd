"""Notes of a shard that need no commit, in two small files that outlive a crash.

shard-<n>.parsing   the page that is being parsed: eight mapped bytes. Writing to them is a
                    store into memory (0.1 µs), and the kernel keeps it when the process is
                    killed. A power cut may lose it, which is fine: it was not the page's fault
shard-<n>.done      the pages that the consumer of a crawl is done with, eight bytes each,
                    appended by a write to the kernel (2 µs). They matter only until the page is
                    committed; those that are were removed at the start of the next run, by the
                    run itself, so the file never changes while a process appends to it
"""

from __future__ import annotations

import mmap
import os
from struct import Struct
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreError
from mannerly.database.files import open_regular, read_file, write_file

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

_SEQ = Struct("<q")
NOTHING = bytes(_SEQ.size)


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


class AcknowledgedLog:
    """Appends to a shard's list of acknowledged pages."""

    def __init__(self, directory: Path, shard: int) -> None:
        path = acknowledged_path(directory, shard)
        try:
            self._descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error

    def add(self, seq: int) -> None:
        """Append a page."""
        os.write(self._descriptor, _SEQ.pack(seq))

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def read_acknowledged(directory: Path, shard: int) -> set[int]:
    """Return the pages in a shard's list; a last piece that was cut by a crash is left out."""
    try:
        data = read_file(acknowledged_path(directory, shard))
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise StoreError(f"cannot use {error.filename or directory}: {error.strerror}") from error
    return {seq for (seq,) in _SEQ.iter_unpack(data[: len(data) // _SEQ.size * _SEQ.size])}


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
