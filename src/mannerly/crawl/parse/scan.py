"""Ordinary pages, read in one pass of a regular expression and without a tree.

A crawler asks a page for a dozen kinds of element. Where they are is decided by the tokens of HTML
(where a tag, a comment, a script ends); the tree that browsers build from those only tells where
they hang, which nobody asks here. So one pattern runs over the bytes: at a `<` it passes over
whatever has no links, and stops at the few names that matter. That takes two thirds of the time of
a tree (as much where every tag is a link), and no memory.

The pattern knows how authors and programs write, not all that browsers forgive. It gives up, and
the tree decides (`turbo.py`), on

    tags in capital letters, a `<` or `>` or a stray quote inside a tag, a NUL, an unusual encoding,
    frames, MathML, `<plaintext>`, a comment in a script that holds another script,
    drawings and choices (`<svg>`, `<select>`) with anything in them but what belongs there.

It never reads on after that point, so that odd pages cost little more than their tree. Every
alternative consumes what it has looked at, so the time is linear, whatever the page. That it finds
what the tree has is tested on broken markup without end, and so far without an exception.

Before Python 3.11.5 the tree reads every page: `(?:…)*+` takes the beginning of one for one there
(python/cpython#106052), and the atomic groups that would do instead take 60 bytes for every time
around, half a gigabyte for the worst page.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from turbohtml import tokenize, unescape

from . import turbo
from .charset import ASCII_CODECS
from .page import PAGE_RELATIONS, Elements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SPACE = r"[\t\n\f\r ]"
_NAME_ENDS = r"(?=[\t\n\f\r />])"


def _except(characters: str) -> str:
    """Any byte but these. Spelled as what is allowed, since that is tested in half the time."""
    ends = sorted(map(ord, characters))
    pairs = zip([-1, *ends], [*ends, 256], strict=True)
    return "[" + "".join(rf"\x{a + 1:02x}-\x{b - 1:02x}" for a, b in pairs if b - a > 1) + "]"


# The attributes of a tag: quotes only around values, and neither < nor > anywhere.
_OUTSIDE = _except("<>\"'") + "*+"
_QUOTED = f"""(?:"{_except('<>"')}*+"|'{_except("<>'")}*+')"""
_ATTRIBUTES = f"{_OUTSIDE}(?:(?<==){_QUOTED}{_OUTSIDE})*+"
_COMMENT = r"!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?+)"


def _text_until(name: str, other: str = "") -> str:
    """Text that ends before an end tag, before something else, or never."""
    end = rf"</(?i:{name}){_NAME_ENDS}" + (other and f"|(?i:{other})")
    return f"[^<]*+(?:(?!{end})<[^<]*+)*+"


_SVG_NAMES = (
    r"(?i:g|path|circle|rect|use|defs|poly(?:gon|line)|line|ellipse|symbol|stop|mask|text|tspan"
    r"|(?:linear|radial)Gradient|clipPath|pattern|filter|fe[a-z]+|animate[a-z]*)"
)

_SVG_TEXT = "|".join(
    rf"{name}{_NAME_ENDS}{_ATTRIBUTES}(?<!/)>[^<]*+</{name}>" for name in ("title", "desc")
)

_RAW_TEXT = "|".join(
    f"{name}{_NAME_ENDS}{_ATTRIBUTES}>{_text_until(name)}"
    for name in ("noembed", "noframes", "style", "textarea", "xmp")
)

# What nearly every tag is, is asked first: the end of something, a name of one or two letters, a
# name that is none of these. Each question that says so saves going through the alternatives.
_NAMES = (
    rf"a{_NAME_ENDS}|area|base|frame|iframe|link|math|meta|noembed|noframes|plaintext|script|select"
    "|style|svg|textarea|title|xmp"
)
_TOKEN = re.compile(
    rf"""<(?!/[a-z0-9]++>)
    (?![a-z]{{1,2}}+>)
    (?!(?!{_NAMES})[a-z][a-z0-9-]*+{_NAME_ENDS}{_ATTRIBUTES}>)
    (?:
    # as nearly every link is written
    a{_SPACE}++(?:(?!href=|rel=)[a-z-]++={_QUOTED}{_SPACE}++)*+
        href=(?:"(?P<href>{_except('<>"')}*+)"|(?P<bare>[^\t\n\f\r <>"'=]++)(?=[\t\n\f\r >]))
        (?P<after>{_ATTRIBUTES})>
    # elements that are their attributes
    | (?P<name>a|area|base|link|meta){_NAME_ENDS}(?P<attributes>{_ATTRIBUTES})>
    # elements that hold text, whatever it looks like
    | iframe{_NAME_ENDS}(?P<iframe>{_ATTRIBUTES})>{_text_until("iframe")}
    | title{_NAME_ENDS}{_ATTRIBUTES}(?P<title>>{_text_until("title")})
    | {_RAW_TEXT}
    # scripts: text too, but after the start of a comment another script would open within
    | script{_NAME_ENDS}{_ATTRIBUTES}>{_text_until("script", "<!--")}
        (?:<!--{_text_until("script", "<script")}(?!<script)|(?!<!--))
    # drawings and choices without links
    | svg{_NAME_ENDS}{_ATTRIBUTES}(?<!/)>
        [^<]*+(?:<(?:/?{_SVG_NAMES}{_NAME_ENDS}{_ATTRIBUTES}>|{_SVG_TEXT}|{_COMMENT})[^<]*+)*+</svg>
    | select{_NAME_ENDS}{_ATTRIBUTES}>
        [^<]*+(?:</?opt(?:ion|group){_NAME_ENDS}{_ATTRIBUTES}>[^<]*+)*+</select>
    | {_COMMENT}
    | [!?][^>]*+
    | /(?:[a-zA-Z]{_ATTRIBUTES}>|(?![a-zA-Z])[^>]*+)
    # what only a tree can tell
    | (?:/?+[a-z]{_ATTRIBUTES}(?=["'<])|/?+[a-z]*+[A-Z]
        |(?:frame|frameset|math|plaintext|script|select|svg){_NAME_ENDS})(?P<odd>(?s:.+))
    )""".encode(),
    re.VERBOSE,
)

_ATTRIBUTE = re.compile(
    rf"""([^\t\n\f\r />][^\t\n\f\r />=]*+)
    (?:{_SPACE}*+={_SPACE}*+(?:"([^"]*+)"|'([^']*+)'|([^\t\n\f\r >"'][^\t\n\f\r >]*+)?))?+
    """.encode(),
    re.VERBOSE,
)

# Most of these elements are style sheets, icons and descriptions. A reference may hide any word.
_TELLING = {
    b"link": re.compile("|".join(("&", *sorted(PAGE_RELATIONS))).encode()),
    b"meta": re.compile(b"&|noindex|nofollow|none|refresh"),
}

# Where an ampersand begins something else than `&amp;` or the next parameter of a query.
_REFERENCE = re.compile(r"&(?!amp;|[a-zA-Z0-9]+=)")

_ODD = _TOKEN.groups - 1

CAN_SCAN = re.fullmatch("(?:ab?c)*+", "a") is None


def read(body: bytes, codec: str) -> Elements:
    """The elements of a page: from its tokens if they tell, or else from its tree."""
    if not CAN_SCAN or codec not in ASCII_CODECS or b"\0" in body:
        return turbo.read(body, codec)
    tokens = _TOKEN.findall(body)
    # It swallows the rest of the page, so it is the last.
    if tokens and tokens[-1][_ODD]:
        return turbo.read(body, codec)
    return _sorted(tokens, codec)


def _sorted(tokens: Iterable[tuple[bytes, ...]], codec: str) -> Elements:
    """What the tokens say, by kind. A token without any group was passed over."""
    hrefs: list[bytes] = []
    rels: dict[int, str] = {}
    title: str | None = None
    others: dict[str, list[bytes]] = {"iframe": []}
    for href, bare, after, name, attributes, iframe, text, _ in tokens:
        if href or bare:
            if after and b"rel" in after.lower():
                rels[len(hrefs)] = _Element(after, codec).attr("rel") or ""
            hrefs.append(href or bare)
        elif name == b"a":
            values = _values(attributes)
            rels[len(hrefs)] = _text(values.get(b"rel", b""), codec)
            hrefs.append(values.get(b"href", b""))
        elif name:
            telling = _TELLING.get(name)
            if telling is None or telling.search(attributes.lower()):
                others.setdefault(name.decode(), []).append(attributes)
        elif iframe:
            others["iframe"].append(iframe)
        # What is caught of a title begins with the end of its tag, so that an empty one is one.
        elif text and title is None:
            title = unescape(text[1:].decode(codec, "replace"))
    return Elements(title, partial(_anchors, hrefs, rels, codec), partial(_find, others, codec))


def _anchors(
    hrefs: list[bytes], rels: dict[int, str], codec: str, *, limit: int
) -> tuple[list[str], dict[int, str]]:
    """Decoded all at once: a NUL stands in none of them."""
    joined = b"\0".join(hrefs[:limit]).decode(codec, "replace")
    if "\r" in joined:
        joined = _with_newlines(joined)
    if "&" not in joined:
        return joined.split("\0"), rels
    if _REFERENCE.search(joined) is None:
        return joined.replace("&amp;", "&").split("\0"), rels
    return [_resolved(text) for text in joined.split("\0")], rels


class _Element:
    """One tag. Most are asked for what they do not have, and never taken apart."""

    __slots__ = ("_attributes", "_codec", "_values")

    def __init__(self, attributes: bytes, codec: str) -> None:
        self._attributes = attributes
        self._codec = codec
        self._values: Mapping[bytes, bytes] | None = None

    def attr(self, name: str, /) -> str | None:
        key = name.encode()
        if key not in self._attributes.lower():
            return None
        if self._values is None:
            self._values = _values(self._attributes)
        value = self._values.get(key)
        return None if value is None else _text(value, self._codec)


def _find(
    others: Mapping[str, Sequence[bytes]], codec: str, tag: str, /, *, limit: int
) -> list[_Element]:
    return [_Element(attributes, codec) for attributes in others.get(tag, ())[:limit]]


def _values(attributes: bytes) -> Mapping[bytes, bytes]:
    """Attributes by name, as written; of two with one name the first counts."""
    return _short_values(attributes) if len(attributes) < 200 else _all_values(attributes)


def _all_values(attributes: bytes) -> Mapping[bytes, bytes]:
    found = _ATTRIBUTE.findall(attributes)
    return {name.lower(): quoted or single or bare for name, quoted, single, bare in found[::-1]}


# A site has the same style sheets on every page, and the same `rel="noopener"` on many links.
_short_values = lru_cache(maxsize=1024)(_all_values)


def _text(value: bytes, codec: str) -> str:
    text = value.decode(codec, "replace")
    return _resolved(_with_newlines(text)) if "&" in text or "\r" in text else text


def _with_newlines(text: str) -> str:
    """Line ends as HTML has them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _resolved(value: str) -> str:
    """An attribute's value with its character references resolved, by their rules for values."""
    if _REFERENCE.search(value) is None:
        return value.replace("&amp;", "&")
    quoted = value.replace('"', "&quot;")
    (tag,) = tokenize(f'<a href="{quoted}">')
    return tag.attr("href") or ""
