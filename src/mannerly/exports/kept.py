"""Read kept answers back from the segments of a crawl."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import ExitStack
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

from mannerly.crawler.archive.records import read_record
from mannerly.crawler.fetch.decoding import decode

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.model import ArchivePlace

MAX_BYTES = 64 * 1024 * 1024  # of a decoded body; a crawl has cut it before, at its own limit
_FILES = 16  # that are open at once


class KeptAnswer(NamedTuple):
    """An answer as it was received, but for its encoding."""

    status: int
    headers: dict[str, str]
    body: bytes


class KeptAnswers:
    """The segments of a crawl, open for reading."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: OrderedDict[str, BinaryIO] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as closing:
            for file in self._files.values():
                closing.callback(file.close)

    def read(self, place: ArchivePlace) -> KeptAnswer:
        """Return the answer at a place.

        Raises:
            ArchiveDamaged: there is no record there.
            OSError: the segment cannot be read.
        """
        record = read_record(self._file(place.segment), place.offset, place.length)
        status, headers, body = record.http()
        decoded, _ = decode(body, headers.get("content-encoding"), MAX_BYTES)
        return KeptAnswer(status, headers, decoded)

    def _file(self, name: str) -> BinaryIO:
        file = self._files.get(name)
        if file is None:
            if len(self._files) >= _FILES:
                self._files.popitem(last=False)[1].close()
            file = self._files[name] = (self._folder / name).open("rb")
        self._files.move_to_end(name)
        return file
