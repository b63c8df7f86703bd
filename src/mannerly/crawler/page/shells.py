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

_HIDDEN = re.compile(
    rb"<(script|style|noscript|template|svg|head)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_TAG = re.compile(rb"<[^>]*>")


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
    text = _TAG.sub(b" ", _HIDDEN.sub(b" ", body))
    return len(b" ".join(text.split())) < SHELL_TEXT
