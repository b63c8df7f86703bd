"""Tells which shards of this process have mail, without asking for each of them all the time.

Letters that this process posts itself are known at once, and every write to a shard tells how many
wait for it. A shard that nothing was heard of for LOOK_S is asked for: its inbox is read together
with the posting of letters (`may_have`), or one exchange asks for all such shards (`has_any`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.politeness.model import Instant

    from .client import ValkeyServer
    from .keys import CrawlKeys

LOOK_S = 0.1


class Mailbox:
    """The unread letters of the shards that are claimed here."""

    def __init__(self, server: ValkeyServer, keys: CrawlKeys, mono: Callable[[], float]) -> None:
        self._server = server
        self._keys = keys
        self._mono = mono
        self._unread: dict[int, int] = {}  # links, by shard
        self._seen_at: dict[int, Instant] = {}

    def watch(self, shard: int) -> None:
        """A shard is claimed here from now on."""
        self._unread[shard] = 1  # until it is known
        self._seen_at[shard] = -inf

    def unwatch(self, shard: int) -> None:
        """A shard is not claimed here any more."""
        self._unread.pop(shard, None)
        self._seen_at.pop(shard, None)

    def arrived(self, shard: int) -> None:
        """This process has posted a letter."""
        if shard in self._unread:
            self._unread[shard] += 1

    def seen(self, shard: int, unread: int) -> None:
        """So many links wait for a shard."""
        if shard in self._unread:
            self._unread[shard] = unread
            self._seen_at[shard] = self._mono()

    def has_any(self, shard: int) -> bool:
        """Return whether there may be a letter for a shard."""
        since = self._mono() - LOOK_S
        if not self._unread.get(shard) and self._seen_at.get(shard, inf) <= since:
            self._look([each for each, seen_at in self._seen_at.items() if seen_at <= since])
        return self._unread.get(shard, 0) > 0

    def may_have(self, shard: int) -> bool:
        """Return whether there may be a letter for a shard, as far as is known without asking."""
        since = self._mono() - LOOK_S
        return self._unread.get(shard, 0) > 0 or self._seen_at.get(shard, inf) <= since

    def depth(self) -> int:
        """Return how many links wait for the shards that are claimed here, as last seen."""
        return sum(self._unread.values())

    def look(self) -> None:
        """Ask for all of them now."""
        self._look(list(self._unread))

    def _look(self, shards: list[int]) -> None:
        values = self._server.ask_all(
            [("HGET", self._keys.shard(shard), "unread") for shard in shards]
        )
        for shard, value in zip(shards, values, strict=True):
            self.seen(shard, int(value or 0))
