"""The URLs that other shards have queued in a shard, as its owner learns of them.

The answer to each write of the owner brings those that are new to it. `ShardStore`
returns each of them once (`pass_links`); until then, reads of the owner leave it out. Between two
writes the owner asks for one number, the URLs that others have ever added; if that has grown, a
write that changes nothing brings them (`take.lua`).
"""

from __future__ import annotations

from itertools import islice
from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import Committed
from mannerly.crawler.store.fleet_times import POLL_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.model import Entry
    from mannerly.politeness.model import Instant


class ArrivedUrls:
    """The URLs that an owner knows of, and how it learns whether there are more."""

    def __init__(self) -> None:
        self.count = -1  # that others have ever added, as of the last answer
        self.heard_at: Instant = -inf  # when that answer came
        self.last_known = 0  # the number of the last URL that the owner knows of
        self._untaken: dict[int, Entry] = {}  # that `take` did not return

    def __contains__(self, seq: int) -> bool:
        return seq in self._untaken

    def __bool__(self) -> bool:
        return bool(self._untaken)

    def learn(self, entries: Iterable[Entry], count: int, last: int, now: Instant) -> None:
        """Take the news of an answer: new URLs, their number so far, the last number known."""
        self.count, self.heard_at, self.last_known = count, now, last
        self._untaken.update((entry.seq, entry) for entry in entries)

    def is_due(self, now: Instant) -> bool:
        """Return whether it is time to ask how many there are."""
        return now - self.heard_at >= POLL_S

    def ask_soon(self) -> None:
        """Let the next `pass_links` ask: there are some."""
        self.heard_at = -inf

    def heard(self, count: int, now: Instant) -> bool:
        """Note how many there are; return whether that is news."""
        self.heard_at = now
        return count != self.count

    def take(self, limit: int) -> Committed:
        """Return URLs, each once; more than `limit` if there are very many."""
        most = max(limit, len(self._untaken) // 2) if limit else 0
        seqs = list(islice(self._untaken, most))
        return Committed([self._untaken.pop(seq) for seq in seqs], 0)
