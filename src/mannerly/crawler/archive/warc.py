"""Records of a web archive (WARC 1.1, ISO 28500:2017), each as one gzip member.

    warcinfo    the first record of every file: who crawled, and how
    response    an answer as it was received
    revisit     the same answer again: the payload is in an earlier record, or was not sent (304)
    request     what was asked, in one pair with its answer
    conversion  the final DOM of a page that a browser has shown, beside its answer

Archive tools seek to a record and decompress from there, so every record is a member of its own. A
body that its server has compressed is not compressed again: it is put into stored blocks with the
headers in front of it, and so is its request. To deflate these few hundred bytes would take longer
than everything else, and save a fiftieth of the size.

Text of servers goes into a record as it is, but never into the headers of the record itself: they
hold canonical URLs, our own digests and dates. HTTP/2 has no status line and chunks are joined by
the client, so the head of an answer is written as HTTP/1.1, and `Transfer-Encoding` under another
name: readers would look for chunks. This module knows no file and no clock.
"""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b32encode
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha1
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.model import RawExchange

NOT_MODIFIED = 304

_SAME = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_TAIL = b"\r\n\r\n"  # after every record
_STORED_BYTES = 0xFFFF  # of one stored block
_SMALL = 1024  # bytes of a body that is deflated with its headers, whatever it is
# Media that is compressed by its own format.
_DENSE = (b"image/", b"audio/", b"video/", b"font/woff", b"application/zip", b"application/gzip")
_REDUNDANT = (b"image/svg", b"image/bmp", b"image/x-icon", b"image/vnd.microsoft.icon")
# Never archived: what a request proves its sender with.
_SECRET = (b"authorization:", b"cookie:", b"proxy-authorization:")


class Original(NamedTuple):
    """The earlier record with the same payload."""

    url: str
    date: str
    record_id: str = ""


class AnswerRecords(NamedTuple):
    """The members of an answer, and what identifies it."""

    response: bytes
    request: bytes
    date: str
    record_id: str


def warc_date(wall: float) -> str:
    """Return wall time as `2026-11-17T13:20:04Z`: whole seconds are what all tools read."""
    return _date(int(wall))


@lru_cache(maxsize=4)  # many answers a second come
def _date(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def payload_digest(body: bytes) -> str:
    """Return the digest of a payload, in the form that archives use."""
    return "sha1:" + b32encode(sha1(body, usedforsecurity=False).digest()).decode()


def warcinfo(filename: str, facts: Mapping[str, str], wall: float) -> bytes:
    """Return the first record of a file."""
    lines = [f"{name}: {_one_line(value)}\r\n" for name, value in facts.items()]
    block = "".join(lines).encode()
    head = _head(
        "warcinfo",
        _new_id(),
        warc_date(wall),
        "application/warc-fields",
        len(block),
        [f"WARC-Filename: {filename}", f"WARC-Block-Digest: {payload_digest(block)}"],
    )
    return _deflated(head + block + _TAIL)


def answer_records(
    url: str, exchange: RawExchange, wall: float, digest: str, original: Original | None
) -> AnswerRecords:
    """Return the records of an answer and its request.

    Args:
        url: the canonical URL.
        exchange: what was sent and received.
        wall: when the answer was complete.
        digest: of the body as it was received (`payload_digest`).
        original: the earlier record of the same payload, if there is one.
    """
    date, identity = warc_date(wall), _new_id()
    http, status = _http_head(exchange.head)
    is_revisit = original is not None or status == NOT_MODIFIED
    body = b"" if is_revisit else exchange.body
    more = [f"WARC-Target-URI: {url}"]
    if exchange.address:
        more.append(f"WARC-IP-Address: {exchange.address}")
    block = sha1(http, usedforsecurity=False)
    block.update(body)
    more.append(f"WARC-Block-Digest: sha1:{b32encode(block.digest()).decode()}")
    if status != NOT_MODIFIED:
        more.append(f"WARC-Payload-Digest: {digest}")
    if is_revisit:
        more.append(f"WARC-Profile: {_SAME if status != NOT_MODIFIED else _NOT_MODIFIED}")
    if original is not None:
        more.append(f"WARC-Refers-To-Target-URI: {original.url}")
        more.append(f"WARC-Refers-To-Date: {original.date}")
        if original.record_id:
            more.append(f"WARC-Refers-To: {original.record_id}")
    if exchange.cut is not None:
        more.append(f"WARC-Truncated: {exchange.cut}")
    kind = "revisit" if is_revisit else "response"
    media = "application/http;msgtype=response"
    head = _head(kind, identity, date, media, len(http) + len(body), more) + http
    pack = _stored if len(body) >= _SMALL and _is_dense(http) else _deflated
    response = pack(head, body, _TAIL)
    asked = _without_secrets(exchange.request)
    about = [
        f"WARC-Target-URI: {url}",
        f"WARC-Concurrent-To: {identity}",
        f"WARC-Block-Digest: {payload_digest(asked)}",
    ]
    media = "application/http;msgtype=request"
    head = _head("request", _new_id(), date, media, len(asked), about)
    return AnswerRecords(response, pack(head, asked, _TAIL), date, identity)


def shown_record(url: str, exchange: RawExchange, shown: bytes, wall: float, of: str) -> bytes:
    """Return the record of a page's final DOM, with the headers of its answer.

    It has the form of an answer, so that it is read back as one. `of` is the record of the answer.
    Its URI is one of its own: some replay tools would take it for the answer otherwise.
    """
    lines = _http_head(exchange.head)[0].removesuffix(_TAIL).split(b"\r\n")
    kept = [each for each in lines if not each.lower().startswith(_OF_BODY)]
    http = b"\r\n".join([*kept, b"Content-Type: text/html; charset=utf-8"]) + _TAIL
    about = [
        f"WARC-Target-URI: urn:dom:{url}",
        f"WARC-Refers-To: {of}",
        f"WARC-Block-Digest: {payload_digest(http + shown)}",
    ]  # no payload digest: tools look for an HTTP body in answers only
    media = "application/http;msgtype=response"
    size = len(http) + len(shown)
    head = _head("conversion", _new_id(), warc_date(wall), media, size, about)
    return _deflated(head, http, shown, _TAIL)


def _head(kind: str, identity: str, date: str, media: str, length: int, more: list[str]) -> bytes:
    lines = [
        "WARC/1.1",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: {identity}",
        f"WARC-Date: {date}",
        *more,
        f"Content-Type: {media}",
        f"Content-Length: {length}",
        "\r\n",
    ]
    return "\r\n".join(lines).encode()


def _new_id() -> str:
    """Return a random UUID (version 4), in a sixth of the time of `uuid4`."""
    digits = f"{_ids.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return (
        f"<urn:uuid:{digits[:8]}-{digits[8:12]}-4{digits[13:16]}"
        f"-{variant}{digits[17:20]}-{digits[20:]}>"
    )


