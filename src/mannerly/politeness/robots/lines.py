"""From the bytes of a robots.txt to groups of raw directives, for any bytes at all.

Real files are typed by hand, so a line is read the way Google's parser reads it:

    line      ends at CR, LF or CRLF; counts up to 16,663 octets, or up to a NUL
    comment   from `#` to the end of the line
    key       up to the first `:`; known by how it *starts*, so `Disallowed` will do; the six
              commonest misspellings too
    no colon  tolerated between exactly two words: `Disallow /private`
    group     a run of User-agent lines and the rules after them; the first rule closes the run;
              lines that are neither (Sitemap, Crawl-delay, nonsense) close nothing

Values stay raw octets here: most groups are for other crawlers and are never looked at again.
This file does not know how a rule matches.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple, TypeAlias

FILE_BYTES = 500 * 1024  # RFC 9309 §2.5: a parser must read at least this much; we read no more
LINE_BYTES = 2083 * 8 - 1  # Google's buffer, eight of the longest URLs, less its final NUL
ANY_AGENT = "*"

_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb"[A-Za-z_-]*")


class LineKind(Enum):
    """What a line says. Anything that is not listed is UNKNOWN and is skipped."""

    AGENT = auto()
    ALLOW = auto()
    DISALLOW = auto()
    SITEMAP = auto()
    CRAWL_DELAY = auto()
    REQUEST_RATE = auto()
    VISIT_TIME = auto()
    UNKNOWN = auto()


_AGENT, _ALLOW, _DISALLOW = (
    LineKind.AGENT,
    LineKind.ALLOW,
    LineKind.DISALLOW,
)  # found faster by the line
_SITEMAP, _UNKNOWN = LineKind.SITEMAP, LineKind.UNKNOWN

# The first four are Google's table, typos included; the others follow its habit.
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


# A line that means something, its value still raw: what it says, the value, the line number.
# A plain tuple, because naming its fields would double the cost of reading a file.
Directive: TypeAlias = tuple[LineKind, bytes, int]


class Group:
    """What one run of User-agent lines is told: its rules, and its wishes about pace."""

    __slots__ = ("extensions", "rules")

    def __init__(self) -> None:
        self.rules: list[Directive] = []
        self.extensions: list[Directive] = []


class Contents(NamedTuple):
    """A read file: the groups of each agent token, and the sitemaps, which belong to nobody."""

    groups: dict[str, list[Group]]
    sitemaps: tuple[str, ...]


EMPTY = Contents({}, ())


def read(body: bytes) -> Contents:
    """Sort the lines of a file into groups, one per run of User-agent lines."""
    groups: dict[str, list[Group]] = {}
    sitemaps: list[str] = []
    group = Group()  # rules before the first User-agent line are for nobody
    is_naming = False  # the last line that counts was a User-agent line
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
    """The part of a User-Agent that robots.txt can name: `Mannerly/0.1 (+…)` is `mannerly`."""
    if agent == ANY_AGENT:
        return ANY_AGENT
    return _token(agent.encode("utf-8", "surrogatepass"))


def _named(value: bytes) -> str:
    """The token of a User-agent line; `* and more` still means everybody, as at Google."""
    if value[:1] == b"*" and not value[1:2].strip():
        return ANY_AGENT
    return _token(value)


def _token(name: bytes) -> str:
    found = _TOKEN.match(name)
    return found[0].decode("ascii").lower() if found else ""


def _add_group(groups: dict[str, list[Group]], token: str, group: Group) -> None:
    """An agent named in several groups obeys them all; one named twice in a group, once.

    A name without a token (`360Spider`) names nobody, but its rules are nobody else's either.
    """
    if not token:
        return
    joined = groups.setdefault(token, [])
    if not joined or joined[-1] is not group:
        joined.append(group)


def _directives(body: bytes) -> list[Directive]:
    directives: list[Directive] = []
    kinds: dict[bytes, LineKind] = {}  # a file repeats a handful of spellings; look each up once
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
        # Half a line is worse than none: `Allow: /` may be all that is left of `Allow: /public`.
        whole = max(body.rfind(b"\n", 0, FILE_BYTES + 1), body.rfind(b"\r", 0, FILE_BYTES + 1))
        body = body[: whole if whole >= 0 else FILE_BYTES]
    lines = body.splitlines()
    if b"\0" in body or max(map(len, lines), default=0) > LINE_BYTES:
        lines = [line[:LINE_BYTES].partition(b"\0")[0] for line in lines]
    return lines


def _without_bom(body: bytes) -> bytes:
    """Editors leave whole byte order marks, and truncated ones."""
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
