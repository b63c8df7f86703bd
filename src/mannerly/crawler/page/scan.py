"""Ordinary pages, read in one pass of a regular expression and without a tree.

A crawler asks a page for a dozen kinds of element. Where they are is decided by the tokens of HTML
(where a tag, a comment, a script ends); the tree that browsers build from those only tells where
they hang, which nobody asks here. So one pattern looks at every `<` of the bytes. Most begin a tag
that has no links, where it does not match; what is between them is never looked at. What matches
is replaced by one field, and all else is left out: one call of PCRE2 turns 46 KB into 4, in a
quarter of the time of a tree.

The pattern knows how authors and programs write, not all that browsers forgive. What it neither
passes over nor takes is odd, and the tree decides (`turbo.py`). Such are

    a `<` or `>` or a stray quote inside a tag, a NUL, an unusual encoding, frames, MathML,
    `<plaintext>`, a comment in a script that holds another script,
    drawings and choices (`<svg>`, `<select>`) with anything in them but what belongs there.

So odd pages cost little more than their tree. Every alternative consumes what it has looked at, or
ends at the next `<`, so the time is linear, whatever the page. That it finds what the tree has is
tested on broken markup without end, and so far without an exception.

PCRE2 is fast because it turns the pattern into machine code. Where a process may not make any (a
service with systemd's `MemoryDenyWriteExecute`), every page gets its tree.
"""

from __future__ import annotations

import re

from turbohtml import parse, tokenize

from mannerly.crawler.web.charset import ASCII_CODECS

from . import tree as turbo
from .parsed import PAGE_RELATIONS, Elements
from .pcre import Scanner

_SPACE = r"[\t\n\f\r ]"
_NAME_ENDS = r"(?=[\t\n\f\r />])"

# The attributes of a tag: quotes only around values, and neither < nor > anywhere. What an equals
# sign means is decided by what is before it, so it stands right after a name, or the tag is odd.
_OUTSIDE = r"[^<>\"'=]*+"
_QUOTED = r"""(?:"[^<>"]*+"|'[^<>']*+')"""
_VALUE = rf"""(?<![\t\n\f\r /"'=])={_SPACE}*+(?:{_QUOTED}|[^\t\n\f\r <>"']*+)"""
_ATTRIBUTES = f"{_OUTSIDE}(?:{_VALUE}{_OUTSIDE})*+"
_COMMENT = r"!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?+)"


def _text_until(name: str, other: str = "") -> str:
    """Text that ends before an end tag, before something else, or never."""
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

# By their first letters: most tags have none of these, and are known to be plain by that.
_NAMES = (
    r"(?:a(?:rea)?|base|frame(?:set)?|iframe|link|m(?:ath|eta)|no(?:embed|frames)|plaintext"
    rf"|s(?:cript|elect|tyle|vg)|t(?:e(?:mplate|xtarea)|itle)|xmp){_NAME_ENDS}"
)

# Most of these elements are style sheets, icons and descriptions, and most relations of a link are
# of no interest. A reference may hide any word.
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

# What is passed over with all that it holds.
_OPAQUE = rf"""(?:
    {_COMMENT}
    | (?:[!?]|/(?![a-z]))[^>]*+
    # elements that hold text, whatever it looks like
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

# A link as nearly all are written, with nothing to say but where it leads. Of a rel no more is
# looked at than its own value, or a tag of many would be read once for each.
_TELLING = rf"""rel=(?:"[^<>"]*?(?:{_TELLING_REL})|'[^<>']*?(?:{_TELLING_REL}))"""
_ORDINARY_LINK = rf"""a{_SPACE}++
    (?:(?!href=|{_TELLING})[a-z-]++={_QUOTED}{_SPACE}++)*+
    href=(?|"([^<>"]*+)"|([^\t\n\f\r <>"'=]++)(?=[\t\n\f\r >]))
    (?:>|(?![^<>]*?(?:{_TELLING_REL})){_ATTRIBUTES}>)"""

# One field of each: an href, a tag without its end, or nothing. Of what is odd, and all after it,
# a single `<`.
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

# An ampersand that begins something else than `&amp;` or, in a value, the next parameter of a query.
_REFERENCE = re.compile(r"&(?!amp;)")
_REFERENCE_IN_VALUE = re.compile(r"&(?!amp;|[a-zA-Z0-9]+=)")

# A template that begins with a <col> holds columns only: all other tags in it are dropped.
_COLUMN = re.compile(rb"<[cC][oO][lL][\t\n\f\r />]")


def scanner_problem() -> str | None:
    """Return why every page of this process gets a tree, or None if ordinary pages are scanned."""
    return _scanner.problem


def read(body: bytes, codec: str, limit: int) -> Elements:
    """The elements of a page: from its tokens if they tell, or else from its tree."""
    fields = _scanned(body, codec)
    if fields is not None:
        elements = _sorted(fields, limit)
        if "template" not in elements.others or _COLUMN.search(body) is None:
            return elements
    return turbo.read(body, codec, limit)


def _scanned(body: bytes, codec: str) -> str | None:
    if codec not in ASCII_CODECS or b"\0" in body:
        return None
    found = _scanner.fields(body)
    if found is None or found.endswith(_ODD):
        return None
    text = found.decode(codec, "replace")
    return _with_newlines(text) if "\r" in text else text


def _sorted(fields: str, limit: int) -> Elements:
    """What the fields say, by kind: few of them are tags, and hrefs stand between those."""
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
    """One tag."""

    __slots__ = ("_values",)

    def __init__(self, attributes: str) -> None:
        # Of two with one name the first counts.
        self._values = {
            name.lower(): quoted or single or bare
            for name, quoted, single, bare in reversed(_ATTRIBUTE.findall(attributes))
        }

    def attr(self, name: str, /) -> str | None:
        value = self._values.get(name)
        return None if value is None else _resolved(value)


def _with_newlines(text: str) -> str:
    """Line ends as HTML has them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _resolved(value: str) -> str:
    """An attribute's value with its character references resolved, by their rules for values."""
    if "&" not in value:
        return value
    if _REFERENCE_IN_VALUE.search(value) is None:
        return value.replace("&amp;", "&")
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
    title = parse(f"<title>{text}").find("title")
    return "" if title is None else title.text
