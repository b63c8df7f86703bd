"""Reads ordinary pages in one pass of a regular expression, without building a tree.

A crawler needs a dozen kinds of element. Where they are is decided by the tokens of HTML (where a
tag, a comment, a script ends); the tree that browsers build from tokens only adds their nesting,
which is not needed here. So one pattern looks at every `<` of the bytes. Most begin a tag without
links, where it does not match; the text between tags is never looked at. Each match is replaced by
one field, and everything else is left out: one call of PCRE2 turns 46 KB into 4, in a quarter of
the time of a tree.

The pattern knows how authors and programs write, not all that browsers forgive. Anything that it
neither passes over nor takes is odd, and the tree reads that page (`tree.py`):

    a `<` or `>` or a stray quote inside a tag, a NUL, an unusual encoding, frames, MathML,
    `<plaintext>`, a comment in a script that holds another script, a `<template>` beside a `<col>`,
    drawings and choices (`<svg>`, `<select>`) with anything in them but what belongs there.

So odd pages cost little more than their tree. Every alternative consumes what it has looked at, or
ends at the next `<`, so the time is linear, whatever the page. That scan and tree give the same
elements is tested on generated and damaged markup and on the inputs of html5lib's tests.

turbohtml takes 25 ms to import and some megabytes, so it is imported when it is first needed.
Without PCRE2, or where it may not generate machine code, every page gets its tree (`pcre.py`).
"""

from __future__ import annotations

import re

from mannerly.crawler.web.charset import ASCII_CODECS

from .parsed import PAGE_RELATIONS, Elements
from .pcre import Scanner

_SPACE = r"[\t\n\f\r ]"
_NAME_ENDS = r"(?=[\t\n\f\r />])"

# The attributes of a tag: quotes only around values, and neither < nor > anywhere. An equals sign
# has another meaning elsewhere, so it must follow a name directly, or the tag is odd.
_OUTSIDE = r"[^<>\"'=]*+"
_QUOTED = r"""(?:"[^<>"]*+"|'[^<>']*+')"""
_VALUE = rf"""(?<![\t\n\f\r /"'=])={_SPACE}*+(?:{_QUOTED}|[^\t\n\f\r <>"']*+)"""
_ATTRIBUTES = f"{_OUTSIDE}(?:{_VALUE}{_OUTSIDE})*+"
_COMMENT = r"!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?+)"


def _text_until(name: str, other: str = "") -> str:
    """A pattern for text up to an end tag, up to `other`, or up to the end of the page."""
    end = rf"</{name}{_NAME_ENDS}" + (other and f"|{other}")
    return f"[^<]*+(?:(?!{end})<[^<]*+)*+"


_SVG_NAMES = (
    r"(?:g|path|circle|rect|use|defs|poly(?:gon|line)|line|ellipse|symbol|stop|mask|text|tspan"
    r"|(?:linear|radial)Gradient|clipPath|pattern|filter|fe[a-z]+|animate[a-z]*)"
)

_SVG_TEXT = "|".join(
    rf"{name}{_NAME_ENDS}{_ATTRIBUTES}(?<!/)>[^<]*+</{name}>" for name in ("title", "desc")
)

_RAW_TEXT = "|".join(
    f"{name}{_NAME_ENDS}{_ATTRIBUTES}>{_text_until(name)}"
    for name in ("noembed", "noframes", "style", "textarea", "xmp")
)

# By their first letters: most tags begin with none of these, so one look tells that they are plain.
_NAMES = (
    r"(?:a(?:rea)?|base|frame(?:set)?|iframe|link|m(?:ath|eta)|no(?:embed|frames)|plaintext"
    rf"|s(?:cript|elect|tyle|vg)|t(?:e(?:mplate|xtarea)|itle)|xmp){_NAME_ENDS}"
)

# Most <link> and <meta> are style sheets, icons and descriptions, and most rel attributes do not
# matter. Only these words do; a character reference may stand for any letter of them.
_TELLING_LINK = "|".join(("&", *sorted(PAGE_RELATIONS)))
_TELLING_META = "&|noindex|nofollow|none|refresh"
_TELLING_REL = "&|nofollow"

