"""Facts of a Markdown text, by which two texts of a page are compared.

    words       of everything that is read: not the targets of links
    heading     its level and words
    code        inline code
    emphasis    words in italics or bold
    item        its depth and the words of its first block
    row         the cells of a row of a pipe table
    box         a quotation that begins in bold: kind and words
    fence       its language and its code
    link        its words and its absolute target
    clean       no left-overs of HTML: references, tags, marks of anchors

The parser knows the part of CommonMark that is written by people and by programs like those that
are compared: ATX headings, fences, indented code, lists, quotations, pipe tables. Case, white space
and punctuation do not count, and languages have one name.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

Fact = tuple[str, ...]

KINDS = ("heading", "code", "emphasis", "item", "row", "box", "fence", "link", "clean")

_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*([^`]*)$")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])(?:\s+|$)")
_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_CODE = re.compile(r"(?:(?<!`)|(?<=\\`))(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_TARGET = r"\(\s*(<[^>\n]*>|(?:[^\s()]|\([^\s()]*\))*)(?:\s+[\"'(][^\n]*?[\"')])?\s*\)"
_PICTURE = re.compile(r"!\[((?:[^\[\]]|\[[^\[\]]*\])*)\]" + _TARGET)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*)\]" + _TARGET)
_STRONG = re.compile(r"(?<![\w*])(?:\*\*|__)(?=\S)(.+?)(?<=\S)(?:\*\*|__)(?!\w)", re.DOTALL)
_EMPHASIS = re.compile(
    r"(?<![*\w])\*(?=[^\s*])([^*]+?)(?<=\S)\*(?!\*)|(?<![_\w])_(?=[^\s_])(.+?)(?<=\S)_(?![_\w])",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_LEFT_OVER = re.compile(
    r"&(?:#\d+|#x[0-9a-f]+|nbsp|lt|gt|amp|quot);|</?(?:div|span|em|strong|b|i|code|p|br|wbr|table|"
    r"tr|td|th|ul|ol|li|a|img|sup|sub|font|tt|kbd|dl|dt|dd|h[1-6]|pre|section|figure)\b[^>]*>|¶",
    re.IGNORECASE,
)
_LANGUAGES = {
    "python3": "python", "py": "python", "pycon": "python", "js": "javascript", "sh": "bash",
    "shell": "bash", "console": "bash", "shell-session": "bash", "c++": "cpp", "yml": "yaml",
    "ts": "typescript", "text": "", "none": "", "plaintext": "", "txt": "", "zsh": "bash",
    "golang": "go", "rs": "rust", "rb": "ruby", "cs": "csharp", "htm": "html", "md": "markdown",
}  # fmt: skip


class Facts(NamedTuple):
    """The words and the facts of one text."""

    words: Counter[str]
    facts: Counter[Fact]


def facts_of(text: str) -> Facts:
    """Return the words and the facts of a Markdown text."""
    reader = _Reader()
    reader.read(text.split("\n"), depth=0)
    plain = _CODE.sub(" ", "\n".join(reader.prose))
    if not _LEFT_OVER.search(_ESCAPED.sub(" ", plain)):
        reader.facts[("clean",)] = 1
    return Facts(reader.words, reader.facts)


def words_of(text: str) -> str:
    """Return the words of a text as one, in lower case."""
    return " ".join(_WORD.findall(text.lower()))


class _Reader:
    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.facts: Counter[Fact] = Counter()
        self.prose: list[str] = []  # lines that are no code

    def read(self, lines: list[str], depth: int) -> str:
        """Read blocks; return the words of the first one."""
        first: str | None = None
        at = 0
        while at < len(lines):
            at, words = self._block(lines, at, depth)
            if first is None and words:
                first = words
        return first or ""

    def _block(self, lines: list[str], at: int, depth: int) -> tuple[int, str]:
        line = lines[at]
        if not line.strip():
            return at + 1, ""
        if fence := _FENCE.match(line):
            return self._fence(lines, at, fence)
        if heading := _HEADING.match(line.strip()):
            words = self._inline(heading[2])
            self.facts["heading", str(len(heading[1])), words] += 1
            return at + 1, words
        if re.fullmatch(r"\s*([-*_])\s*(?:\1\s*){2,}", line):
            return at + 1, ""
        if line.lstrip().startswith(">"):
            return self._quotation(lines, at, depth)
        if item := _ITEM.match(line):
            return self._item(lines, at, depth, item)
        if "|" in line and at + 1 < len(lines) and _RULE.match(lines[at + 1].strip()):
            return self._table(lines, at)
        if line.startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            return self._indented(lines, at)
        return self._paragraph(lines, at)

    def _fence(self, lines: list[str], at: int, fence: re.Match[str]) -> tuple[int, str]:
        indent, mark = len(fence[1]), fence[2]
        end = at + 1
        while end < len(lines) and not re.fullmatch(
            rf"\s*{re.escape(mark[0])}{{{len(mark)},}}\s*", lines[end]
        ):
            end += 1
        code = [
            line[indent:] if not line[:indent].strip() else line for line in lines[at + 1 : end]
        ]
        info = fence[3].strip().split()
        return end + 1, self._code_block(info[0].strip("{}.").lower() if info else "", code)

    def _indented(self, lines: list[str], at: int) -> tuple[int, str]:
        end = at
        while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
            end += 1
        return end, self._code_block("", [line[4:] for line in lines[at:end]])

    def _code_block(self, language: str, code: list[str]) -> str:
        text = " ".join(" ".join(code).split())
        self.words.update(_WORD.findall(text.lower()))
        self.facts["fence", _LANGUAGES.get(language, language), text] += 1
        return ""

    def _quotation(self, lines: list[str], at: int, depth: int) -> tuple[int, str]:
        end = at
        inside = []
        while end < len(lines) and lines[end].lstrip().startswith(">"):
            inside.append(re.sub(r"^\s*> ?", "", lines[end]))
            end += 1
        first = next((line for line in inside if line.strip()), "")
        bold = re.match(r"\s*(?:\*\*|__)(.+?)(?:\*\*|__)", first)
        before = self.words.copy()
        self.read(inside, depth)
        if bold is not None:
            # The title is no emphasis of the author's.
            self.facts["emphasis", words_of(_plain(bold[1]))] -= 1
            self.facts = +self.facts
            words = sorted((self.words - before).elements())
            self.facts["box", words_of(_plain(bold[1])), " ".join(words)] += 1
        return end, ""

    def _item(self, lines: list[str], at: int, depth: int, item: re.Match[str]) -> tuple[int, str]:
        indent, width = len(item[1]), len(item[0])
        inside = [lines[at][width:]]
        end = at + 1
        while end < len(lines):
            line = lines[end]
            space = len(line) - len(line.lstrip())
            if line.strip() and space <= indent:
                if _ITEM.match(line) or not lines[end - 1].strip() or _starts_block(line):
                    break
                inside.append(line.strip())  # a paragraph that goes on without indentation
            else:
                inside.append(line[min(space, width) :])
            end += 1
        first = self.read(inside, depth + 1)
        self.facts["item", str(depth + 1), re.sub(r"^(?:x )(?=\w)", "", first)] += 1
        return end, ""

    def _table(self, lines: list[str], at: int) -> tuple[int, str]:
        end = at
        while end < len(lines) and "|" in lines[end]:
            if end != at + 1:
                cells = re.split(r"(?<!\\)\|", lines[end].strip().strip("|"))
                row = [self._inline(cell.replace("\\|", "|")) for cell in cells]
                self.facts[("row", *row)] += 1
            end += 1
        return end, ""

    def _paragraph(self, lines: list[str], at: int) -> tuple[int, str]:
        end = at + 1
        while end < len(lines) and lines[end].strip() and not _starts_block(lines[end]):
            end += 1
        return end, self._inline("\n".join(lines[at:end]))

    def _inline(self, text: str) -> str:
        """Count what is in a text; return its words."""
        self.prose.append(text)
        for code in _CODE.finditer(text):
            self.facts["code", " ".join(code[2].split())] += 1
        kept = _CODE.sub(lambda found: found[2].replace("*", " ").replace("_", "\ue000"), text)
        kept = _ESCAPED.sub(lambda found: " " if found[1] in "*_`[]" else found[1], kept)
        kept = _PICTURE.sub(r"\1", kept)
        for link in _LINK.finditer(kept):
            target = link[2].strip("<>")
            self.facts["link", words_of(_plain(link[1])), target] += 1
        kept = _LINK.sub(r"\1", kept)
        for strong in _STRONG.finditer(kept):
            self.facts["emphasis", words_of(_plain(strong[1]))] += 1
        kept = _STRONG.sub(r"\1", kept)
        for emphasis in _EMPHASIS.finditer(kept):
            self.facts["emphasis", words_of(_plain(emphasis[1] or emphasis[2]))] += 1
        found = _WORD.findall(_plain(kept).lower())
        self.words.update(found)
        return " ".join(found)


def _starts_block(line: str) -> bool:
    return bool(
        _HEADING.match(line.strip()) or _FENCE.match(line) or _ITEM.match(line)
        or line.lstrip().startswith(">")
    )  # fmt: skip


def _plain(text: str) -> str:
    text = re.sub(r"(?<!\w)_|_(?!\w)", "", text.replace("*", "").replace("~~", ""))
    return text.replace("\ue000", "_")
