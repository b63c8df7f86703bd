"""When we are the slow ones, start less: commits and the loop set the pace of the whole crawl.

    commit ≥ 0.5 s     by commits ← 0.7 · by commits    at most once a second
    commit < 0.25 s    by commits ← + 5 %

    turn ≥ 0.1 s       by turns ← 0.9 · by turns        a turn: reading what has come in
    turn < 0.05 s      by turns ← + 12 %

and what may be under way is the smaller of the two, never more than the operator allowed. What is
controlled is that total, not the free places: those are all taken while the engine is busy, so
taking some of them away would change nothing. A commit says nothing about a total that has just
been changed, hence the second.

Turns count because an answer that waits for its turn here brings nothing. It makes a host look slow
that is not, holds memory, and keeps a connection busy, so that others are opened: less than half as
many do for the same speed. For that reason a crawl also begins with few, and grows in a few turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant

SLOW_COMMIT_S = 0.5  # half a second of commits per second of crawling: all the time there is
FAST_COMMIT_S = 0.25
EVERY_S = 1.0

LONG_TURN_S = 0.1
SHORT_TURN_S = 0.05
FIRST = 128
FEWEST = 16  # with these a turn is long only if a page takes 6 ms, and then few of them do not help


class Governor:
    """How many requests may be under way in this process."""

    __slots__ = ("_by_commits", "_by_turns", "_changed_at", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._by_commits = most
        self._by_turns = min(most, FIRST)
        self._changed_at: Instant = float("-inf")

    def set_most(self, most: int) -> None:
        """Change what the operator allows; what was not held back follows at once."""
        if self._by_commits >= self.most:
            self._by_commits = most
        if self._by_turns >= self.most:
            self._by_turns = max(self._by_turns, min(most, FIRST))
        self.most = most

    @property
    def total(self) -> int:
        """What both allow."""
        return min(self.most, self._by_commits, self._by_turns)

    def committed(self, took_s: float, now: Instant) -> None:
        """A commit took this long."""
        if now - self._changed_at < EVERY_S:
            return
        total = self._by_commits
        if took_s >= SLOW_COMMIT_S:
            self._by_commits = max(1, int(0.7 * total))
            self._changed_at = now
        elif took_s < FAST_COMMIT_S and total < self.most:
            self._by_commits = min(self.most, int(1.05 * total) + 1)
            self._changed_at = now

    def turned(self, took_s: float) -> None:
        """The answers of one turn took this long."""
        total = self._by_turns
        if took_s >= LONG_TURN_S:
            self._by_turns = min(total, max(FEWEST, int(0.9 * total)))
        elif took_s < SHORT_TURN_S and total < self.most:
            self._by_turns = min(self.most, total + total // 8 + 1)