# Tags that are passed over, the most frequent kinds first.
_PLAIN = rf"""(?:
    /[a-z0-9]++>
    | [a-z][a-z0-9]?+>
    | (?!{_NAMES})[a-z][a-z0-9-]*+{_NAME_ENDS}{_ATTRIBUTES}>
    | /[a-z][a-z0-9-]*+{_NAME_ENDS}{_ATTRIBUTES}>
    | (?:meta(?![^<>]*?(?:{_TELLING_META}))|link(?![^<>]*?(?:{_TELLING_LINK})))
        {_NAME_ENDS}{_ATTRIBUTES}>
    | (?![a-z/!?])
    )"""

# Elements that are passed over with their content.
_OPAQUE = rf"""(?:
    {_COMMENT}
    | (?:[!?]|/(?![a-z]))[^>]*+
    # elements that hold text only, even where it looks like tags
    | {_RAW_TEXT}
    # scripts: text too, but after the start of a comment another script would open within
    | script{_NAME_ENDS}{_ATTRIBUTES}>{_text_until("script", "<!--")}
        (?:<!--{_text_until("script", "<script")}(?!<script)|(?!<!--))
    # drawings and choices without links
    | svg{_NAME_ENDS}{_ATTRIBUTES}(?<!/)>
        [^<]*+(?:<(?:/?{_SVG_NAMES}{_NAME_ENDS}{_ATTRIBUTES}>|{_SVG_TEXT}|{_COMMENT})[^<]*+)*+</svg>
    | select{_NAME_ENDS}{_ATTRIBUTES}>
        [^<]*+(?:</?opt(?:ion|group){_NAME_ENDS}{_ATTRIBUTES}>[^<]*+)*+</select>
    # a tag that the page's end cuts off
    | /?+[a-z][^>]*+\z
    )"""

# A link as nearly all are written: only its href matters. Of a rel only its own value is looked at;
# otherwise a tag with many of them would be read once for each.
_TELLING = rf"""rel=(?:"[^<>"]*?(?:{_TELLING_REL})|'[^<>']*?(?:{_TELLING_REL}))"""
_ORDINARY_LINK = rf"""a{_SPACE}++
    (?:(?!href=|{_TELLING})[a-z-]++={_QUOTED}{_SPACE}++)*+
    href=(?|"([^<>"]*+)"|([^\t\n\f\r <>"'=]++)(?=[\t\n\f\r >]))
    (?:>|(?![^<>]*?(?:{_TELLING_REL})){_ATTRIBUTES}>)"""

# Each match gives one field: an href, a tag without its `>`, or nothing. Anything odd, with all of
# the page after it, gives a single `<`.
_FIELD = b"\0$1"
_ODD = b"\0<"
_NEXT = rf"""(?!<{_PLAIN})(?|
    <{_ORDINARY_LINK}
    | <{_OPAQUE}()
    | (<(?:a|area|base|link|meta|template){_NAME_ENDS}{_ATTRIBUTES})>
    | (<iframe{_NAME_ENDS}{_ATTRIBUTES})>{_text_until("iframe")}
    | (<title{_NAME_ENDS}{_ATTRIBUTES}>{_text_until("title")})
    | (<)(?s:.*+)
    )"""


# The self-check: pages that use most of the pattern, with the fields that they must give.
_SAMPLES = {
    b"""<!DOCTYPE html><html lang="en"><TITLE lang=en>A &lt; <b></TITLE><!-- <a href="no"> -->
    <script>"<a href=no>"</script><svg><path d="M0"/></svg><p title='x'><a class="c" href="/1">1</a>
    <A ID="a" HREF=/2>2</A><a rel="nofollow" href="/3">3</a><iframe src=/4><a href=no></iframe>
    """: b"\0\0<TITLE lang=en>A &lt; <b>\0\0\0\0/1\0/2"
    b'\0<a rel="nofollow" href="/3"\0<iframe src=/4',
    b"<p title='<'><a href=no>": _ODD,
    b"": b"",
}

_scanner = Scanner(_NEXT.encode(), _FIELD, _SAMPLES)

