"""Writes the text inside a block as Markdown: emphasis, code, links, pictures, line breaks.

Blanks are collapsed as browsers do it; blanks at the ends of an emphasis go outside of it.
Characters that Markdown would take for markup get a backslash, and only where it would. Marks that
lead to the heading itself (¶, #) are left out, titles of links too: they repeat the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from turbohtml import Element, Namespace, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from turbohtml import Node

_DEEPEST = 60  # levels of inline elements
_LONGEST_URL = 2000

_CODE = frozenset(("code", "kbd", "samp", "tt"))
_MARKED = {"b": "**", "strong": "**", "cite": "*", "dfn": "*", "em": "*", "i": "*", "var": "*"}
_MARKED |= {"del": "~~", "s": "~~", "strike": "~~"}
_LEFT_OUT = frozenset(
    (
        "audio", "canvas", "datalist", "embed", "iframe", "map", "meter",
        "noscript", "object", "option", "progress", "rp", "rt", "script", "select", "style", "svg",
        "template", "textarea", "video", "link", "meta",
    )
)  # fmt: skip
_MARKS = frozenset(("", "¶", "#", "§", "🔗", "↩", "↩︎", "^", "⚓", "link"))
_FOOTNOTE = re.compile(r"\[?\w{1,4}\]?")
_INVISIBLE = dict.fromkeys((0xAD, 0x200B, 0x200C, 0x2060, 0xFEFF))
_BLANKS = re.compile(r"[ \t\r\n\f\xa0\u2007\u202f]+")

# What Markdown would take for markup: a backslash before punctuation, a tag, a reference, code,
# emphasis at the edge of a word, a link.
_SUSPECT = re.compile(r"[\\<&`*_\]~]")
_MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|`|\*(?=\S)|(?<=\S)\*"
    r"|(?<!\w)_(?=\S)|(?<=\S)_(?!\w)|\](?=\()|~(?=~)"
)
_START = re.compile(r"(?:[-+*](?=\s|$)|#{1,6}(?=\s|$)|>|(?:={3,}|-{3,})$)")
_NO_TEXT = re.compile(r"[>|`-]")  # a quotation, a table, code, a list
_NUMBER = re.compile(r"(\d{1,9})([.)])(?=\s|$)")


def escaped_start(text: str) -> str:
    """Return a paragraph whose first characters are no markup of a block."""
    if _START.match(text):
        return "\\" + text
    return _NUMBER.sub(r"\1\\\2", text, count=1) if _NUMBER.match(text) else text


class Inline:
    """Writes text; `resolve` returns the absolute URL of a link, or None."""

    def __init__(self, resolve: Callable[[str], str | None]) -> None:
        self._resolve = resolve
        self._depth = 0
        self._inside: set[str] = set()  # kinds of markup that are open

    def of(self, nodes: Iterable[Node]) -> str:
        """Return some nodes as the text of one block."""
        lines = self._all(nodes).split("\n")
        text = "\n".join(_BLANKS.sub(" ", line).strip(" ") for line in lines)
        return text.strip().replace("\n", "  \n")

    def line(self, element: Element) -> str:
        """Return an element on one line, without markup of its own."""
        return " ".join(self.of(element.children).split())

    def heading(self, element: Element) -> str:
        """Return a heading on one line, without links to places of its page."""
        self._inside.add("heading")
        text = self.line(element)
        self._inside.discard("heading")
        return text.rstrip("¶ ")

    def cell(self, element: Element) -> str:
        """Return a cell of a table on one line."""
        self._inside.add("cell")
        text = " ".join(self._all(element.children).split())
        self._inside.discard("cell")
        return text.strip("; ").replace("|", "\\|")

    def _all(self, nodes: Iterable[Node]) -> str:
        found = []
        for node in nodes:
            if isinstance(node, Text):
                found.append(self._text(node.data))
            elif isinstance(node, Element):
                found.append(self._element(node))
        return "".join(found)

    def _text(self, data: str) -> str:
        text = data if data.isascii() else data.translate(_INVISIBLE)
        text = _BLANKS.sub(" ", text)
        return _MARKUP.sub(r"\\\g<0>", text) if _SUSPECT.search(text) else text

    def _element(self, element: Element) -> str:
        tag = element.tag
        if tag in _LEFT_OUT:
            return ""
        if self._depth >= _DEEPEST:
            return self._text(element.text)
        self._depth += 1
        try:
            return self._written(tag, element)
        finally:
            self._depth -= 1

    def _written(self, tag: str, element: Element) -> str:
        if tag == "br":
            return "\n"
        if tag in _CODE:
            return self.code(element)
        if tag == "a":
            return self._link(element)
        if tag == "img":
            return self._picture(element)
        if tag == "input":
            is_box = element.attr("type") == "checkbox" and _parent_tag(element) in (
                "li",
                "p",
                "label",
            )
            return ("[x] " if "checked" in element.attrs else "[ ] ") if is_box else ""
        if tag in _MARKED:
            return self._wrapped(_MARKED[tag], element)
        if element.namespace is Namespace.MATHML:
            return self._text(_formula(element))
        return self._container(tag, element)

    def _container(self, tag: str, element: Element) -> str:
        inside = self._all(element.children)
        if tag == "q":
            return f'"{inside}"'
        if tag == "li":
            return f"{inside.strip()}; "
        if tag in ("p", "div", "dd", "dt", "ul", "ol", "pre", "tr", "td", "th", "table", "summary"):
            return f" {inside} "
        if "line" in (element.attr("class") or "").split():
            return f"{inside}\n"
        return inside

    def _wrapped(self, mark: str, element: Element) -> str:
        if mark in self._inside:
            return self._all(element.children)
        self._inside.add(mark)
        text = self._all(element.children)
        self._inside.discard(mark)
        core = text.strip()
        if not core or not re.search(r"\w|[^\s*_~]", core):
            return text
        before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        core = re.sub(r"\s*\n\s*", " ", core)
        return f"{before}{mark}{core}{mark}{after}"

    def code(self, element: Element) -> str:
        raw = element.text.translate(_INVISIBLE)
        text = _BLANKS.sub(" ", raw)
        core = text.strip()
        if not core:
            return text
        longest = max((len(run) for run in re.findall("`+", core)), default=0)
        fence = "`" * (longest + 1)
        blank = " " if core.startswith("`") or core.endswith("`") else ""
        before, after = (" " if text[0] == " " else ""), (" " if text[-1] == " " else "")
        return f"{before}{fence}{blank}{core}{blank}{fence}{after}"

    def _link(self, element: Element) -> str:
        if "link" in self._inside:
            return self._all(element.children)
        self._inside.add("link")
        text = self._all(element.children)
        self._inside.discard("link")
        core = " ".join(text.split())
        href = element.attr("href")
        if not href or not core:
            return text
        if href.startswith("#"):
            if core in _MARKS or ("heading" in self._inside and not re.search(r"\w", core)):
                return ""
            if "heading" in self._inside:
                return text
            if _FOOTNOTE.fullmatch(core) and _is_raised(element):
                return core if core.startswith("[") else f"[{core}]"
        url = self._resolve(href)
        if url is None:
            return text
        before, after = (" " if text[0].isspace() else ""), (" " if text[-1].isspace() else "")
        return f"{before}{_link_to(url, core)}{after}"

    def around(self, element: Element, blocks: list[str]) -> list[str]:
        """Return the blocks inside of a link: the first with text becomes the link."""
        url = self._resolve(element.attr("href") or "") if element.attr("href") else None
        for place, block in enumerate(blocks if url else ()):
            mark, text = re.match(r"(#{1,6} )?(.*)", block, re.DOTALL).groups("")  # type: ignore[union-attr]
            if "\n" not in block and "](" not in block and not _NO_TEXT.match(block):
                blocks[place] = f"{mark}{_link_to(url or '', text)}"
                break
        return blocks

    def _picture(self, element: Element) -> str:
        alt = " ".join((element.attr("alt") or "").split())
        classes = (element.attr("class") or "").split()
        if not alt or "emoji" in classes:
            return self._text(alt)
        sources = (element.attr(name) or "" for name in ("src", "data-src", "data-original"))
        source = next((each for each in sources if each and not each.startswith("data:")), None)
        url = self._resolve(source) if source else None
        alt = self._text(alt).replace("[", "\\[").replace("]", "\\]")
        if url is None or len(url) > _LONGEST_URL:
            return alt
        return f"![{alt}](<{url}>)" if any(char in url for char in " ()") else f"![{alt}]({url})"


def _link_to(url: str, text: str) -> str:
    if any(char in url for char in " ()<>"):
        url = f"<{url.replace('<', '%3C').replace('>', '%3E')}>"
    return f"[{text}]({url})"


def _formula(element: Element) -> str:
    """Return a formula as its author wrote it in TeX, if the page has that, else its symbols."""
    source = element.select_one("annotation")
    if source is not None and "tex" in (source.attr("encoding") or ""):
        return source.text
    return element.attr("alttext") or element.text


def _parent_tag(element: Element) -> str:
    parent = element.parent
    return parent.tag if isinstance(parent, Element) else ""


def _is_raised(element: Element) -> bool:
    """Return whether a link is the mark of a footnote."""
    if "footnote" in (element.attr("class") or ""):
        return True
    if _parent_tag(element) == "sup":
        return True
    return any(isinstance(child, Element) and child.tag == "sup" for child in element.children)
