"""The tags of a page: single tags as authors write them, and the tags that a crawl keeps.

Single tags give their attributes and their text, with character references resolved.

A crawl stores the tags of a page as they are written, and what they mean is worked out when needed:
by an export, by a report. So a page costs one scan and no parsing (docs/adr/0054).

    codec NUL field NUL extra NUL field NUL extra …

    field               extra
    an href             the beginning of its link's text, with the tags in it
    " and an href       the same of a link marked nofollow; or ' or = instead of the "
    a tag               of an <a>, the same; else nothing
    nothing             a tag that does not matter to the crawl: <img>, <script src>, <meta> …

Tags end before their `>`; only of <title>, <h1> and JSON-LD the text follows it. All of it may be
written by an attacker: `read_elements` bounds and cleans what it returns.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import Link
from mannerly.crawler.web.urls import DEFAULT_RULES, LinkBase, UrlRules

from .parsed import clean_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mannerly.crawler.model import PageRecord


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
_REFERENCE_IN_VALUE = re.compile(r"&(?!amp;|[a-zA-Z0-9]+=)")


_TAG = re.compile(r"""<(?:[^<>"']++|"[^<"]*+"|'[^<']*+'|["'])*+>?""")
_BREAK = re.compile(r"<(?:br|/?p|/?div)\b[^<>]*>?", re.IGNORECASE)


_SEPARATOR = "\x01"  # of values that are resolved together; in a page it is an error

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


def with_ampersands(value: str) -> str | None:
    """Return a value with `&amp;` resolved; None if it has other references."""
    parts = value.split("&amp;")
    is_only = "&" not in "".join(parts)  # a search in memory: counting looks at each character
    return "&".join(parts) if is_only or _REFERENCE_IN_VALUE.search(value) is None else None


def resolved(value: str) -> str:
    """Return an attribute's value with its character references resolved: values have own rules."""
    if "&" not in value:
        return value
    if (found := with_ampersands(value)) is not None:
        return found
    quoted = value.replace('"', "&quot;")
    from turbohtml import tokenize  # when it is first needed: see `scan`

    (tag,) = tokenize(f'<a href="{quoted}">')
    return tag.attr("href") or ""


def resolved_all(values: list[str]) -> list[str]:
    """Return several values with their character references resolved, in one go if possible."""
    found = resolved(_SEPARATOR.join(values)).split(_SEPARATOR)
    return found if len(found) == len(values) else [resolved(value) for value in values]


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


# ---------------------------------------------------------------------- kept elements


MAX_BYTES = 256 * 1024  # of one page: some 4,000 links
MAX_TEXT = 100  # characters of a link's text

