"""Entries of the queue as text, their order as one number, URLs as fingerprints.

**Order.** The score of an entry is `priority · 2²⁷ + seq`: 53 bits, which a double holds exactly.
So a shard can have 134 million URLs, and a priority is below 67 million (`web.priority`).

**Text.** A queued URL is kept without its host, and its parent without what both have in common,
because the memory of the server is the limit of a crawl:

    flags     1 character: scheme, kind, and how the parent is written. For the kinds from 8 on
              it is two bytes
    depth     1 character
    hops      1 character
    path      everything behind the host; the whole URL if the host is not its beginning
    NUL
    shared    1 character: how many characters the parent's path has in common with the path
    rest      the rest of the parent's path, or the whole parent

An entry that does not fit (a depth of 128) is `[` and JSON. Everything is text, because the msgpack
of Lua knows no binary strings; other values are JSON, so that an operator can read them.

**Fingerprints.** 63 bits of a 128-bit hash as a decimal number, and four other bits to choose a
bucket: in a shard of 4 million URLs one is taken for another with a probability of 10⁻⁷.
"""

from __future__ import annotations

import msgspec
from xxhash import xxh3_128_intdigest

from mannerly.crawler.kinds import KINDS, Kind
from mannerly.crawler.model import Entry
from mannerly.crawler.store.base import StoreError

SEQ_BITS = 27
MAX_SEQ = (1 << SEQ_BITS) - 1
MAX_PRIORITY = (1 << 26) - 1
_KINDS = tuple(Kind)
_LONG = 127
_NUMBER = 4  # characters of seven bits

_FINGERPRINT = (1 << 63) - 1
_BUCKET_BITS = (1 << 12) - 1  # of the fingerprint: they choose the bucket, too
_OTHER_BITS = 15

# flags: 0-1 scheme, 2-4 and from 7 on kind, 5-6 parent
_HTTPS, _HTTP, _WHOLE = 0, 1, 2
_NO_PARENT, _SHARED, _WHOLE_PARENT = 0, 1 << 5, 2 << 5
_TEXT32 = b"\xdb"  # msgpack: a text of up to 4 GB
_JSON = "\x7f"  # no flags are that large


class Poisoned(StoreError):  # noqa: N818 - a state of the record
    """A value in the server is not what it should be: it was damaged, or written by others."""


class _Odd(msgspec.Struct, array_like=True, frozen=True):
    """An entry that does not fit the short form."""

    url: str
    depth: int
    parent: str | None
    hops: int
    kind: Kind


_encode = msgspec.json.Encoder().encode
_decode_odd = msgspec.json.Decoder(_Odd).decode
_decode_entry = msgspec.json.Decoder(Entry).decode


def score(priority: int, seq: int) -> int:
    """Return the score of an entry in its host's queue."""
    if not 0 <= priority <= MAX_PRIORITY:
        raise ValueError(f"a priority is 0 … {MAX_PRIORITY}, not {priority}")
    return (priority << SEQ_BITS) | seq


def fingerprint(identity: str) -> tuple[str, int]:
    """Return the fingerprint of a URL or a request, and the number that chooses its bucket.

    With a minus sign it is that of the request with a label for this URL.
    """
    digest = xxh3_128_intdigest(identity.encode())
    low = digest & _FINGERPRINT
    return str(low), ((low & _BUCKET_BITS) << 4) | ((digest >> 64) & _OTHER_BITS)


def pack(url: str, host: str, depth: int, parent: str | None, hops: int, kind: Kind) -> str:
    """Return an entry of its host's queue as text."""
    if depth >= _LONG or hops >= _LONG or "\0" in url:
        return _JSON + text_of(_Odd(url, depth, parent, hops, kind))
    if url.startswith("https://") and url.startswith(host, 8):
        flags, path, base = _HTTPS, url[8 + len(host) :], "https://" + host
    elif url.startswith("http://") and url.startswith(host, 7):
        flags, path, base = _HTTP, url[7 + len(host) :], "http://" + host
    else:
        flags, path, base = _WHOLE, url, ""
    flags |= (kind & 7) << 2 | kind >> 3 << 7
    if parent is None:
        return f"{chr(flags)}{chr(depth)}{chr(hops)}{path}"
    if base and parent.startswith(base):
        rest = parent[len(base) :]
        shared = _shared(path, rest)
        return f"{chr(flags | _SHARED)}{chr(depth)}{chr(hops)}{path}\0{chr(shared)}{rest[shared:]}"
    return f"{chr(flags | _WHOLE_PARENT)}{chr(depth)}{chr(hops)}{path}\0{parent}"


