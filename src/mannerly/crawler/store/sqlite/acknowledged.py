"""The pages that the consumer of a crawl is done with, in a file per shard that outlives a crash.

Eight bytes are appended for every page: a write to the kernel (2 µs) that survives the death of the
process. They matter only until the page is committed; what was committed is removed at the start of
the next run, by the run itself, so the file never changes while a process appends to it.
"""

from __future__ import annotations

import os
from struct import Struct
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreError

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

_SEQ = Struct("<q")


class AcknowledgedLog:
    """Appends to a shard's file."""

    def __init__(self, directory: Path, shard: int) -> None:
        path = acknowledged_path(directory, shard)
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
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


def acknowledged_path(directory: Path, shard: int) -> Path:
    """Return the file of a shard."""
    return directory / f"shard-{shard}.done"


def read_acknowledged(directory: Path, shard: int) -> set[int]:
    """Return the pages in a shard's file; a last piece that was cut by a crash is left out."""
    try:
        data = acknowledged_path(directory, shard).read_bytes()
    except FileNotFoundError:
        return set()
    return {seq for (seq,) in _SEQ.iter_unpack(data[: len(data) // _SEQ.size * _SEQ.size])}


def prune_acknowledged(directory: Path, shard: int, committed: Container[int]) -> None:
    """Keep only the pages that are not committed yet. Nothing may append meanwhile."""
    known = read_acknowledged(directory, shard)
    left = [seq for seq in known if seq not in committed]
    if len(left) == len(known):
        return
    path = acknowledged_path(directory, shard)
    new = path.with_name(path.name + ".new")
    new.write_bytes(b"".join([_SEQ.pack(seq) for seq in left]))
    new.replace(path)
