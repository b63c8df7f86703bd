"""Records are what archive tools read, and hold what was on the wire."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from mannerly.crawler.archive.records import ArchiveDamaged, read_record, read_records
from mannerly.crawler.archive.warc import (
    Original,
    answer_records,
    payload_digest,
    shown_record,
    warcinfo,
)
from mannerly.crawler.model import RawExchange

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://a.example/%3Cscript%3E?q=1"
ASKED = b"GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html"


def written(exchange: RawExchange, original: Original | None = None) -> bytes:
    records = answer_records(
        URL, exchange, 1_800_000_000.9, payload_digest(exchange.body), original
    )
    return records.response + records.request


def read(data: bytes) -> list[tuple[dict[str, str], bytes]]:
    """The records as warcio sees them."""
    found = []
    for record in ArchiveIterator(BytesIO(data), no_record_parse=True):
        found.append((dict(record.rec_headers.headers), record.raw_stream.read()))
    return found


def test_answer_and_request_are_a_pair() -> None:
    """Addresses, dates and digests are those of the answer; the request names it."""
    (response, block), (request, asked) = read(
        written(RawExchange(ASKED, HEAD, b"body", "192.0.2.7"))
    )

    assert response["WARC-Type"] == "response"
    assert response["WARC-Target-URI"] == request["WARC-Target-URI"] == URL
    assert response["WARC-Date"] == "2027-01-15T08:00:00Z"
    assert response["WARC-IP-Address"] == "192.0.2.7"
    assert response["WARC-Payload-Digest"] == payload_digest(b"body")
    assert block == HEAD + b"\r\n\r\nbody"
    assert request["WARC-Concurrent-To"] == response["WARC-Record-ID"]
    assert asked == ASKED


@given(st.binary(max_size=70_000), st.booleans())
def test_any_body_comes_back(body: bytes, is_dense: bool) -> None:
    """Stored or deflated, by warcio and by our own reader."""
    head = HEAD + (b"\r\nContent-Encoding: gzip" if is_dense else b"")
    data = written(RawExchange(ASKED, head, body))

    blocks = [block for _, block in read(data)]
    ours = list(read_records(BytesIO(data), len(data)))

    assert blocks[0] == head + b"\r\n\r\n" + body
    assert [record.block for record in ours] == blocks
    assert ours[0].http()[2] == body
    assert read_record(BytesIO(data), ours[1].offset, ours[1].length) == ours[1]


def test_large_compressed_body_is_not_compressed_again() -> None:
    """It takes several stored blocks, and less than a hundredth more than its size."""
    body = bytes(range(256)) * 1000

    data = written(RawExchange(ASKED, HEAD + b"\r\nContent-Encoding: gzip", body))

    assert read(data)[0][1].endswith(body)
    assert len(body) < len(data) < len(body) * 1.01


def test_revisit_names_the_url_and_the_date_of_the_first() -> None:
    """Replay tools find the payload by both."""
    first = Original("https://a.example/first", "2026-01-02T03:04:05Z", "<urn:uuid:1>")

    (revisit, block), _ = read(written(RawExchange(ASKED, HEAD, b"body" * 500), first))

    assert revisit["WARC-Type"] == "revisit"
    assert revisit["WARC-Profile"].endswith("identical-payload-digest")
    assert revisit["WARC-Refers-To-Target-URI"] == first.url
    assert revisit["WARC-Refers-To-Date"] == first.date
    assert block == HEAD + b"\r\n\r\n"


def test_answer_without_a_change_is_a_revisit() -> None:
    """A 304 has no payload, and says nothing about one."""
    exchange = RawExchange(ASKED, b"HTTP/1.1 304 Not Modified\r\nETag: x", b"")

    (revisit, _), _ = read(written(exchange))

    assert revisit["WARC-Profile"].endswith("server-not-modified")
    assert "WARC-Payload-Digest" not in revisit


def test_cut_body_is_marked() -> None:
    """With the reason that the standard has for it."""
    (response, _), _ = read(written(RawExchange(ASKED, HEAD, b"half", cut="length")))

    assert response["WARC-Truncated"] == "length"


def test_head_is_one_that_readers_know() -> None:
    """HTTP/2 gets a status line, and chunks that are joined are not announced."""
    head = b"HTTP/2 404 \r\ntransfer-encoding: chunked\r\nbroken line\r\nx: 1"

    (_, block), _ = read(written(RawExchange(ASKED, head, b"")))

    assert block == (b"HTTP/1.1 404 Not Found\r\nX-Orig-transfer-encoding: chunked\r\nx: 1\r\n\r\n")


def test_chunks_are_not_announced_however_they_are_spelled() -> None:
    """As nearly all servers write it, and in small letters."""
    for spelled in (b"Transfer-Encoding", b"transfer-encoding"):
        head = b"HTTP/1.1 200 OK\r\nA: b\r\n" + spelled + b": chunked\r\n\r\n"

        (_, block), _ = read(written(RawExchange(ASKED, head, b"")))

        kept = b"X-Orig-" + spelled + b": chunked"
        assert block == b"HTTP/1.1 200 OK\r\nA: b\r\n" + kept + b"\r\n\r\n"


def test_secrets_of_a_request_are_left_out() -> None:
    """An archive is given to others."""
    asked = b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic c2VjcmV0\r\nCookie: s=1\r\n\r\n"

    _, (_, block) = read(written(RawExchange(asked, HEAD, b"")))

    assert b"c2VjcmV0" not in block
    assert b"s=1" not in block
    assert b"Authorization: (left out)" in block


HOSTILE = [
    b"\r\nWARC-Type: warcinfo\r\n\r\n",
    b"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n",
    b"\x00\xff=cmd()",
    b"../../etc/passwd",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_a_server_cannot_forge_a_record(text: bytes, tmp_path: Path) -> None:
    """Whatever its headers and its body hold: two records, with right digests."""
    head = HEAD + b"\r\nX-Evil: " + text.replace(b"\r\n\r\n", b"\r\n")
    file = tmp_path / "hostile.warc.gz"
    file.write_bytes(warcinfo(file.name, {"software": "x\r\nforged: y"}, 0.0))
    with file.open("ab") as stream:
        stream.write(written(RawExchange(ASKED, head, text * 400)))

    records = read(file.read_bytes())

    assert [headers["WARC-Type"] for headers, _ in records] == ["warcinfo", "response", "request"]
    assert b"forged: y" not in records[0][1].split(b"\r\n")
    assert checked(file) == 0


def checked(file: Path) -> int:
    """The exit code of `warcio check`."""

    class Command:
        inputs = (str(file),)
        verbose = False

    return int(Checker(Command()).process_all())


def test_final_dom_is_read_back_as_an_answer(tmp_path: Path) -> None:
    """With the headers of the answer, but for those of the body that was sent."""
    sent = (
        b"\r\nContent-Encoding: gzip\r\ncontent-length: 9\r\nTransfer-Encoding: chunked\r\nX-A: b"
    )
    shown = "<p>tëa</p>".encode() * 300
    data = shown_record(URL, RawExchange(ASKED, HEAD + sent, b"gzip"), shown, 1.8e9, "<urn:uuid:1>")
    ((headers, block),) = read(data)
    status, fields, body = read_record(BytesIO(data), 0, len(data)).http()

    file = tmp_path / "dom.warc.gz"
    file.write_bytes(data)

    assert checked(file) == 0
    assert headers["WARC-Target-URI"] == f"urn:dom:{URL}"
    assert (headers["WARC-Type"], headers["WARC-Refers-To"]) == ("conversion", "<urn:uuid:1>")
    assert headers["WARC-Block-Digest"] == payload_digest(block)
    assert (status, body) == (200, shown)
    assert fields == {"content-type": "text/html; charset=utf-8", "x-a": "b"}


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_damaged_record_is_refused(cut: int) -> None:
    """Cut short or overwritten, it raises, and returns nothing wrong."""
    data = written(RawExchange(ASKED, HEAD, b"body" * 300))

    with pytest.raises(ArchiveDamaged):
        list(read_records(BytesIO(data[:-cut]), len(data)))
    with pytest.raises(ArchiveDamaged):
        read_record(BytesIO(bytes(len(data))), 0, len(data))
