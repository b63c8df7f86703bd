"""--max-per-host: never more pages of one host than that, however many are under way at once.

    fetched ≥ limit                          drop it: there never will be room
    fetched + under way + let go ≥ limit     hold it back: what is under way may yet fail
    else                                     let it go

A page that was let go may still have to wait for its host's slot, so what was let go counts only
within one `take`, and what was sent counts until it is back. This file knows no queue and no time.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mannerly.crawler.model import GO, Drop, Later

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.model import Judgement

_USED_UP = Drop("max_per_host")
_HELD_BACK = Later(None)


class Ration:
    """How many more pages of each host may be asked for; `fetched` says how many it has given."""

    __slots__ = ("_fetched", "_let_go", "_limit", "_out")

    def __init__(self, limit: int, fetched: Callable[[str], int]) -> None:
        self._limit = limit
        self._fetched = fetched
        self._out: Counter[str] = Counter()
        self._let_go: Counter[str] = Counter()

    def begin(self) -> None:
        """A new `take`: what the one before let go was sent, or will be judged again."""
        self._let_go.clear()

    def judge(self, host: str) -> Judgement:
        """Whether one more page of the host may go."""
        fetched = self._fetched(host)
        if fetched >= self._limit:
            return _USED_UP
        if fetched + self._out[host] + self._let_go[host] >= self._limit:
            return _HELD_BACK
        self._let_go[host] += 1
        return GO

    def sent(self, host: str) -> None:
        """A page of the host is under way."""
        self._out[host] += 1

    def back(self, host: str) -> None:
        """It is not any more. Whoever was held back may be judged again."""
        self._out[host] -= 1
        if self._out[host] <= 0:
            del self._out[host]