# Tags with the attributes that are read later.
KEPT_TAGS = {
    "html": ("lang",),
    "base": ("href",),
    "a": ("href", "rel"),
    "area": ("href", "rel"),
    "iframe": ("src",),
    "frame": ("src",),
    "img": ("src", "srcset", "alt"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "track": ("src",),
    "link": ("href", "rel", "hreflang", "type"),
    "script": ("src", "type"),
    "meta": ("name", "property", "http-equiv", "content"),
}

_TO_END = re.compile(r"""(?:[^>"']++|"[^"]*+"|'[^']*+')*+""")  # a tag's end is no > in quotes
_MARKS = "\"'="  # of hrefs that are not to be followed
_CACHED = 20_000  # fields, and URLs
_SOURCES = {
    "iframe": "iframe", "frame": "frame", "img": "img", "source": "img", "video": "media",
    "audio": "media", "embed": "media", "track": "media", "script": "script",
}  # fmt: skip


def bounded(kept: bytes) -> bytes:
    """Return the elements of a page, cut off after a whole pair of fields."""
    if len(kept) <= MAX_BYTES:
        return kept
    fields = kept[:MAX_BYTES].split(b"\0")
    whole = len(fields) - 2 if len(fields) % 2 else len(fields) - 1
    return b"\0".join(fields[:whole])


def kept_hrefs(hrefs: Iterable[str]) -> bytes:
    """Return links that have no text, such as those of a feed, as the elements of a page."""
    fields = "".join(f"\0{escape(href)}\0" for href in hrefs if not href.startswith(("<", *_MARKS)))
    return f"utf-8{fields}".encode("utf-8", "replace")


class Reference(NamedTuple):
    """One link as it is written: its href is not resolved yet."""

    href: str
    kind: str
    nofollow: bool = False
    text: str | None = None


class KeptElements(NamedTuple):
    """The elements of one page, as text: pairs of fields."""

    fields: list[str]
    extras: list[str]

    @classmethod
    def of(cls, kept: bytes) -> KeptElements:
        """Split what was stored."""
        codec, _, rest = kept.partition(b"\0")
        try:
            text = rest.decode(codec.decode(), "replace")
        except (LookupError, UnicodeDecodeError):
            text = rest.decode("utf-8", "replace")
        parts = with_newlines(text).split("\0")
        return cls(parts[::2], parts[1::2])

    def tags(self, *names: str) -> Iterator[tuple[TagElement, str]]:
        """Yield the tags with these names, each with the text after it, if that was kept."""
        for pair in zip(self.fields, self.extras, strict=False):
            for text in pair:
                if text.startswith("<") and (name := _name(text)) in names:
                    yield _split(text, name)


class LinkReader:
    """Reads the links of many pages. Menus are on each of them, so it remembers what it read."""

    def __init__(self, rules: UrlRules = DEFAULT_RULES) -> None:
        self._rules = rules
        self._references: dict[tuple[str, str], tuple[Reference, ...]] = {}
        self._urls: dict[tuple[str, str], str | None] = {}

    def links(self, record: PageRecord, kept: bytes | None) -> Iterator[Link]:
        """Yield the links of a page, in page order; a redirect has one link."""
        source = record.url
        if record.redirect_to is not None:
            yield Link(
                source, record.redirect_to, "redirect", nofollow=False, text=None, fragment=None
            )
        if kept is None:
            if record.canonical is not None:
                yield Link(source, record.canonical, "canonical", False, None, None)
            return
        elements = KeptElements.of(kept)
        base = self._base(source, elements if b"<base" in kept.lower() else None)
        path = base.text.partition("?")[0]
        origin, folder = path[: path.find("/", 8)], path[: path.rfind("/") + 1]
        known, urls = self._references, self._urls
        for pair in zip(elements.fields, elements.extras, strict=False):
            references = known.get(pair)
            if references is None:
                if len(known) >= _CACHED:
                    known.clear()
                references = known[pair] = tuple(_references(*pair))
            for href, kind, nofollow, text in references:
                place = (
                    origin if href[:1] == "/" else base.text if href[:1] in "?#" else folder,
                    href,
                )
                try:
                    target = urls[place]
                except KeyError:
                    target = self._resolved(base, place)
                if target is not None:
                    fragment = href.partition("#")[2] or None if "#" in href else None
                    yield Link(source, target, kind, nofollow, text, fragment)

    def _base(self, url: str, elements: KeptElements | None) -> LinkBase:
        """Return the base of a page's links; `elements` only if a <base> may be among them."""
        for tag, _ in elements.tags("base") if elements is not None else ():
            if href := tag.attr("href"):
                return LinkBase(LinkBase(url, href).text, rules=self._rules)
        return LinkBase(url, rules=self._rules)

    def _resolved(self, base: LinkBase, place: tuple[str, str]) -> str | None:
        if len(self._urls) >= _CACHED:
            self._urls.clear()
        found = base.resolve(place[1])
        target = self._urls[place] = found if isinstance(found, str) else None
        return target


def _name(tag: str) -> str:
    return NAME_END.split(tag[1:], maxsplit=1)[0].lower()


def _split(tag: str, name: str) -> tuple[TagElement, str]:
    """Return the attributes of a tag, and the text after it."""
    start = 1 + len(name)
    found = _TO_END.match(tag, start)
    end = start if found is None else found.end()
    return TagElement(tag[start:end]), tag[end + 1 :]


def _references(field: str, extra: str) -> Iterator[Reference]:
    """Yield the links that a pair of fields stands for: none, one, or those of a srcset."""
    if field and not field.startswith("<"):
        nofollow = field[0] in _MARKS
        yield Reference(resolved(field[nofollow:]), "a", nofollow, _anchor_text(extra))
        return
    tag = field or extra
    if not tag:
        return
    name = _name(tag)
    element, _ = _split(tag, name)
    if name in _SOURCES:
        yield from _sources(name, element)
    elif name == "meta":
        from .html import refresh_target

        if (element.attr("http-equiv") or "").strip().lower() == "refresh":
            target = refresh_target(element.attr("content") or "")
            if target:
                yield Reference(target, "refresh")
    elif name in ("a", "area", "link") and (href := element.attr("href")):
        relations = (element.attr("rel") or "").lower().split()
        kind = name
        if name == "link" and "canonical" in relations:
            kind = "canonical"
        elif name == "link" and "alternate" in relations and element.attr("hreflang"):
            kind = "hreflang"
        text = _anchor_text(extra) if name == "a" else None
        yield Reference(href, kind, "nofollow" in relations, text)


def _sources(name: str, element: TagElement) -> Iterator[Reference]:
    for attribute, kind in (("src", _SOURCES[name]), ("poster", "img")):
        if href := element.attr(attribute):
            yield Reference(href, kind)
    for candidate in (element.attr("srcset") or "").split(", "):
        if href := candidate.strip().partition(" ")[0].strip(","):
            yield Reference(href, "img")


def _anchor_text(inner: str) -> str | None:
    """Return the text of a link; of an image alone, what is shown instead of it."""
    text = clean_line(text_of(inner))
    if not text and "<img" in inner.lower():
        for each in inner.split("<")[1:]:
            if _name("<" + each) == "img":
                text = clean_line(TagElement(each[3:].partition(">")[0]).attr("alt") or "")
                break
    return text[:MAX_TEXT].rstrip() or None
