"""The page that is being parsed, in eight bytes that outlive the process.

A mapped file: writing to it is a store into memory (0.1 µs), and the kernel keeps what was written
when the process is killed. A power cut may lose it, which is fine: it was not the page's fault.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreError

if TYPE_CHECKING:
    from pathlib import Path

_BYTES = 8
NOTHING = bytes(_BYTES)


class ParsingNote:
    """The mapped number of a shard's page; `cell[0]` is 0 if none is being parsed."""

    def __init__(self, path: Path) -> None:
        try:
            if not path.exists() or path.stat().st_size != _BYTES:
                path.write_bytes(NOTHING)  # not truncate: a hole in a full disk would be fatal
            with path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), _BYTES)
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot use {path}: {error}") from error
        self._bytes = memoryview(self._map)
        self.cell = self._bytes.cast("q")

    def close(self) -> None:
        """Close the file, and leave the note as it is; closing twice is harmless."""
        self.cell.release()
        self._bytes.release()
        self._map.close()


def parsing_path(directory: Path, shard: int) -> Path:
    """Return the file of a shard's note."""
    return directory / f"shard-{shard}.parsing"
