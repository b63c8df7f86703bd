"""The URLs that have a record, packed: so that a page can be fetched again whose record is lost.

Records are in files of the member that fetched the page. If its disk is lost, so are they, and a
fingerprint does not tell a URL. So a commit keeps the entry of every URL that it records, unless
the member writes its records to shared storage:

    ut    list: entries as they were queued, `HOST NUL PRIORITY NUL QUEUED-TEXT`
    u     list: blocks of them, each the zlib stream of a msgpack array

The owner packs `ut` when it has BLOCK entries: a page takes 9 to 25 bytes then, as URLs of one site
resemble each other. Failed pages are not among them: `fe` has their entries.

`lost_urls` finds the URLs whose record is in no file that can be read. The owner cannot do that,
because it has its own files only. So `retry --missing` does, with the directories that it was
given (`recall`), and leaves them in the list `m` of each shard, a block for each slice of
`bring_back`. A URL that is queued again keeps its number, and has the mark of one with a record.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.crawler.model import Kind
from mannerly.crawler.store.fleet import StoreAway

from .packing import Poisoned, number_of, queued_text, score, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mannerly.crawler.model import Entry
    from mannerly.crawler.store.records.reader import LogReader

    from .client import Payload, ValkeyServer

BLOCK = 256  # entries
FETCHED, FAILED = b"+", b"-"  # before the blocks of `m`
_LARGEST = 16 << 20  # bytes of a block, unpacked
_PIECE = 100  # blocks of one exchange
_SEQS = 1000  # of one exchange
_TEXT32 = b"\xdb"  # msgpack: a text of up to 4 GB

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


def as_text(data: bytes) -> msgspec.Raw:
    """Return bytes as msgpack that Lua reads as a string: it knows no binary ones."""
    return msgspec.Raw(_TEXT32 + len(data).to_bytes(4, "big") + data)


def packed_text(entry: Entry) -> bytes:
    """Return an entry as `commit.lua` keeps it."""
    return f"{entry.host}\0{entry.priority}\0{queued_text(entry)}".encode()


def recorded_urls(server: ValkeyServer, base: str) -> Iterator[Entry]:
    """Yield every URL that was recorded with a status; some may come twice."""
    # In this order: the owner moves entries from the first list to the second meanwhile.
    key = base + "ut"
    for row in server.ask("LRANGE", key, 0, -1):
        yield _unpacked(row, key)
    yield from _blocks(server, base + "u")


class LostUrls(NamedTuple):
    """URLs whose record is lost."""

    fetched: list[Entry]  # the record has a status
    failed: list[Entry]

    @property
    def pages(self) -> int:
        """Return how many of them are pages."""
        return sum(entry.kind == Kind.PAGE for entry in (*self.fetched, *self.failed))

    def of_host(self, host: str | None) -> LostUrls:
        """Return those of one host; None: all."""
        if host is None:
            return self
        return LostUrls(*([entry for entry in part if entry.host == host] for part in self))

    def without(self, seqs: set[int]) -> LostUrls:
        """Return the others."""
        return LostUrls(*([entry for entry in part if entry.seq not in seqs] for part in self))

    def blocks(self) -> list[bytes]:
        """Return them as they are left to the owner."""
        return [
            mark + pack_block([packed_text(entry) for entry in part[start : start + BLOCK]])
            for mark, part in zip((FETCHED, FAILED), self, strict=True)
            for start in range(0, len(part), BLOCK)
        ]


def lost_urls(recorded: Iterable[Entry], failed: Iterable[Entry], log: LogReader) -> LostUrls:
    """Return the URLs that have a record which `log` does not have."""
    lost = {entry.seq: entry for entry in recorded if not log.has_left(entry.seq)}
    return LostUrls(list(lost.values()), [each for each in failed if not log.has_left(each.seq)])


def asked_again(server: ValkeyServer, base: str, lost: LostUrls) -> set[int]:
    """Return which of some lost URLs are queued again, or will be, by number."""
    seqs = [entry.seq for part in lost for entry in part]
    asked = {entry.seq for entry in _blocks(server, base + "m", len(FETCHED))}
    for start in range(0, len(seqs), _SEQS):
        piece = seqs[start : start + _SEQS]
        marks = server.ask("HMGET", base + "a", *piece)
        asked |= {seq for seq, mark in zip(piece, marks, strict=True) if mark is not None}
    return asked


def _entries(payload: Payload) -> list[bytes]:
    """Return the entries of a commit that have a record with a status."""
    hosts, pages = payload["hosts"], payload["pages"]
    return [
        f"{hosts[pages[at] - 1]}\0{pages[at + 1]}\0{pages[at + 3]}".encode()
        for at in range(0, len(pages), 5)
        if pages[at + 4] in "plc"
    ]


def _blocks(server: ValkeyServer, key: str, mark: int = 0) -> Iterator[Entry]:
    start = 0
    while blocks := server.ask("LRANGE", key, start, start + _PIECE - 1):
        for block in blocks:
            yield from unpack_block(block[mark:], key)
        start += len(blocks)


def _unpacked(row: bytes, key: str) -> Entry:
    try:
        host, priority, text = row.split(b"\0", 2)
        place = score(int(priority), number_of(text))
        return unpack(text[4:], host.decode(), place, key)
    except ValueError as error:
        raise Poisoned(f"an entry in {key} is damaged ({error})") from None
