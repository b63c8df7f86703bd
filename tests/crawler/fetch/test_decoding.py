"""Kept bodies are decoded within their limits, and what is wrong with them is said."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.fetch.decoding import BAD, CUT, TRUNCATED, decode

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTE = 1 << 20
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
TEXT = b"".join(b"line %d of a page\n" % number for number in range(3000))


@pytest.mark.parametrize("name", ENCODERS)
@given(body=st.binary(max_size=2000))
def test_every_encoding_is_undone(name: str, body: bytes) -> None:
    """Whatever was encoded comes back."""
    assert decode(ENCODERS[name](body), name.upper(), MEGABYTE) == (body, None)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("size", [65_536, 262_144, 524_288, 1_048_576])
def test_nothing_is_held_back_at_the_end_of_a_part(name: str, size: int) -> None:
    """A decoder may have taken all bytes, and have some of the result left."""
    for more in (-1, 0, 1, 32, 88, 264, 600):
        body = bytes(size + more)
        assert decode(ENCODERS[name](body), name, 2 * MEGABYTE) == (body, None)


@given(
    bodies=st.lists(st.binary(max_size=300), min_size=1, max_size=3),
    end=st.binary(max_size=6),
    size=st.none() | st.integers(0, 700),
    cut=st.integers(0, 30),
    most=st.integers(0, 700),
)
def test_one_step_and_many_agree(
    bodies: list[bytes], end: bytes, size: int | None, cut: int, most: int
) -> None:
    """However long a stream says that it becomes, it is decoded as by its other name."""
    stream = b"".join(map(gzip.compress, bodies))
    if size is not None:
        stream = stream[:-4] + size.to_bytes(4, "little")
    stream = stream[: len(stream) - cut] + end

    assert decode(stream, "gzip", most) == decode(stream, "x-gzip", most)


@pytest.mark.parametrize("name", ENCODERS)
def test_stream_that_ends_early_is_truncated(name: str) -> None:
    """The beginning is returned, and the reason."""
    encoded = ENCODERS[name](TEXT)

    body, problem = decode(encoded[: len(encoded) - 20], name, MEGABYTE)

    assert problem == TRUNCATED
    assert TEXT.startswith(body)


@pytest.mark.parametrize("name", ENCODERS)
def test_bomb_is_cut_at_the_cap(name: str) -> None:
    """100 MB of nothing become as much as is allowed."""
    bomb = ENCODERS[name](bytes(100 * MEGABYTE))

    body, problem = decode(bomb, name, MEGABYTE)

    assert (len(body), problem) == (MEGABYTE, CUT)


@pytest.mark.parametrize("name", ENCODERS)
def test_wrong_stream_is_bad(name: str) -> None:
    """A header that lies costs the page its content, not the crawl."""
    assert decode(b"<html>not encoded at all</html>", name, MEGABYTE).problem == BAD


def test_nested_encodings_are_undone_from_the_outside() -> None:
    """As many as an honest server nests, and no more."""
    twice = gzip.compress(zlib.compress(TEXT))

    assert decode(twice, "deflate, gzip", MEGABYTE) == (TEXT, None)
    assert decode(twice, "gzip, gzip, gzip, gzip", MEGABYTE) == (twice, BAD)


def test_deflate_without_its_wrapper_is_read() -> None:
    """Some servers send the bare stream."""
    packer = zlib.compressobj(wbits=-15)
    bare = packer.compress(TEXT) + packer.flush()

    assert decode(bare, "deflate", MEGABYTE) == (TEXT, None)


def test_gzip_members_are_joined_and_padding_is_ignored() -> None:
    """As curl and browsers do."""
    two = gzip.compress(b"one ") + gzip.compress(b"two")

    assert decode(two + b"\0\0\0", "gzip", MEGABYTE) == (b"one two", None)


def test_members_have_an_end() -> None:
    """A thousand are decoded; what follows counts as padding."""
    assert decode(gzip.compress(b"x") * 1500, "gzip", MEGABYTE) == (b"x" * 1000, None)


@pytest.mark.parametrize("encoding", [None, "", "identity", "none"])
def test_body_without_encoding_is_left_alone(encoding: str | None) -> None:
    """It is the same object."""
    assert decode(TEXT, encoding, 10).body is TEXT


@pytest.mark.parametrize("body", [b"a", b"page", b"<p>A page that is not compressed at all"])
def test_what_is_no_gzip_is_bad_and_not_truncated(body: bytes) -> None:
    """However short it is."""
    assert decode(body, "gzip", MEGABYTE) == (b"", BAD)


def test_unknown_encoding_is_bad() -> None:
    """The body is returned as it is."""
    assert decode(TEXT, "compress", MEGABYTE) == (TEXT, BAD)
