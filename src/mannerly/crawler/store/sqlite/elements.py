"""The elements of pages (their links and what else a reader may ask for), a commit of pages a row.

A page's elements are bytes to the store; `page.elements` makes and reads them. Rows are compressed
in streams (`element_streams`): `begins` is the first number of the row that a row's stream begins
with. Rows of an earlier release have 0: each was compressed alone, with zlib.

Every page gets a number, `first` + its place in the row, and its record keeps the number. Elements
of a page that has changed since stay where they are: no record has their number any more, but the
rows after them in the stream cannot be read without them.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.store.element_streams import (
    LARGEST,
    ElementStream,
    StreamDamaged,
    StreamReader,
    in_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.database.sqlite import Database

MANY = 64  # pages of a commit: a crawl that has more, every second or so, is a fast one
_KEPT = 4  # streams that a reader keeps: those of pages that changed lie apart from the others

_decode = msgspec.msgpack.Decoder(list[bytes]).decode

_PUT = "INSERT INTO elements (first, count, begins, data) VALUES (?, ?, ?, ?)"
_HOLDING = "SELECT first, begins FROM elements WHERE first <= ? ORDER BY first DESC LIMIT 1"
_BETWEEN = "SELECT first, begins, data FROM elements WHERE first BETWEEN ? AND ? ORDER BY first"


class ElementsWriter:
    """Stores elements, in streams that go from commit to commit.

    The stream is ahead of the file once a transaction has failed: then `forget` it.
    """

    def __init__(self) -> None:
        self._stream: ElementStream | None = None
        self._begins = self._next = 0

    def write(
        self, database: Database, next_number: int, elements: Mapping[int, bytes]
    ) -> dict[int, int]:
        """Store the elements of pages, given by their seq; return the number of each."""
        is_fast = len(elements) >= MANY
        numbers: dict[int, int] = {}
        for block in in_blocks(elements):
            first = next_number + len(numbers)
            stream = self._stream_for(first, is_fast=is_fast)
            data = stream.add(list(block.values()))
            database.execute(_PUT, (first, len(block), self._begins, data))
            numbers.update(zip(block, range(first, first + len(block)), strict=True))
            self._next = first + len(block)
        return numbers

    def forget(self) -> None:
        """Begin a new stream with the next elements."""
        self._stream = None

    def _stream_for(self, first: int, *, is_fast: bool) -> ElementStream:
        """Return the stream, or a new one; a fast crawl does not go on with a slow one's."""
        stream = self._stream
        if (
            stream is None
            or stream.is_full
            or first != self._next
            or (is_fast and not stream.is_fast)
        ):
            stream = self._stream = ElementStream(is_fast=is_fast)
            self._begins = first
        return stream


class _OpenStream:
    """A stream that is read as far as it was needed; or a row that was compressed alone."""

    def __init__(self, begins: int) -> None:
        self.begins = begins
        self.parts: list[bytes] = []
        self._reader: StreamReader | None = None

    @property
    def end(self) -> int:
        return self.begins + len(self.parts)

    def take(self, first: int, begins: int, data: object) -> None:
        """Read one more row."""
        if begins == 0 and first == self.begins:
            self.parts = _alone(data)
        elif begins != self.begins or first != self.end:
            raise StreamDamaged("a row before them is missing")
        else:
            self._reader = self._reader or StreamReader()
            self.parts += self._reader.next(data)


class ElementsReader:
    """Reads elements by their numbers; those of pages in the order of commits are found fastest."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._streams: dict[int, _OpenStream] = {}  # by their first number

    def __call__(self, number: int) -> bytes | None:
        """Return the elements with a number; None if there are none (0)."""
        if number <= 0:
            return None
        for stream in self._streams.values():
            if stream.begins <= number < stream.end:
                return stream.parts[number - stream.begins]
        row = self._database.row(_HOLDING, (number,))
        if row is None:
            return None
        first, begins = self._database.checked(row, tuple[int, int])
        if begins > first:
            raise self._database.damaged("the links of some pages: their stream begins after them")
        stream = self._read(begins or first, first)
        return stream.parts[number - stream.begins] if number < stream.end else None

    def _read(self, begins: int, last: int) -> _OpenStream:
        """Return a stream that is read up to and including a row."""
        database = self._database
        stream = self._streams.pop(begins, None) or _OpenStream(begins)
        try:
            with database.translated():
                for row in database.execute(_BETWEEN, (stream.end, last)):
                    stream.take(*row)
        except StreamDamaged as error:
            raise database.damaged(f"the links of some pages: {error}") from error
        if len(self._streams) >= _KEPT:
            del self._streams[next(iter(self._streams))]
        self._streams[begins] = stream
        return stream


def _alone(data: object) -> list[bytes]:
    try:
        return _decode(zlib.decompressobj().decompress(data, LARGEST))  # type: ignore[arg-type]
    except (zlib.error, msgspec.MsgspecError, TypeError) as error:
        raise StreamDamaged(str(error)) from error
