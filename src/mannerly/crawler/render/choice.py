"""Choose the pages that are rendered, and find those that seem to need it.

    all          every page
    auto         pages that look like a shell
    shop.example a name without `/` and `*`: the pages of this host
    a glob       over the whole URL, as for --include

A page looks like a shell if it has next to no text and scripts that can make some. Without
`--render` such pages are counted, and the summary names their hosts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mannerly.crawler.web.scope import Glob

if TYPE_CHECKING:
    from collections.abc import Iterable

ALL, AUTO = "all", "auto"
SHELL_TEXT = 200  # characters of text; a page with more is read as it is
SHELL_BYTES = 512 * 1024  # a shell is short; a longer page is no shell

_SCRIPTS = re.compile(
    rb"<(script|style|noscript|template|svg|head)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_TAG = re.compile(rb"<[^>]*>")


class PageChoice:
    """The pages that `--render` names."""

    def __init__(self, patterns: Iterable[str]) -> None:
        words = tuple(patterns)
        self._all = ALL in words
        self._auto = AUTO in words
        named = [word for word in words if word not in (ALL, AUTO)]
        self._hosts = frozenset(each.lower() for each in named if is_host(each))
        self._globs = tuple(Glob(each) for each in named if not is_host(each))

    def takes(self, url: str, body: bytes) -> bool:
        """Return whether a page is rendered."""
        if self._all or any(glob.matches(url) for glob in self._globs):
            return True
        if self._hosts:
            parts = urlsplit(url)
            if parts.netloc in self._hosts or parts.hostname in self._hosts:
                return True
        return self._auto and looks_like_shell(body)


def check_pattern(pattern: str) -> None:
    """Raise ValueError for a pattern that can match no page."""
    if not is_host(pattern):
        Glob(pattern)
    elif not pattern.strip():
        raise ValueError("a glob over URLs, a host, all or auto")


def is_host(pattern: str) -> bool:
    """Return whether a pattern names a host."""
    return "/" not in pattern and "*" not in pattern


def looks_like_shell(body: bytes) -> bool:
    """Return whether a page has next to no text, and scripts that may write it."""
    if len(body) > SHELL_BYTES or b"<script" not in body.lower():
        return False
    text = _TAG.sub(b" ", _SCRIPTS.sub(b" ", body))
    return len(b" ".join(text.split())) < SHELL_TEXT
