"""A connection to a server of crawls: it has their scripts, and knows what these refuse.

The Lua scripts of a crawl are a file each, loaded into a server once and called by digest.
`owner.lua` is put in front of those that an owner of a shard calls: it checks the fence. Those that
take URLs know the places of their values (`layout`).
"""

from __future__ import annotations

from functools import cache

from mannerly.crawler.store.fleet import CrawlGone, LeaseLost
from mannerly.database.client import ServerConnection
from mannerly.database.errors import StoreError
from mannerly.database.scripts import Script, assembled

from .layout import constants

_PARTS = {
    "commit": ("queue", "arrive", "links"),
    "admit": ("queue",),
    "bring_back": ("queue",),
}
_OWNED = ("commit", "admit", "take", "bring_back", "rest", "release", "sent")


@cache
def script(name: str) -> Script:
    """Return a script by the name of its file."""
    fence = ("owner",) if name in _OWNED else ()
    before = constants() if name in _PARTS else ""
    return assembled(__package__, name, (*fence, *_PARTS.get(name, ())), before)


class ValkeyServer(ServerConnection):
    """A connection to a server, made when it is first needed and again when it was lost."""

    def script(self, name: str) -> Script:
        """Return a script by its name."""
        return script(name)

    def meaning(self, word: str, text: str) -> StoreError:
        """Return the error that an answer of a script means, by its first word."""
        rest, name, server = text.partition(" ")[2], self.address.name, self.address.server
        if word == "GONE":
            return CrawlGone(
                f"the crawl {name} is not in {server} any more: it was wiped, or the server lost "
                "its data"
            )
        if word == "LOST":
            return LeaseLost(rest)
        if word == "NUMBERS":
            return StoreError(f"the crawl {name} in {server}: {rest}")
        return super().meaning(word, text)

    def time_ms(self, key: str) -> int:
        """Return the time of the server that holds a key."""
        now_ms: int = self.call("time", [key], {})
        return now_ms
