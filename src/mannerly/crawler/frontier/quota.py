"""Limit the pages of one host (--max-per-host), however many requests are under way at once.

    fetched ≥ limit                          drop it: there will never be room
    fetched + under way + allowed ≥ limit    hold it back: a request under way may still fail
    else                                     allow it

A page that was allowed may still have to wait for its host's slot, so allowed pages count only
within one `take`. This module knows no queue and no time.
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


class HostQuota:
    """The number of pages of each host that may still be requested.

    Args:
        limit: pages of one host.
        fetched: returns how many pages of a host were fetched.
        under_way: returns how many requests to a host are in flight.
    """

    __slots__ = ("_allowed", "_fetched", "_limit", "_under_way")

    def __init__(
        self, limit: int, fetched: Callable[[str], int], under_way: Callable[[str], int]
    ) -> None:
        self._limit = limit
        self._fetched = fetched
        self._under_way = under_way
        self._allowed: Counter[str] = Counter()

    def begin(self) -> None:
        """Start a new `take`: pages that the last one allowed are under way, or judged again."""
        self._allowed.clear()

    def judge(self, host: str) -> Judgement:
        """Return whether one more page of the host may go."""
        fetched = self._fetched(host)
        if fetched >= self._limit:
            return _USED_UP
        if fetched + self._under_way(host) + self._allowed[host] >= self._limit:
            return _HELD_BACK
        self._allowed[host] += 1
        return GO
