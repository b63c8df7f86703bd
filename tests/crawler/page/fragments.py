"""Links compared without their fragments: a scan leaves out most of them, a tree none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mannerly.crawler.page.parsed import MARK
from mannerly.crawler.web.urls import LinkBase

if TYPE_CHECKING:
    from collections.abc import Iterable

_BASE = LinkBase("https://example.com/a/b?c")
_FRAGMENT = re.compile('(?<=[^\0-\x20])(?<!^")#.*', re.DOTALL)


def told(links: Iterable[str]) -> set[tuple[str, str]]:
    """Return links, each without its fragment, with the URLs that they lead to."""
    return {(_FRAGMENT.sub("", link), str(_BASE.resolve(link.lstrip(MARK)))) for link in links}
