"""Compress the elements of pages in streams: each commit together with those before it.

The pages of a site have their menu, their footer and most targets in common, so a page takes little
room if the compressor knows the pages before it. A stream is one frame of zstd that is flushed at
every commit. What a flush gives is stored with the commit, and can be read once the commits before
it in the stream have been. A stream ends after `STREAM_BYTES`, so that a reader of one page has to
read no more than that, and it is never gone on with after a restart or a failed commit.

Commits of many pages come from a fast crawl, where processor time is dear; a crawl that waits for
its servers most of the time compresses harder (docs/adr/0069).

A stored stream may be damaged or forged: reading one takes bounded memory, and what is wrong with
it is a `StreamDamaged`. The module of zstd takes some milliseconds to import, so that is done when
elements are first kept or read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STREAM_BYTES = 8 << 20  # before compression; as much as the compressor looks back
BLOCK_BYTES = 8 << 20  # compressed at once: more comes from few commits only
LARGEST = 64 << 20  # bytes that a reader takes out of one stream

# Levels of zstd with the logarithms of its two tables. Tables of 0.8 MB stay in the processor's
# cache beside a crawl: 2 MB take half as long again there. Level 1 needs two thirds of the time of
# level 3, and 7 % more room.
_FAST, _HARD = (1, 15, 15), (9, 18, 18)
_ALONE = 3
_WINDOW_LOG = 23  # 8 MB

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[bytes]).decode


class StreamDamaged(ValueError):  # noqa: N818 - a state of the stream
    """Stored elements cannot be read."""


class ElementStream:
    """Compresses the elements of one commit after the other.

    Args:
        is_fast: save processor time rather than room.
    """

    def __init__(self, *, is_fast: bool) -> None:
        from . import zstd

        level, hash_log, chain_log = _FAST if is_fast else _HARD
        options: dict[int, int] = {
            zstd.CompressionParameter.compression_level: level,
            zstd.CompressionParameter.window_log: _WINDOW_LOG,
            zstd.CompressionParameter.hash_log: hash_log,
            zstd.CompressionParameter.chain_log: chain_log,
        }
        self.is_fast = is_fast
        self._compressor = zstd.ZstdCompressor(options=options)
        self._room = STREAM_BYTES

    @property
    def is_full(self) -> bool:
        """Return whether a new stream should be begun."""
        return self._room <= 0

    def add(self, parts: list[bytes]) -> bytes:
        """Return the elements of some pages, compressed."""
        content = _encode(parts)
        self._room -= len(content)
        return self._compressor.compress(content, self._compressor.FLUSH_BLOCK)


class StreamReader:
    """Reads what an `ElementStream` returned, from the beginning on."""

    def __init__(self) -> None:
        from . import zstd

        options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        self._decompressor = zstd.ZstdDecompressor(options=options)
        self._error = zstd.ZstdError
        self._room = LARGEST

    def next(self, data: object) -> list[bytes]:
        """Return the elements of the next commit.

        Raises:
            StreamDamaged: they cannot be read, nor those after them.
        """
        if not isinstance(data, bytes):
            raise StreamDamaged("they are not bytes")
        try:
            content = self._decompressor.decompress(data, self._room + 1)
            self._room -= len(content)
            if self._room < 0:
                raise StreamDamaged(f"more than {LARGEST >> 20} MB")
            return _decode(content)
        except (self._error, EOFError, msgspec.MsgspecError) as error:
            raise StreamDamaged(str(error)) from error


def packed(parts: list[bytes]) -> bytes:
    """Return the elements of some pages, compressed on their own; a `StreamReader` reads them."""
    from . import zstd

    return zstd.compress(_encode(parts), _ALONE)


def unpacked(data: object) -> list[bytes]:
    """Return what was packed.

    Raises:
        StreamDamaged: it cannot be read.
    """
    return StreamReader().next(data)


def in_blocks(elements: Mapping[int, bytes]) -> Iterator[dict[int, bytes]]:
    """Yield the elements in parts of about `BLOCK_BYTES`: nearly always in one."""
    block: dict[int, bytes] = {}
    size = 0
    for seq, each in elements.items():
        if size >= BLOCK_BYTES:
            yield block
            block, size = {}, 0
        block[seq] = each
        size += len(each)
    if block:
        yield block
