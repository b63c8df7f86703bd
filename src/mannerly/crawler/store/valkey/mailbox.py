"""Tells which shards of this process have mail, without asking for each of them all the time.

One exchange asks for all shards that are claimed here, at most every LOOK_S. Letters that this
process posts itself are known at once.
"""

from __future__ import annotations

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
        self._look_at: Instant = 0.0

    def watch(self, shard: int) -> None:
        """A shard is claimed here from now on."""
        self._unread[shard] = 1  # until it is known

    def unwatch(self, shard: int) -> None:
        """A shard is not claimed here any more."""
        self._unread.pop(shard, None)

    def arrived(self, shard: int) -> None:
        """This process has posted a letter."""
        if shard in self._unread:
            self._unread[shard] += 1

    def seen(self, shard: int, unread: int) -> None:
        """So many links wait for a shard."""
        if shard in self._unread:
            self._unread[shard] = unread

    def emptied(self, shard: int) -> None:
        """The inbox of a shard was found empty."""
        if shard in self._unread:
            self._unread[shard] = 0

    def has_any(self, shard: int) -> bool:
        """Return whether there may be a letter for a shard."""
        if self._mono() >= self._look_at and not self._unread.get(shard):
            self.look()
        return self._unread.get(shard, 0) > 0

    def depth(self) -> int:
        """Return how many links wait for the shards that are claimed here, as last seen."""
        return sum(self._unread.values())

    def look(self) -> None:
        """Ask now."""
        self._look_at = self._mono() + LOOK_S
        shards = list(self._unread)
        values = self._server.ask_all(
            [("HGET", self._keys.shard(shard), "unread") for shard in shards]
        )
        self._unread = {shard: int(value or 0) for shard, value in zip(shards, values, strict=True)}
