"""The files that CSS asks for: `@import`, `url(…)`, and the strings of `image-set(…)`.

CSS is read as a browser splits it into tokens: comments and other strings are passed over, escapes
are resolved, and what is not closed ends with its line or with the text. Whether a rule applies is
not asked: the archive is for every screen.

    @import "a.css" print;                      a.css, a stylesheet
    src: url(f.woff2) format("woff2")           f.woff2
    background: image-set("a.png" 1x, …)        a.png
    @namespace svg url(http://…); url(#mask)    nothing
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_STRING = r""""(?:[^"\\\n]++|\\[\s\S])*+"?|'(?:[^'\\\n]++|\\[\s\S])*+'?"""
_BARE = r"(?:[^\s\"'()\\]++|\\[0-9a-fA-F]{1,6}+\s?+|\\[\s\S])*+"
_URL = rf"url\(\s*+(?:{_STRING}|{_BARE})"

_TOKEN = re.compile(
    rf"""/\*(?:[^*]++|\*(?!/))*+(?:\*/)?+
    |@namespace\b[^;{{}}]*+
    |(?P<rule>@import)\s*+(?:/\*(?:[^*]++|\*(?!/))*+\*/\s*+)*+
        (?:(?P<imported>{_STRING})|(?P<imported_url>{_URL}))
    |(?P<set>(?:-webkit-)?+image-set\()(?P<images>(?:[^()"']++|{_STRING}|\((?:[^()"']++|{_STRING})*+\))*+)
    |(?P<url>{_URL})
    |{_STRING}
    """,
    re.VERBOSE | re.IGNORECASE,
)
# In image-set(): a type names no file.
_IMAGE = re.compile(rf"type\([^()]*+\)|(?P<url>{_URL})|(?P<string>{_STRING})", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(\r\n|[\s\S]))")
_LARGEST = 0x10FFFF


class StyleReference(NamedTuple):
    """A file that CSS asks for, as it is written there."""

    href: str
    is_stylesheet: bool = False


def style_references(text: str) -> Iterator[StyleReference]:
    """Yield the files that a stylesheet, or the value of a style attribute, asks for."""
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind in ("imported", "imported_url"):
            href = token["imported"] or token["imported_url"]
            yield StyleReference(_value(href), is_stylesheet=True)
        elif kind == "url":
            yield StyleReference(_value(token["url"]))
        elif kind == "images":
            for image in _IMAGE.finditer(token["images"]):
                if image.lastgroup is not None:
                    yield StyleReference(_value(image[0]))


def _value(written: str) -> str:
    """Return a string, or what is in `url(…)`, without quotes and escapes."""
    if written[:4].lower() == "url(":
        written = written[4:].strip()
    if written[:1] in ("'", '"'):
        quote = written[0]
        written = written[1:]
        if written.endswith(quote) and not written.endswith("\\" + quote):
            written = written[:-1]
    return _ESCAPE.sub(_character, written) if "\\" in written else written


def _character(found: re.Match[str]) -> str:
    number, other = found.groups()
    if number is None:
        return "" if other in ("\n", "\r\n", "\f") else other
    code = int(number, 16)
    return chr(code) if 0 < code <= _LARGEST and not 0xD800 <= code < 0xE000 else "\ufffd"
