"""Links that were passed on lately.

Links repeat from page to page, so what was passed on lately (`Recent`) is left out before anything
else is asked about it. Whether a URL is new is decided by the store alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_RECENT = 100_000


class Recent:
    """URLs that were passed on lately: at least the last `size` of them, at most twice as many."""

    __slots__ = ("_earlier", "_latest", "_size")

    def __init__(self, size: int = DEFAULT_RECENT) -> None:
        self._size = size
        self._latest: set[str] = set()
        self._earlier: set[str] = set()

    def __contains__(self, url: str) -> bool:
        return url in self._latest or url in self._earlier

    def others(self, urls: Iterable[str]) -> list[str]:
        """Those that were not, in their order."""
        latest, earlier = self._latest, self._earlier
        return [url for url in urls if url not in latest and url not in earlier]

    def add(self, url: str) -> bool:
        """Note one; whether it was not noted before."""
        if url in self:
            return False
        if len(self._latest) >= self._size:
            self._earlier, self._latest = self._latest, set()
        self._latest.add(url)
        return True