# Begun by the generator of the system, which would be asked for every record otherwise.
_ids = Random()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _http_head(head: bytes) -> tuple[bytes, int]:
    """Return the head of an answer as HTTP/1.1, and its status."""
    spelled = head.replace(_CHUNKED, _KEPT_CHUNKED)  # as nearly all servers write it
    if _ORDINARY_HEAD.fullmatch(spelled) is not None:
        return spelled, int(spelled[9:12])
    first, *lines = [line.rstrip(b"\r") for line in head.split(b"\n")]
    version, _, rest = first.partition(b" ")
    code = rest[:3]
    status = int(code) if code.isdigit() else 0
    if not version.startswith(b"HTTP/1."):
        phrase = HTTPStatus(status).phrase if status in _STATUSES else ""
        first = f"HTTP/1.1 {status} {phrase}".encode()
    kept = [first]
    for line in lines:
        name, colon, _ = line.partition(b":")
        if not colon:
            continue
        is_chunked = name.strip().lower() == b"transfer-encoding"
        kept.append(b"X-Orig-" + line if is_chunked else line)
    return b"\r\n".join(kept) + _TAIL, status


_CHUNKED, _KEPT_CHUNKED = b"\r\nTransfer-Encoding:", b"\r\nX-Orig-Transfer-Encoding:"
# Headers of the body as it was sent.
_OF_BODY = (
    b"content-type:",
    b"content-encoding:",
    b"content-length:",
    b"x-orig-transfer-encoding:",
)
_STATUSES = frozenset(HTTPStatus)
# A head that is kept as it is: HTTP/1.1 with nothing but headers in it, none about chunks.
_ORDINARY_HEAD = re.compile(
    rb"HTTP/1\.[01] \d{3} [^\r\n]*\r\n"
    rb"(?:(?![Tt][Rr][Aa][Nn][Ss][Ff][Ee][Rr])[^\r\n: \t]++:[^\r\n]*+\r\n)*+\r\n"
)


def _without_secrets(request: bytes) -> bytes:
    """Return the head of a request without the values that prove who sends it."""
    lower = request.lower()
    if not any(name in lower for name in _SECRET):
        return request
    lines = request.split(b"\r\n")
    return b"\r\n".join(
        line.partition(b":")[0] + b": (left out)" if line.lower().startswith(_SECRET) else line
        for line in lines
    )


def _is_dense(http: bytes) -> bool:
    """Return whether a body is compressed already, so that deflating it saves nothing."""
    lower = http.lower()
    at = lower.find(b"\r\ncontent-encoding:")
    if at >= 0 and lower[at + 19 : at + 40].strip()[:8] != b"identity":
        return True
    at = lower.find(b"\r\ncontent-type:")
    media = lower[at + 15 : at + 60].strip() if at >= 0 else b""
    return media.startswith(_DENSE) and not media.startswith(_REDUNDANT)


# ---------------------------------------------------------------------- gzip members


def _deflated(*parts: bytes) -> bytes:
    """Return a gzip member. Little memory for zlib: its set-up takes longer than these bytes."""
    size = sum(map(len, parts))
    memory = 1 if size < 2 * _SMALL else 8
    packer = zlib.compressobj(1, zlib.DEFLATED, 31, memory)
    return b"".join([*map(packer.compress, parts), packer.flush()])


def _stored(*parts: bytes) -> bytes:
    """Return a gzip member in which nothing is deflated."""
    size, checksum = sum(map(len, parts)), 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    end = struct.pack("<II", checksum, size & 0xFFFFFFFF)
    if size <= _STORED_BYTES:  # of most answers the bytes are copied once
        return b"".join((_GZIP_HEAD, _block_head(size, is_last=True), *parts, end))
    data = b"".join(parts)
    blocks = [_GZIP_HEAD]
    for start in range(0, size, _STORED_BYTES):
        block = data[start : start + _STORED_BYTES]
        blocks += [_block_head(len(block), is_last=start + _STORED_BYTES >= size), block]
    return b"".join([*blocks, end])


def _block_head(size: int, *, is_last: bool) -> bytes:
    """Return what stands before the bytes of a stored block: mark, length, its complement."""
    return struct.pack("<BHH", is_last, size, size ^ 0xFFFF)
