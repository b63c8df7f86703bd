"""Read the records of a segment: one by its place, or all of them in order.

What is read may come from a file that another account could write to, so sizes are bounded and
anything that is not a record raises `ArchiveDamaged`.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from .warc import payload_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 64 * 1024
_MOST_DIGITS = 18  # of a Content-Length
_MEMBER = b"\x1f\x8b\x08"  # the first bytes of every gzip member
_LARGEST = 1 << 30  # bytes of one record, decompressed: a body is 60 MB at most


class ArchiveDamaged(ValueError):  # noqa: N818 - a state of the file
    """A record cannot be read."""


class WarcRecord(NamedTuple):
    """One record: its place, its headers and its block."""

    offset: int
    length: int  # bytes in the file
    headers: dict[str, str]  # names in lower case
    block: bytes

    @property
    def kind(self) -> str:
        """Return the type: response, request, revisit or warcinfo."""
        return self.headers.get("warc-type", "")

    def http(self) -> tuple[int, dict[str, str], bytes]:
        """Return the status, the headers and the body of an answer; repeated ones are joined."""
        head, _, body = self.block.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        code = first.partition(" ")[2][:3]
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                name, value = name.strip().lower(), value.strip()
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return int(code) if code.isdigit() else 0, headers, body


def read_record(file: BinaryIO, offset: int, length: int) -> WarcRecord:
    """Return the record at a place.

    Raises:
        ArchiveDamaged: there is none.
    """
    file.seek(offset)
    member = file.read(length)
    unpacker = zlib.decompressobj(31)
    try:
        content = unpacker.decompress(member, _LARGEST)
    except zlib.error as error:
        raise ArchiveDamaged(f"the record at {offset} cannot be read: {error}") from error
    if not unpacker.eof or unpacker.unused_data:
        raise ArchiveDamaged(f"the record at {offset} is not complete")
    return _record(offset, length, content)


def read_records(file: BinaryIO, valid: int, start: int = 0) -> Iterator[WarcRecord]:
    """Yield the records of the first `valid` bytes of a segment, from the one at `start`.

    Raises:
        ArchiveDamaged: they are not a whole number of records.
    """
    offset, waiting = start, b""
    file.seek(start)
    while offset < valid:
        unpacker, parts, taken = zlib.decompressobj(31), list[bytes](), 0
        while not unpacker.eof:
            if not waiting:
                waiting = file.read(min(_CHUNK, valid - offset - taken))
                if not waiting:
                    raise ArchiveDamaged(f"the record at {offset} is not complete")
            try:
                parts.append(unpacker.decompress(waiting))
            except zlib.error as error:
                raise ArchiveDamaged(f"the record at {offset} cannot be read: {error}") from error
            taken += len(waiting) - len(unpacker.unused_data)
            waiting = unpacker.unused_data
        yield _record(offset, taken, b"".join(parts))
        offset += taken


class DamagedRecord(NamedTuple):
    """Bytes of a segment that are no record, up to the next one."""

    offset: int
    length: int
    cause: str


def checked_records(file: BinaryIO, valid: int) -> Iterator[WarcRecord | DamagedRecord]:
    """Yield the records of the first `valid` bytes of a segment, and what is damaged of it.

    A record is damaged if its gzip member cannot be read, or if its block has another digest than
    its headers say.
    """
    offset = 0
    while offset < valid:
        try:
            for record in read_records(file, valid, offset):
                if not _is_genuine(record):
                    cause = f"the record at {record.offset} has another digest than it says"
                    yield DamagedRecord(record.offset, record.length, cause)
                else:
                    yield record
                offset = record.offset + record.length
        except ArchiveDamaged as error:
            after = _next_record(file, offset + 1, valid)
            yield DamagedRecord(offset, after - offset, str(error))
            offset = after


def _is_genuine(record: WarcRecord) -> bool:
    wanted = record.headers.get("warc-block-digest", "")
    return not wanted.startswith("sha1:") or payload_digest(record.block) == wanted


def _next_record(file: BinaryIO, start: int, valid: int) -> int:
    """Return where the next record begins that can be read; `valid` if there is none."""
    file.seek(start)
    chunk = file.read(min(_CHUNK, valid - start))
    while chunk:
        at = chunk.find(_MEMBER)
        while at >= 0:
            try:
                next(read_records(file, valid, start + at))
            except ArchiveDamaged:
                at = chunk.find(_MEMBER, at + 1)
            else:
                return start + at
        start += max(1, len(chunk) - len(_MEMBER) + 1)
        file.seek(start)
        chunk = file.read(min(_CHUNK, valid - start))
        if len(chunk) < len(_MEMBER):
            break
    return valid


def _record(offset: int, length: int, content: bytes) -> WarcRecord:
    head, mark, rest = content.partition(b"\r\n\r\n")
    first, *lines = head.decode("utf-8", "replace").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    size = headers.get("content-length", "")
    is_number = size.isascii() and size.isdigit() and len(size) <= _MOST_DIGITS
    if not mark or not first.startswith("WARC/") or not is_number:
        raise ArchiveDamaged(f"the record at {offset} has no headers")
    if len(rest) < int(size):
        raise ArchiveDamaged(f"the record at {offset} is not complete")
    return WarcRecord(offset, length, headers, rest[: int(size)])
