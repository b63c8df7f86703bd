"""Lower concurrency while something is the bottleneck: commits, the loop, or another member.

    commit ≥ 0.5 s     by commits ← 0.7 · by commits    at most once a second
    commit < 0.25 s    by commits ← + 5 %

    no memory or descriptors   by commits ← half        at most once a second

    links to a shard whose owner does not keep up with them
                       by commits ← 0.7 · by commits    at most once a second, to a quarter at least

    turn ≥ 0.1 s       by turns ← 0.9 · by turns        a turn: reading what has come in
    turn < 0.05 s      by turns ← + 12 %

The number of requests that may be under way is the smaller of the two, and never more than the
operator allowed. The total is controlled, not the number of free slots: while the engine is busy no
slot is free, so taking some away would change nothing. A commit says nothing about a total that has
just changed, hence the second between two changes.

Turns count because an answer that waits here to be read gains nothing. It makes its host look slow,
holds memory, and keeps a connection busy, so that more are opened: fewer than half as many give the
same speed. For that reason a crawl also begins with few requests, and grows within some turns.

An owner lags behind if thousands of links to its shard were added since it was last told of them.
They are in its queue and none is lost, but the queue grows in the memory of the server, where only
its owner takes from it. Members that add to it go on with a quarter of their requests, not with
none: what they fetch may lead to other shards, and the owner may be dead until it is replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant

SLOW_COMMIT_S = 0.5  # with a commit each second, half of all time
FAST_COMMIT_S = 0.25
EVERY_S = 1.0

LONG_TURN_S = 0.1
SHORT_TURN_S = 0.05
FIRST = 128
FEWEST = 16  # a turn with 16 answers is long only if a page takes 6 ms; fewer would not help then


class Governor:
    """Limits the number of requests under way in this process; `is_on`: to fewer than `most`."""

    __slots__ = ("_by_commits", "_by_turns", "_changed_at", "_is_on", "most")

    def __init__(self, most: int, *, is_on: bool = True) -> None:
        self.most = most
        self._is_on = is_on
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
        """Return how many requests may be under way: the smallest of the limits."""
        if not self._is_on:
            return self.most
        return min(self.most, self._by_commits, self._by_turns)

    def committed(self, took_s: float, now: Instant) -> None:
        """Adjust the limit after a commit that took `took_s` seconds."""
        if now - self._changed_at < EVERY_S:
            return
        total = self._by_commits
        if took_s >= SLOW_COMMIT_S:
            self._by_commits = max(1, int(0.7 * total))
            self._changed_at = now
        elif took_s < FAST_COMMIT_S and total < self.most:
            self._by_commits = min(self.most, int(1.05 * total) + 1)
            self._changed_at = now

    def starved(self, now: Instant) -> None:
        """Halve the limit: this machine has no memory or no descriptors for so many requests."""
        if now - self._changed_at >= EVERY_S:
            self._by_commits = max(1, min(self._by_commits, self._by_turns) // 2)
            self._changed_at = now

    def outran(self, now: Instant) -> None:
        """Lower the limit: the owner of another shard does not keep up with links of ours."""
        least = min(self._by_commits, max(1, self.most // 4))
        if now - self._changed_at >= EVERY_S:
            self._by_commits = max(least, int(0.7 * self._by_commits))
            self._changed_at = now

    def turned(self, took_s: float) -> None:
        """Adjust the limit after a turn whose answers took `took_s` seconds to handle."""
        total = self._by_turns
        if took_s >= LONG_TURN_S:
            self._by_turns = min(total, max(FEWEST, int(0.9 * total)))
        elif took_s < SHORT_TURN_S and total < self.most:
            self._by_turns = min(self.most, total + total // 8 + 1)
