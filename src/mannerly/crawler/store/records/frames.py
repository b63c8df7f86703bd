"""The frames of a log: one for each page, skipped URL, return to the queue or list of a sitemap.

The elements of a batch's pages are compressed together, in a frame before those of the pages.

A frame is its length and its checksum, four bytes each, and a msgpack array that begins with a
letter for its kind. The checksum is for disks that lose power: a log is never read beyond its
committed length, but what was committed may not have reached the disk.

A log may have been damaged or forged, so every frame is checked against its type
(`LogDamaged` names the file and the place).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeAlias
from zlib import crc32

import msgspec

from mannerly.crawler.model import (  # noqa: TC001 - frames are checked against them
    ArchivePlace,
    Entry,
    ListedPage,
    PageItems,
    PageRecord,
)
from mannerly.crawler.store.base import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

HEAD = struct.Struct("<II")  # length and checksum of what follows
LARGEST = 64 << 20  # bytes of a frame: links and items of one page


class LogDamaged(StoreError):  # noqa: N818 - a state of the file
    """A committed frame cannot be read."""


class ElementsFrame(msgspec.Struct, tag="e", array_like=True, frozen=True):
    """The elements of pages whose records follow."""

    seqs: list[int]  # of the pages, in the order of their elements
    data: bytes  # see `element_streams.packed`


class RecordedFrame(msgspec.Struct, tag="r", array_like=True, frozen=True):
    """A page or a list was recorded."""

    position: int  # of its record, unless it had one already
    round: int
    entry: Entry
    record: PageRecord
    keeps_elements: bool  # it is unchanged: what its earlier record has stays
    has_elements: bool | None  # in an `ElementsFrame` before it
    place: ArchivePlace | None
    items: PageItems | None


class DroppedFrame(msgspec.Struct, tag="d", array_like=True, frozen=True):
    """A URL left the queue without a record of its own."""

    round: int
    entry: Entry
    reason: str


class ReturnedFrame(msgspec.Struct, tag="q", array_like=True, frozen=True):
    """URLs are queued again: what was recorded of them is void."""

    seqs: list[int]


class AskedFrame(msgspec.Struct, tag="a", array_like=True, frozen=True):
    """URLs are queued again, and keep what was recorded of them until the next answer."""

    seqs: list[int]


class ListedFrame(msgspec.Struct, tag="l", array_like=True, frozen=True):
    """Sitemaps list these pages."""

    round: int
    pages: list[ListedPage]


class TrafficFrame(msgspec.Struct, tag="t", array_like=True, frozen=True):
    """Answers and refusals, by interval."""

    sums: dict[int, list[int]]


class CheckedFrame(msgspec.Struct, tag="c", array_like=True, frozen=True):
    """A sitemap that is believed says that these pages are unchanged."""

    round: int
    seqs: list[int]


Frame: TypeAlias = (
    ElementsFrame
    | RecordedFrame
    | DroppedFrame
    | ReturnedFrame
    | AskedFrame
    | ListedFrame
    | TrafficFrame
    | CheckedFrame
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame).decode


def pack(frame: Frame) -> bytes:
    """Return the bytes of a frame."""
    content = _encode(frame)
    return HEAD.pack(len(content), crc32(content)) + content


def read_frame(file: BinaryIO, offset: int) -> Frame:
    """Return the frame at an offset.

    Raises:
        LogDamaged: there is none.
    """
    file.seek(offset)
    return _read(file, offset)[0]


def read_frames(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, Frame]]:
    """Yield the frames between two offsets, each with its own.

    Raises:
        LogDamaged: they cannot be read.
    """
    file.seek(start)
    while start < end:
        frame, length = _read(file, start)
        yield start, frame
        start += length


def _read(file: BinaryIO, offset: int) -> tuple[Frame, int]:
    head = file.read(HEAD.size)
    length, checksum = HEAD.unpack(head) if len(head) == HEAD.size else (LARGEST + 1, 0)
    content = file.read(length) if length <= LARGEST else b""
    if len(content) != length or crc32(content) != checksum:
        raise LogDamaged(f"{file.name} is damaged at byte {offset:,}: restore it from a copy")
    try:
        return _decode(content), HEAD.size + length
    except msgspec.MsgspecError as error:
        raise LogDamaged(f"{file.name} has an invalid record at byte {offset:,}: {error}") from None
