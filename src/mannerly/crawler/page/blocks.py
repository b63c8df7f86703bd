"""Boxes and code of a page, as authors and generators of documents mark them.

A box is a "Note", a "Warning" or the like. It has a kind, mostly a title that says it, and content.
It is recognised by its classes: `admonition note` (Sphinx, MkDocs), `admonitionblock tip`
(AsciiDoctor), `note` with a title (DocBook), `theme-admonition-info` (Docusaurus),
`markdown-alert-note` (GitHub), `alert alert-warning`, `notecard warning`, `custom-block danger`,
`hint`, `callout`.

Code becomes a fenced block with the language that its author or generator names. Every generator
has its own way to name it, in a class or an attribute of `<pre>`, of the `<code>` in it, or of the
elements around it: `language-js`, `highlight-python3`, `highlight-source-shell`, `brush: php`,
`sourceCode bash`, `data-lang`. Numbers of lines and buttons are left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from turbohtml import Element, Text

if TYPE_CHECKING:
    from turbohtml import Node


_KINDS = (
    "note", "warning", "caution", "danger", "tip", "hint", "important", "attention", "error",
    "info", "seealso", "success", "example", "todo", "question", "abstract", "bug", "deprecated",
    "notice",
)  # fmt: skip
_KIND = re.compile(rf"(?:^|[\s_-])({'|'.join(_KINDS)})(?=$|[\s_-])", re.IGNORECASE)
_BOX = re.compile(
    r"(?:^|[\s_-])(?:admonition|admonitionblock|alert|notecard|custom-block|callout|hint|aside|box|"
    r"message|messagebox|panel|information-macro|notice|infobox|block)(?=$|[\s_-])",
    re.IGNORECASE,
)
_CLEAR = frozenset(("note", "warning", "caution", "danger", "tip", "important", "hint"))
_TITLE = re.compile(
    r"(?:title|heading|head|header|label)(?=$|[\s_-])|^admonition-title$", re.IGNORECASE
)
_TAGS = frozenset(("aside", "blockquote", "details", "div", "dl", "p", "section", "table"))
_LONG_TITLE = 100  # characters; more is content
_WORDS = {"seealso": "See also", "error": "Error"}


class Box(NamedTuple):
    """A box: the element that is its title, if it has one, and the nodes of its content."""

    kind: str
    title: Element | None
    content: list[Node]


def box_of(element: Element) -> Box | None:
    """Return an element as a box; None if it is none."""
    if element.tag not in _TAGS:
        return None
    classes = element.attr("class") or ""
    kinds = _KIND.findall(classes)
    if not kinds and "admonition" not in classes:
        return None
    kind = kinds[-1].lower() if kinds else "note"  # "hint hint-warning" is a warning
    body, content = element, list(element.children)
    if element.tag == "div" and "admonitionblock" in classes:
        return _in_cells(element, kind)
    title = _title(body)
    is_marked = _BOX.search(classes) is not None or element.attr("role") in ("alert", "note")
    if classes.strip().lower() == kind:  # nothing but its kind
        is_marked = element.tag in ("aside", "details") or (kind in _CLEAR and element.tag != "p")
    if not is_marked and not (_says(title, kind) and len(classes.split()) <= 2):
        return None
    if title is not None:
        content = _without(body, title)
    return Box(_WORDS.get(kind, kind.capitalize()), title, content)


def is_box(element: Element) -> bool:
    """Return whether an element is a box."""
    return box_of(element) is not None


def _title(element: Element) -> Element | None:
    """Return the first element of a box, if it is a title."""
    for child in element.children:
        if isinstance(child, Text) and child.data.strip():
            return None
        if isinstance(child, Element) and child.text.strip():
            if child.tag in ("h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt"):
                return child
            is_titled = _TITLE.search(child.attr("class") or "") is not None
            if is_titled and len(child.text) < _LONG_TITLE:
                return child
            if _says(child, *_KINDS):
                return child
            return None
    return None


def _says(title: Element | None, *kinds: str) -> bool:
    if title is None or len(title.text) > _LONG_TITLE:
        return False
    said = title.text.strip(" \t\r\n:!¶").lower().replace(" ", "")
    return said in kinds


def _without(element: Element, title: Element) -> list[Node]:
    return [child for child in element.children if child != title]


def _in_cells(element: Element, kind: str) -> Box:
    """Return a box of AsciiDoctor: a table with an icon or a title, and the content."""
    content = element.select_one("td.content")
    nodes = list(element.children) if content is None else list(content.children)
    return Box(kind.capitalize(), None, nodes)


# ---------------------------------------------------------------------- code


# Code that is not in a `<pre>`, or beside its line numbers.
CODE_TABLES = frozenset(
    (
        *(
            "highlighttable",
            "codehilitetable",
            "rouge-table",
            "crayon-table",
            "fragment",
            "lntable",
        ),
        *("js-file-line-container", "hljs-ln"),
    )
)

_OUTER = 4  # elements around the code whose classes are read
_ATTRIBUTES = ("data-lang", "data-language", "data-enlighter-language", "data-code-language")
_PARAMETERS = "data-syntaxhighlighter-params"
_PREFIXED = re.compile(
    r"(?:language|lang|highlight-source|highlight-text|highlight|brush|mw-highlight-lang|hljs|src)"
    r"[-:_]\s*([a-z0-9+#._-]+)"
)
_BESIDE = frozenset(
    ("sourcecode", "hljs", "highlight", "src", "prettyprint", "shiki", "codehilite")
)
_NO_LANGUAGE = frozenset(
    (
        "", "auto", "block", "box", "code", "container", "content", "default", "figure", "inner",
        "line", "lines", "literal", "nohighlight", "none", "notranslate", "plain", "plaintext",
        "text", "txt", "wrapper", "highlighter-rouge", "rouge", "linenums", "table", "basic",
    )
)  # fmt: skip
_NAMES = {"python3": "python", "py": "python", "py3": "python", "js": "javascript", "sh": "bash"}
_NAMES |= {"shell": "bash", "c++": "cpp", "ipython3": "python", "html-basic": "html"}
_LANGUAGES = frozenset(
    (
        "bash", "c", "console", "cpp", "csharp", "css", "diff", "dockerfile", "elixir", "go",
        "graphql", "haskell", "html", "http", "ini", "java", "javascript", "json", "jsx", "kotlin",
        "lua", "make", "makefile", "nginx", "perl", "php", "powershell", "protobuf", "pycon",
        "python", "r", "ruby", "rust", "scala", "scss", "sql", "swift", "toml", "tsx", "typescript",
        "ts", "vim", "xml", "yaml", "yml", "zsh",
    )
)  # fmt: skip
_LEFT_OUT = re.compile(
    r"\b(linenos?|linenodiv|line-numbers?|ln|lnt|ln-num|gutter|copy|copybtn|blob-num|hljs-ln-numbers)\b"
)


def fenced(element: Element) -> list[str]:
    """Return a `<pre>`, or a table of code with its line numbers, as a fenced block."""
    if element.tag != "pre":
        element = next((pre for pre in element.select("pre") if _has_code(pre)), element)
    code = _code(element).replace("\xa0", " ").strip("\n").rstrip()
    if not code.strip():
        return []
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language_of(element)}\n{code}\n{fence}"]


def language_of(pre: Element) -> str:
    """Return the language that a block of code is marked with; empty if it has none."""
    inside = [child for child in pre.children if isinstance(child, Element) and child.tag == "code"]
    around: list[Element] = []
    for each in pre.ancestors:
        if len(around) == _OUTER or not isinstance(each, Element):
            break
        if each.tag not in ("div", "figure", "td", "tr", "tbody", "table", "span", "code-block"):
            break
        around.append(each)
    for element in (*inside[:1], pre, *around):
        if found := _named(element):
            return found
    return ""


def _named(element: Element) -> str:
    for attribute in (*_ATTRIBUTES, "lang" if element.tag == "pre" else "data-lang"):
        if found := _language((element.attr(attribute) or "").lower()):
            return found
    classes = f"{element.attr('class') or ''} {element.attr(_PARAMETERS) or ''}".lower()
    for match in _PREFIXED.finditer(classes):
        if found := _language(match[1]):
            return found
    words = classes.split()
    if element.tag in ("pre", "code") or not _BESIDE.isdisjoint(words):
        return next((found for word in words if (found := _known(word))), "")
    return ""


def _known(word: str) -> str:
    name = _NAMES.get(word, word)
    return name if name in _LANGUAGES else ""


def _language(name: str) -> str:
    name = name.strip().strip(";")
    if name in _NO_LANGUAGE or len(name) > 20 or not name.isprintable() or "`" in name:
        return ""
    name = _NAMES.get(name, name)
    return "" if " " in name else name


def _has_code(pre: Element) -> bool:
    """Return whether this is the code, not the numbers of its lines."""
    is_named = _LEFT_OUT.search(" ".join(_class_names(pre))) is not None
    return not is_named and not pre.text.replace("\n", "").strip().isdecimal()


def _class_names(element: Element) -> list[str]:
    own = [element.attr("class") or ""]
    parent = element.parent
    if isinstance(parent, Element):
        own.append(parent.attr("class") or "")
    return own


def _code(element: Element) -> str:
    pieces: list[str] = []
    stack: list[Node | str] = [element]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif isinstance(node, Text):
            pieces.append(node.data)
        elif isinstance(node, Element):
            if node.tag == "br":
                pieces.append("\n")
            elif node.tag == "button" or _LEFT_OUT.search(node.attr("class") or ""):
                continue
            else:
                # A line may be a block of its own, with or without a line feed in it.
                if node.tag in ("div", "p", "li", "tr") and not node.text.endswith("\n"):
                    stack.append("\n")
                stack.extend(reversed(node.children))
    return "".join(pieces)
