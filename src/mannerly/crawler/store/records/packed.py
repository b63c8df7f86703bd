"""The URLs of recorded pages, small enough for a server's memory.

If a machine is lost with its disk, so are the records in its logs. The server keeps the URLs of
each log beside its length, a compressed batch for each commit, so that they can be fetched again:
6 to 25 bytes a page, as URLs of one site resemble each other. Where a page was found is left out.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.model import Entry, Kind
from mannerly.crawler.store.base import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST = 16 << 20  # bytes of a batch, unpacked

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[int, str, str, int, int, int, Kind]]).decode


def pack_entries(entries: Iterable[Entry]) -> bytes:
    """Return the entries of a batch, packed."""
    rows = [
        (each.seq, each.url, each.host, each.depth, each.priority, each.hops, each.kind)
        for each in entries
    ]
    return zlib.compress(_encode(rows), 6)


def unpack_entries(batch: bytes) -> list[Entry]:
    """Return the entries of a packed batch, without their parents.

    Raises:
        StoreError: the bytes are not such a batch.
    """
    unpacker = zlib.decompressobj()
    try:
        rows = _decode(unpacker.decompress(batch, LARGEST))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise StoreError(f"a batch of URLs in the store cannot be read: {error}") from None
    if not unpacker.eof:
        raise StoreError("a batch of URLs in the store cannot be read: it is cut off, or too large")
    return [
        Entry(seq, url, host, depth, priority, None, hops, kind)
        for seq, url, host, depth, priority, hops, kind in rows
    ]
