"""Keep the links of pages: their elements join the batch of their page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.shard.plugin import Plugin

if TYPE_CHECKING:
    from mannerly.crawler.model import Entry, RawExchange
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.shard.pending import Pending

MANY_ELEMENTS = 8 << 20  # bytes in memory until a commit; some 2,000 ordinary pages


class Links(Plugin):
    """Keeps the elements of pages; a large batch is committed soon."""

    def __init__(self) -> None:
        self._bytes = 0  # taken since a commit was asked for

    def settle(
        self, entry: Entry, found: Harvest, exchange: RawExchange | None, pending: Pending
    ) -> None:
        """Put the elements of a page into the batch."""
        elements = found.elements
        if elements is None:
            return
        pending.keep_elements(entry, elements)
        self._bytes += len(elements)
        if self._bytes >= MANY_ELEMENTS:
            pending.hurry()
            self._bytes = 0
