"""Decode bodies as they were received: gzip, deflate, br and zstd, nested or not.

curl could do it, with zlib. ISA-L takes two fifths of that time, which saves a sixth of all that a
compressed page costs, and a stream that ends early is noticed here (docs/adr/0091). Bodies are
decoded one at a time: the result is cut at `max_bytes`, whatever a bomb would become, and no more
encodings are undone than an honest server nests.

    problem       what is returned
    none          the whole body
    cut_at_cap    its first `max_bytes`
    truncated     what could be decoded before the stream ended early
    bad_encoding  what could be decoded before the stream was wrong; the body as it is if it is in
                  an encoding that is not installed

br is asked for if its package is there. A crawl that keeps bodies asks for gzip and deflate only,
because that is what archive tools can read. Servers that send zstd all the same are understood if
the package zstandard is installed (extra `archive`).
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

try:
    from isal import isal_zlib as zlib
except ImportError:  # there are wheels for the two most frequent kinds of processor only
    import zlib  # type: ignore[no-redef]

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ENCODINGS = 3  # curl allows five; more than two are a bomb or a mistake
MAX_MEMBERS = 1000  # gzip streams in a row
CUT, TRUNCATED, BAD = "cut_at_cap", "truncated", "bad_encoding"

_CHUNK = 64 * 1024
_PART = 4 * _CHUNK  # of the result
_GZIP, _ZLIB, _RAW = 31, 15, -15  # zlib's names for its three wrappers
_GZIP_BEGINS = b"\x1f"
_WINDOW = 128 << 20  # the largest window of zstd that is decoded, as in browsers

_ZLIB_ERROR = cast("type[Exception]", zlib.error)  # its stubs call it a value
_OPTIONAL = {"br": "brotli", "zstd": "zstandard"}


class Decoded(NamedTuple):
    """A decoded body, and what was wrong with it."""

    body: bytes
    problem: str | None = None


class _BadStream(Exception):  # noqa: N818 - a state of the stream
    """The stream is not what its header says."""


class _Stream(Protocol):
    """A decoder of one encoding: it is given bytes and returns some of the result."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...

    @property
    def is_whole(self) -> bool: ...


@cache
def accepted(*, keeps: bool) -> str:
    """Return the value of Accept-Encoding, of a crawl that keeps bodies or of another."""
    return "gzip, deflate" if keeps or not find_spec("brotli") else "gzip, deflate, br"


def decode(body: bytes, encoding: str | None, max_bytes: int) -> Decoded:
    """Return a body without its Content-Encoding, and what was wrong with it."""
    if encoding == "gzip":
        whole = _ordinary(body, max_bytes)
        if whole is not None:
            return whole
    names = [name.strip().lower() for name in (encoding or "").split(",")]
    names = [name for name in names if name not in ("", "identity", "none")]
    if not names or not body:
        return Decoded(body)
    if len(names) > MAX_ENCODINGS:
        return Decoded(body, BAD)
    problem: str | None = None
    for name in reversed(names):
        stream = _stream(name, body)
        if stream is None:
            return Decoded(body, BAD)
        body, wrong = _decoded(stream, body, max_bytes)
        # The innermost problem says most: an outer layer that is cut makes the inner one truncated.
        problem = problem or wrong
    return Decoded(body, problem)


def _ordinary(body: bytes, max_bytes: int) -> Decoded | None:
    """Return a small body of one gzip stream, as nearly all are, in one step; None: it is not one.

    Its last bytes say how long it becomes, which need not be true: no more than that is decoded.
    """
    size = int.from_bytes(body[-4:], "little")
    if body[:1] != _GZIP_BEGINS or not size <= min(_PART, max_bytes):
        return None
    stream = zlib.decompressobj(_GZIP)
    try:
        whole = stream.decompress(body, size + 1)
    except _ZLIB_ERROR:
        return None
    return Decoded(whole) if stream.eof and not stream.unused_data else None


def _decoded(stream: _Stream, body: bytes, max_bytes: int) -> Decoded:
    parts: list[bytes] = []
    room = max_bytes
    try:
        for start in range(0, len(body), _CHUNK):
            for part in stream.feed(body[start : start + _CHUNK]):
                parts.append(part[:room])
                room -= len(part)
                if room < 0:
                    return Decoded(b"".join(parts), CUT)
    except _BadStream:
        return Decoded(b"".join(parts), BAD)
    return Decoded(b"".join(parts), None if stream.is_whole else TRUNCATED)


def _stream(name: str, body: bytes) -> _Stream | None:
    if name in ("gzip", "x-gzip"):
        return _Deflate(_GZIP)
    if name == "deflate":
        # The standard says zlib's wrapper; some servers send the bare stream, and browsers read it.
        is_zlib = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0
        return _Deflate(_ZLIB if is_zlib else _RAW)
    if name in _OPTIONAL and find_spec(_OPTIONAL[name]):
        return _Brotli() if name == "br" else _Zstandard()
    return None


class _Deflate:
    """gzip, of any number of members up to MAX_MEMBERS, and the two kinds of deflate."""

    def __init__(self, wrapper: int) -> None:
        self._wrapper = wrapper
        self._members = 0
        self._stream = zlib.decompressobj(wrapper)

    @property
    def is_whole(self) -> bool:
        return self._stream.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not self._members:
            self._members = 1
            if self._wrapper == _GZIP and data[:1] != _GZIP_BEGINS:  # ISA-L waits for a whole head
                raise _BadStream("not gzip")
        is_full = False  # then it may hold more back, even if it has taken all that it was given
        while data or is_full:
            if self._stream.eof:
                if (
                    self._wrapper != _GZIP
                    or data[:1] != _GZIP_BEGINS
                    or self._members >= MAX_MEMBERS
                ):
                    return  # what follows a complete stream is padding, to browsers too
                self._members += 1
                self._stream = zlib.decompressobj(self._wrapper)
            try:
                part = self._stream.decompress(data, _PART)
            except _ZLIB_ERROR as error:
                raise _BadStream(str(error)) from error
            if part:
                yield part
            is_full = len(part) == _PART
            data = self._stream.unconsumed_tail or self._stream.unused_data


class _Brotli:
    """br."""

    def __init__(self) -> None:
        import brotli

        self._error = brotli.error
        self._stream = brotli.Decompressor()

    @property
    def is_whole(self) -> bool:
        return bool(self._stream.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            part = self._stream.process(data, output_buffer_limit=_PART)
            while part or not self._stream.can_accept_more_data():
                yield part
                part = self._stream.process(b"", output_buffer_limit=_PART)
        except self._error as error:
            raise _BadStream(str(error)) from error


class _Zstandard:
    """zstd."""

    def __init__(self) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._new = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj
        self._stream = self._new(write_size=_CHUNK)

    @property
    def is_whole(self) -> bool:
        return bool(self._stream.eof)

    def feed(self, data: bytes) -> Iterator[bytes]:
        # It has no limit for its output, so it gets little at a time: a block of 128 KB is the
        # most that some bytes become at once.
        for start in range(0, len(data), 64):
            if self._stream.eof:
                return
            try:
                part = self._stream.decompress(data[start : start + 64])
            except self._error as error:
                raise _BadStream(str(error)) from error
            if part:
                yield part
