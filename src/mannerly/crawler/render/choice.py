"""Choose the pages that are rendered.

all          every page
auto         pages that look like a shell (`page.shells`)
shop.example a name without `/` and `*`: the pages of this host
a glob       over the whole URL, as for --include
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mannerly.crawler.web.scope import Glob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ALL, AUTO = "all", "auto"


class PageChoice:
    """The pages that `--render` names."""

    def __init__(self, patterns: Iterable[str]) -> None:
        words = tuple(patterns)
        self._all = ALL in words
        self._auto = AUTO in words
        named = [word for word in words if word not in (ALL, AUTO)]
        self._hosts = frozenset(each.lower() for each in named if is_host(each))
        self._globs = tuple(Glob(each) for each in named if not is_host(each))

    def takes(self, url: str, looks_like_shell: Callable[[], bool]) -> bool:
        """Return whether a page is rendered."""
        if self._all or any(glob.matches(url) for glob in self._globs):
            return True
        if self._hosts:
            parts = urlsplit(url)
            if parts.netloc in self._hosts or parts.hostname in self._hosts:
                return True
        return self._auto and looks_like_shell()


def check_pattern(pattern: str) -> None:
    """Raise ValueError for a pattern that can match no page."""
    if not is_host(pattern):
        Glob(pattern)
    elif not pattern.strip():
        raise ValueError("a glob over URLs, a host, all or auto")


def is_host(pattern: str) -> bool:
    """Return whether a pattern names a host."""
    return "/" not in pattern and "*" not in pattern
