from __future__ import annotations

import gzip

from mannerly.demo.wire import SiteReply, Stream, build, chunk, parse_head


def test_head_is_read_for_what_matters() -> None:
    """Names in any case, values without their blanks."""
    request = parse_head(
        b"GET /a?b=1 HTTP/1.1\r\nHost: x\r\nuser-agent:  bot/1 \r\nACCEPT-ENCODING: br, gzip"
    )

    assert request == ("GET", "/a?b=1", "bot/1", True, True)


def test_connection_is_kept_when_both_sides_can() -> None:
    """A body that is not read ends the connection, because the next request would be lost."""
    cases = (
        (b"GET / HTTP/1.1", True),
        (b"GET / HTTP/1.0", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive", True),
        (b"GET / HTTP/1.1\r\nConnection: Close", False),
        (b"POST / HTTP/1.1\r\nContent-Length: 5", False),
        (b"POST / HTTP/1.1\r\nContent-Length: 0", True),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked", False),
    )
    for head, keeps_alive in cases:
        request = parse_head(head)

        assert request is not None, head
        assert request.keeps_alive is keeps_alive, head


def test_what_is_not_http_is_no_request() -> None:
    """TLS on a plain port included."""
    for head in (b"", b"GET /", b"GET / HTTP/2", b"GET / a HTTP/1.1", b"\x16\x03\x01"):
        assert parse_head(head) is None, head


def test_answer_is_compressed_only_where_nothing_else_has() -> None:
    """A page that already names an encoding is sent as it is."""
    packed = build(SiteReply(200, b"page " * 100), zipped=True)
    bomb = build(SiteReply(200, b"packed", headers=(("Content-Encoding", "gzip"),)), zipped=True)

    assert gzip.decompress(packed.body) == b"page " * 100
    assert b"Content-Encoding: gzip" in packed.head
    assert bomb.body == b"packed"


def test_stream_goes_out_in_chunks() -> None:
    """Its length is unknown, so none is stated."""
    message = build(SiteReply(200, stream=Stream(lambda: iter([b"a"]))))

    assert b"Transfer-Encoding: chunked" in message.head
    assert b"Content-Length" not in message.head
    assert chunk(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"
