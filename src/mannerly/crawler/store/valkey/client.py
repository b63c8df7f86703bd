"""A connection to a server of crawls: it has their scripts, and knows what these refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.store.fleet import CrawlGone, LeaseLost
from mannerly.database.client import ServerConnection
from mannerly.database.errors import StoreError

from .scripts import script

if TYPE_CHECKING:
    from mannerly.database.scripts import Script


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
