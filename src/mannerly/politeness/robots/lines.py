"""Parse the bytes of a robots.txt into groups of raw directives. Any bytes are accepted.

Real files are written by hand, so lines are interpreted as Google's parser does:

    line      ends at CR, LF or CRLF; read up to 16,663 octets, or up to a NUL
    comment   from `#` to the end of the line
    key       up to the first `:`; recognised by how it *starts*, so `Disallowed` is accepted, and
              so are common misspellings
    no colon  accepted between exactly two words: `Disallow /private`
    group     consecutive User-agent lines and the rules after them; the first rule ends the
              User-agent lines, other lines (Sitemap, Crawl-delay, unknown keys) do not

Values stay raw octets here: most groups are for other crawlers and are never used.
This module does not know how rules match.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple, TypeAlias

FILE_BYTES = 500 * 1024  # RFC 9309 §2.5: a parser must read at least this much; we read no more
LINE_BYTES = 2083 * 8 - 1  # Google's buffer: eight of the longest URLs, without its final NUL
ANY_AGENT = "*"

_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb"[A-Za-z_-]*")


class LineKind(Enum):
    """The kind of a line, by its key. UNKNOWN lines are skipped."""

    AGENT = auto()
    ALLOW = auto()
    DISALLOW = auto()
    SITEMAP = auto()
    CRAWL_DELAY = auto()
    REQUEST_RATE = auto()
    VISIT_TIME = auto()
    UNKNOWN = auto()


# Module constants, because they are found faster than enum members, for every line.
_AGENT, _ALLOW, _DISALLOW = LineKind.AGENT, LineKind.ALLOW, LineKind.DISALLOW
_SITEMAP, _UNKNOWN = LineKind.SITEMAP, LineKind.UNKNOWN

# The first four are Google's table, misspellings included; the others are made in the same way.
_KEYS: tuple[tuple[LineKind, tuple[bytes, ...]], ...] = (
    (LineKind.AGENT, (b"user-agent", b"useragent", b"user agent")),
    (LineKind.ALLOW, (b"allow",)),
    (
        LineKind.DISALLOW,
        (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"),
    ),
    (LineKind.SITEMAP, (b"sitemap", b"site-map")),
    (LineKind.CRAWL_DELAY, (b"crawl-delay", b"crawldelay", b"crawl delay")),
    (LineKind.REQUEST_RATE, (b"request-rate", b"requestrate", b"request rate")),
    (LineKind.VISIT_TIME, (b"visit-time", b"visittime", b"visit time")),
)


# A known line: its kind, its raw value, its line number.
# A plain tuple, because a named tuple would double the time to parse a file.
Directive: TypeAlias = tuple[LineKind, bytes, int]


class Group:
    """The rules and extensions (Crawl-delay etc.) that follow consecutive User-agent lines."""

    __slots__ = ("extensions", "rules")

    def __init__(self) -> None:
        self.rules: list[Directive] = []
        self.extensions: list[Directive] = []


class Contents(NamedTuple):
    """A parsed file: the groups by agent token, and the sitemaps, which belong to no group."""

    groups: dict[str, list[Group]]
    sitemaps: tuple[str, ...]


EMPTY = Contents({}, ())


def read(body: bytes) -> Contents:
    """Parse a file into groups, one for each block of consecutive User-agent lines."""
    groups: dict[str, list[Group]] = {}
    sitemaps: list[str] = []
    group = Group()  # for rules before the first User-agent line, which are ignored
    is_naming = False  # the last rule or User-agent line was a User-agent line
    for directive in _directives(body):
        kind, value, _ = directive
        if kind is _ALLOW or kind is _DISALLOW:
            is_naming = False
            group.rules.append(directive)
        elif kind is _AGENT:
            if not is_naming:
                group, is_naming = Group(), True
            _add_group(groups, _named(value), group)
        elif kind is _SITEMAP:
            sitemaps.append(value.decode("utf-8", "replace"))
        else:
            group.extensions.append(directive)
    return Contents(groups, tuple(dict.fromkeys(filter(None, sitemaps))))


@lru_cache(maxsize=256)
def token_of(agent: str) -> str:
    """Return the token of a User-Agent that robots.txt can name: `mannerly` of `Mannerly/0.1`."""
    if agent == ANY_AGENT:
        return ANY_AGENT
    return _token(agent.encode("utf-8", "surrogatepass"))


def _named(value: bytes) -> str:
    """Return the token of a User-agent line; `* and more` means `*`, as in Google's parser."""
    if value[:1] == b"*" and not value[1:2].strip():
        return ANY_AGENT
    return _token(value)


def _token(name: bytes) -> str:
    found = _TOKEN.match(name)
    return found[0].decode("ascii").lower() if found else ""


def _add_group(groups: dict[str, list[Group]], token: str, group: Group) -> None:
    """Add a group to those of a token, unless it was just added.

    A name without a token (`360Spider`) matches no agent, so its group is left out.
    """
    if not token:
        return
    joined = groups.setdefault(token, [])
    if not joined or joined[-1] is not group:
        joined.append(group)


def _directives(body: bytes) -> list[Directive]:
    directives: list[Directive] = []
    kinds: dict[bytes, LineKind] = {}  # a cache: a file repeats a few spellings
    for number, line in enumerate(_lines(body), 1):
        if not line or line.startswith(b"#"):
            continue
        if b"#" in line:
            line = line[: line.index(b"#")]
        key, colon, value = line.partition(b":")
        if not colon:
            key, value = _two_words(line)
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = _kind_of(key)
        if kind is not _UNKNOWN:
            directives.append((kind, value.strip(), number))
    return directives


def _lines(body: bytes) -> list[bytes]:
    body = _without_bom(body[: len(_BOM) + FILE_BYTES + 1])
    if len(body) > FILE_BYTES:
        # Drop the last, incomplete line: `Allow: /public` may have been cut to `Allow: /`.
        whole = max(body.rfind(b"\n", 0, FILE_BYTES + 1), body.rfind(b"\r", 0, FILE_BYTES + 1))
        body = body[: whole if whole >= 0 else FILE_BYTES]
    lines = body.splitlines()
    if b"\0" in body or max(map(len, lines), default=0) > LINE_BYTES:
        lines = [line[:LINE_BYTES].partition(b"\0")[0] for line in lines]
    return lines


def _without_bom(body: bytes) -> bytes:
    """Remove a byte order mark, even a truncated one."""
    for size in (3, 2, 1):
        if body.startswith(_BOM[:size]):
            return body[size:]
    return body


def _two_words(line: bytes) -> tuple[bytes, bytes]:
    words = [word for word in line.strip().replace(b"\t", b" ").split(b" ") if word]
    return (words[0], words[1]) if len(words) == 2 else (b"", b"")


def _kind_of(key: bytes) -> LineKind:
    key = key.strip().lower()
    for kind, spellings in _KEYS:
        if key.startswith(spellings):
            return kind
    return LineKind.UNKNOWN
