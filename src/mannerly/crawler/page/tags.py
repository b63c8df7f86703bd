"""The attributes and the text of single tags, as authors write them, with references resolved."""

from __future__ import annotations

import re

_SPACE = r"[\t\n\f\r ]"
NAME_END = re.compile(r"[\t\n\f\r />]")
_ATTRIBUTE = re.compile(
    rf"""([^\t\n\f\r />][^\t\n\f\r />=]*+)
    (?:{_SPACE}*+={_SPACE}*+(?:"([^"]*+)"|'([^']*+)'|([^\t\n\f\r >"'][^\t\n\f\r >]*+)?))?
    """,
    re.VERBOSE,
)

# An ampersand that begins neither `&amp;` nor, in a value, the next parameter of a query.
_REFERENCE = re.compile(r"&(?!amp;)")
REFERENCE_IN_VALUE = re.compile(r"&(?!amp;|[a-zA-Z0-9]+=)")


_TAG = re.compile(r"<[^<>]*>?")
_BREAK = re.compile(r"<(?:br|/?p|/?div)\b[^<>]*>?", re.IGNORECASE)


HEADING_ENDS = " \t\n\f\r\xa0¶"


class TagElement:
    """The attributes of one tag."""

    __slots__ = ("_values",)

    def __init__(self, attributes: str) -> None:
        # Of two attributes with the same name the first counts.
        self._values = {
            name.lower(): quoted or single or bare
            for name, quoted, single, bare in reversed(_ATTRIBUTE.findall(attributes))
        }

    def attr(self, name: str, /) -> str | None:
        """Return the value of an attribute: "" if it has none, None without the attribute."""
        value = self._values.get(name)
        return None if value is None else resolved(value)


def with_newlines(text: str) -> str:
    """Return text with line ends as HTML normalises them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def resolved(value: str) -> str:
    """Return an attribute's value with its character references resolved: values have own rules."""
    if "&" not in value:
        return value
    if REFERENCE_IN_VALUE.search(value) is None:
        return value.replace("&amp;", "&")
    quoted = value.replace('"', "&quot;")
    from turbohtml import tokenize  # when it is first needed: see `scan`

    (tag,) = tokenize(f'<a href="{quoted}">')
    return tag.attr("href") or ""


def resolved_text(text: str) -> str:
    """Return the text of a title with its character references resolved, by their rules for text.

    `unescape` has other rules: it drops characters like U+FDD0.
    """
    if "&" not in text:
        return text
    if _REFERENCE.search(text) is None:
        return text.replace("&amp;", "&")
    from turbohtml import parse

    title = parse(f"<title>{text}").find("title")
    return "" if title is None else title.text


def text_of(markup: str) -> str:
    """Return the text of markup in which tags may stand; the last one may be cut off."""
    return resolved_text(_TAG.sub(" ", markup) if "<" in markup else markup)


def heading_of(markup: str) -> str:
    """Return the whole text of a heading, without the mark (¶) that leads to it."""
    if "<" in markup:
        markup = _TAG.sub("", _BREAK.sub(" ", markup))
    return resolved_text(markup).strip(HEADING_ENDS)
