"""URLs that were passed on lately, so that they are left out before anything else is asked.

Nearly every link of a page was seen on the page before it. Forgetting one costs time only: the
store knows every URL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_RECENT = 100_000


class Recent:
    """The URLs that were passed on last: at least `size` of them, at most twice as many."""

    __slots__ = ("_earlier", "_latest", "_size")

    def __init__(self, size: int = DEFAULT_RECENT) -> None:
        self._size = size
        self._latest: set[str] = set()
        self._earlier: set[str] = set()

    def __contains__(self, url: str) -> bool:
        return url in self._latest or url in self._earlier

    def others(self, urls: Iterable[str]) -> list[str]:
        """Return the URLs that were not passed on lately, in their order."""
        latest, earlier = self._latest, self._earlier
        unmet = [url for url in urls if url not in latest]
        return [url for url in unmet if url not in earlier] if earlier else unmet

    def add(self, url: str) -> bool:
        """Note a URL; return whether it was not noted before."""
        if url in self:
            return False
        if len(self._latest) >= self._size:
            self._earlier, self._latest = self._latest, set()
        self._latest.add(url)
        return True