def queued_text(entry: Entry) -> str:
    """Return an entry as it is in a list of its host's queue: its number comes first."""
    kind = KINDS[entry.kind].first  # as it was when it arrived
    seq = entry.seq
    number = f"{chr(seq >> 21)}{chr(seq >> 14 & 127)}{chr(seq >> 7 & 127)}{chr(seq & 127)}"
    return number + pack(entry.url, entry.host, entry.depth, entry.parent, entry.hops, kind)


def unpack(data: bytes, host: str, place: int, key: str) -> Entry:
    """Return an entry of a host's queue, with its score.

    Raises:
        Poisoned: this is no entry; the message names the key.
    """
    seq, priority = place & MAX_SEQ, place >> SEQ_BITS
    try:
        text = data.decode()
        if text[0] == _JSON:
            odd = _decode_odd(text[1:])
            return Entry(seq, odd.url, host, odd.depth, priority, odd.parent, odd.hops, odd.kind)
        flags, depth, hops = ord(text[0]), ord(text[1]), ord(text[2])
        way = flags & 0x60
        path, _, rest = text[3:].partition("\0")
        base = ("https://" + host, "http://" + host, "")[flags & 3]
        parent = None
        if way == _SHARED:
            parent = base + path[: ord(rest[0])] + rest[1:]
        elif way == _WHOLE_PARENT:
            parent = rest
        return Entry(
            seq,
            base + path,
            host,
            depth,
            priority,
            parent,
            hops,
            _KINDS[(flags >> 2) & 7 | flags >> 7 << 3],
        )
    except (IndexError, ValueError, msgspec.MsgspecError) as error:
        raise Poisoned(f"an entry in {key} is damaged ({error})") from None


def text_of(value: object) -> str:
    """Return a value as JSON."""
    return _encode(value).decode()


def as_text(data: bytes) -> msgspec.Raw:
    """Return bytes as msgpack that Lua reads as a string: it knows no binary ones."""
    return msgspec.Raw(_TEXT32 + len(data).to_bytes(4, "big") + data)


def pack_entry(entry: Entry) -> str:
    """Return an entry with its host, priority and number as text."""
    return text_of(entry._replace(attempts=0))


def unpack_entry(data: bytes, key: str) -> Entry:
    """Return what `pack_entry` packed.

    Raises:
        Poisoned: this is no entry; the message names the key.
    """
    try:
        return _decode_entry(data)
    except msgspec.MsgspecError as error:
        raise Poisoned(f"an entry in {key} is damaged ({error})") from None


def number_of(data: bytes) -> int:
    """Return the number of an entry of a list, from its first four characters."""
    if len(data) < _NUMBER:
        raise Poisoned("an entry without a number")
    a, b, c, d = data[:_NUMBER]
    return ((a << 7 | b) << 7 | c) << 7 | d


def unpack_waiting(data: bytes, seq: int, key: str) -> Entry:
    """Return an entry of the waiting room, without its number.

    Raises:
        Poisoned: this is no entry; the message names the key.
    """
    try:
        host, priority, packed = data.split(b"\0", 2)
        return unpack(packed, host.decode(), (int(priority) << SEQ_BITS) | seq, key)
    except ValueError as error:
        raise Poisoned(f"an entry in {key} is damaged ({error})") from None


def _shared(one: str, other: str) -> int:
    """Return how many characters two paths have in common at their beginning, at most 127."""
    limit = min(len(one), len(other), _LONG)
    if one[:limit] == other[:limit]:
        return limit
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