_NAME_END = re.compile(r"[\t\n\f\r />]")
_ATTRIBUTE = re.compile(
    rf"""([^\t\n\f\r />][^\t\n\f\r />=]*+)
    (?:{_SPACE}*+={_SPACE}*+(?:"([^"]*+)"|'([^']*+)'|([^\t\n\f\r >"'][^\t\n\f\r >]*+)?))?
    """,
    re.VERBOSE,
)

# An ampersand that begins neither `&amp;` nor, in a value, the next parameter of a query.
_REFERENCE = re.compile(r"&(?!amp;)")
_REFERENCE_IN_VALUE = re.compile(r"&(?!amp;|[a-zA-Z0-9]+=)")

# A template that begins with a <col> holds columns only: all other tags in it are dropped.
_COLUMN = re.compile(rb"<[cC][oO][lL][\t\n\f\r />]")


def scanner_problem() -> str | None:
    """Return why every page of this process gets a tree, or None if ordinary pages are scanned."""
    return _scanner.problem


def read(body: bytes, codec: str, limit: int) -> Elements:
    """Read the elements of a page: from its tokens if it is ordinary, otherwise from its tree."""
    fields = _scanned(body, codec)
    if fields is not None:
        elements = _sorted(fields, limit)
        if "template" not in elements.others or _COLUMN.search(body) is None:
            return elements
    from . import tree

    return tree.read(body, codec, limit)


def _scanned(body: bytes, codec: str) -> str | None:
    if codec not in ASCII_CODECS or b"\0" in body:
        return None
    found = _scanner.fields(body)
    if found is None or found.endswith(_ODD):
        return None
    text = found.decode(codec, "replace")
    return _with_newlines(text) if "\r" in text else text


def _sorted(fields: str, limit: int) -> Elements:
    """The elements in the fields, by kind: few fields are tags, the others are hrefs."""
    first, *parts = fields.split("\0<")
    hrefs = _hrefs(first)
    rels: dict[int, str] = {}
    title: str | None = None
    others: dict[str, list[_Element]] = {}
    for part in parts:
        tag, _, more = part.partition("\0")
        name = _NAME_END.split(tag, maxsplit=1)[0].lower()
        if name == "title":
            title = _resolved_text(tag.partition(">")[2]) if title is None else title
        elif name == "a":
            link = _Element(tag[1:])
            rels[len(hrefs)] = link.attr("rel") or ""
            hrefs.append(link.attr("href") or "")
        elif len(found := others.setdefault(name, [])) < limit:
            found.append(_Element(tag[len(name) :]))
        if more:
            hrefs += _hrefs(more)
    if len(hrefs) > limit:
        del hrefs[limit + hrefs.count("") :]
    return Elements(title, hrefs, rels, others)


def _hrefs(fields: str) -> list[str]:
    if "&" in fields:
        if _REFERENCE_IN_VALUE.search(fields) is not None:
            return [_resolved(href) for href in fields.split("\0")]
        fields = fields.replace("&amp;", "&")
    return fields.split("\0")


class _Element:
    """The attributes of one tag."""

    __slots__ = ("_values",)

    def __init__(self, attributes: str) -> None:
        # Of two attributes with the same name the first counts.
        self._values = {
            name.lower(): quoted or single or bare
            for name, quoted, single, bare in reversed(_ATTRIBUTE.findall(attributes))
        }

    def attr(self, name: str, /) -> str | None:
        value = self._values.get(name)
        return None if value is None else _resolved(value)


def _with_newlines(text: str) -> str:
    """The text with line ends as HTML normalises them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _resolved(value: str) -> str:
    """An attribute's value with its character references resolved, by their rules for values."""
    if "&" not in value:
        return value
    if _REFERENCE_IN_VALUE.search(value) is None:
        return value.replace("&amp;", "&")
    from turbohtml import tokenize

    quoted = value.replace('"', "&quot;")
    (tag,) = tokenize(f'<a href="{quoted}">')
    return tag.attr("href") or ""


def _resolved_text(text: str) -> str:
    """The text of a title with its character references resolved, by their rules for text.

    `unescape` has other rules: it drops characters like U+FDD0.
    """
    if "&" not in text:
        return text
    if _REFERENCE.search(text) is None:
        return text.replace("&amp;", "&")
    from turbohtml import parse

    title = parse(f"<title>{text}").find("title")
    return "" if title is None else title.text
