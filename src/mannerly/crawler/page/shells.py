"""Pages that look like a shell: they have scripts, and next to no text until these have run.

Only pages with few links are looked at, so that an ordinary page costs one comparison.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .html import is_html

if TYPE_CHECKING:
    from mannerly.crawler.model import Fetched

    from .parsed import ParsedPage

SHELL_LINKS = 3  # a page with more is read as it is
SHELL_TEXT = 200  # bytes of text: the same
SHELL_BYTES = 512 * 1024  # a shell is short

# What is no text: comments, elements that show none, and tags. What is not closed goes to the end
# or is text, so that no page makes this search what follows again at each `<`.
_MARKUP = re.compile(
    rb"<!--(?:-?>|.*?(?:--!?>|\Z))"
    rb"|<(script|style|noscript|template|svg|title)(?=[\s/>]).*?(?:</\1\s*+>|\Z)"
    rb"|<[^<>]*+>",
    re.DOTALL | re.IGNORECASE,
)


def is_unrendered_shell(page: ParsedPage, answer: Fetched) -> bool:
    """Return whether a page that was read as it is seems to need a browser."""
    if answer.rendering is not None or len(page.links) > SHELL_LINKS:
        return False
    return looks_like_shell(answer.body, answer.headers.get("content-type"))


def looks_like_shell(body: bytes, content_type: str | None) -> bool:
    """Return whether a page has next to no text, and scripts that may write it."""
    if len(body) > SHELL_BYTES or b"<script" not in body.lower():
        return False
    if not is_html(content_type, body):
        return False
    return not _has_text(body)


def _has_text(body: bytes) -> bool:
    """Return whether a page shows at least `SHELL_TEXT` bytes; no more of it is looked at."""
    length = end = 0
    for markup in _MARKUP.finditer(body):
        length += _length(body[end : markup.start()])
        end = markup.end()
        if length >= SHELL_TEXT:
            return True
    return length + _length(body[end:]) >= SHELL_TEXT


def _length(text: bytes) -> int:
    """Return the length of a text in which any white space counts as one byte."""
    return sum([len(word) + 1 for word in text.split()])
