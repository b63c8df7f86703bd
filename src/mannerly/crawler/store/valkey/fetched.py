"""The URLs that have a record, packed: so that a page can be fetched again whose record is lost.

Records are in files of the member that fetched the page. If its disk is lost, so are they, and a
fingerprint does not tell a URL. So a commit keeps the entry of every URL that it records, unless
the member writes its records to shared storage:

    ut    list: entries as they were queued, `HOST NUL PRIORITY NUL QUEUED-TEXT`
    u     list: blocks of them, each the zlib stream of a msgpack array

The owner packs `ut` when it has BLOCK entries: a page takes 9 to 25 bytes then, as URLs of one site
resemble each other. Failed pages are not among them: `fe` has their entries. Those whose record is
lost are found by `lost_records`.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.store.fleet import StoreAway

from .batches import NOT_FAILED
from .layout import leaving_urls
from .packing import Poisoned, as_text, number_of, queued_text, score, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.model import Entry
    from mannerly.database.client import Payload

    from .client import ValkeyServer

BLOCK = 256  # entries
PORTION_BLOCKS = 8  # that are read at once
_LARGEST = 16 << 20  # bytes of a block, unpacked

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[bytes]).decode


class FetchedUrls:
    """The entries of recorded URLs of one shard, for its owner."""

    def __init__(self, server: ValkeyServer, base: str) -> None:
        self._server = server
        self._key = base + "ut"
        self._unpacked = 0  # entries in the server
        self._known: list[bytes] | None = []  # these; None: they have to be read

    def load(self, unpacked: int) -> None:
        """Begin with what an earlier owner has left."""
        self._unpacked = unpacked
        self._known = None if unpacked else []

    def payload(self) -> Payload:
        """Return what `commit.lua` takes: a block, if it is time for one, and its entries."""
        if self._unpacked >= BLOCK:
            with suppress(StoreAway):  # the commit will tell
                if self._known is None:
                    self._known = self._server.ask("LRANGE", self._key, 0, -1)
                return {"block": as_text(pack_block(self._known)), "packed": len(self._known)}
        return {"block": "", "packed": 0}

    def committed(self, payload: Payload, unpacked: int) -> None:
        """Learn from a commit how many entries are not packed; 0: it had none."""
        if payload["packed"]:
            self._known, self._unpacked = [], 0
        if unpacked:
            entries = _entries(payload)
            is_known = self._known is not None and unpacked == self._unpacked + len(entries)
            # Else one of the pages did not count, or its URL was kept when it was fetched before.
            self._known = [*(self._known or []), *entries] if is_known else None
            self._unpacked = unpacked


def pack_block(entries: list[bytes]) -> bytes:
    """Return entries as a block."""
    return zlib.compress(_encode(entries))


def unpack_block(block: bytes, key: str) -> list[Entry]:
    """Return the entries of a block.

    Raises:
        Poisoned: this is no block; the message names the key.
    """
    unpacker = zlib.decompressobj()
    try:
        rows = _decode(unpacker.decompress(block, _LARGEST))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise Poisoned(f"a block of URLs in {key} is damaged ({error})") from None
    if not unpacker.eof:
        raise Poisoned(f"a block of URLs in {key} is cut off, or too large")
    return [_unpacked(row, key) for row in rows]


def packed_text(entry: Entry) -> bytes:
    """Return an entry as `commit.lua` keeps it."""
    return f"{entry.host}\0{entry.priority}\0{queued_text(entry)}".encode()


def recorded_portions(server: ValkeyServer, base: str) -> Iterator[list[Entry]]:
    """Yield every URL that was recorded with a status, once, a portion at a time."""
    # In this order: the owner moves entries from the first list to the second meanwhile.
    key = base + "ut"
    unpacked = [_unpacked(row, key) for row in server.ask("LRANGE", key, 0, -1)]
    yield unpacked
    known = {entry.seq for entry in unpacked}
    key, start = base + "u", 0
    while blocks := server.ask("LRANGE", key, start, start + PORTION_BLOCKS - 1):
        entries = [entry for block in blocks for entry in unpack_block(block, key)]
        yield [entry for entry in entries if entry.seq not in known]
        start += len(blocks)


def _entries(payload: Payload) -> list[bytes]:
    """Return the entries of a commit that have a record with a status."""
    hosts = payload["hosts"]
    return [
        f"{hosts[url.host - 1]}\0{url.priority}\0{url.entry}".encode()
        for url in leaving_urls(payload["pages"])
        if url.how in NOT_FAILED
    ]


def _unpacked(row: bytes, key: str) -> Entry:
    try:
        host, priority, text = row.split(b"\0", 2)
        place = score(int(priority), number_of(text))
        return unpack(text[4:], host.decode(), place, key)
    except ValueError as error:
        raise Poisoned(f"an entry in {key} is damaged ({error})") from None
