"""Checking: from the first order to check links on, no page of the crawl is visited any more.

The links are requests of kinds of their own (`kinds`, `page.checks`). Pages that are still queued
then are skipped at their turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.control import CheckUrls
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Drop
from mannerly.crawler.shard.plugin import Plugin

if TYPE_CHECKING:
    from mannerly.crawler.control import Control
    from mannerly.crawler.model import Entry

_NOT_VISITED = Drop("not_visited")


class Check(Plugin):
    """Lets no page be visited."""

    is_on = False

    def ordered(self, order: Control, *, is_new: bool) -> None:
        """Begin with the first order to check links, in this run or an earlier one."""
        self.is_on |= isinstance(order, CheckUrls)

    def admits(self, entry: Entry) -> Drop | None:
        """Return that a page is not visited."""
        return _NOT_VISITED if KINDS[entry.kind].is_page else None
