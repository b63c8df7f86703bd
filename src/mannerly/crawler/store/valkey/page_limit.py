"""`--max-urls` of a crawl in a server: the pages that its members may still start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.control import Recrawl, in_force

if TYPE_CHECKING:
    from mannerly.database.client import Payload

    from .crawl import ValkeyCrawl


def take_pages(crawl: ValkeyCrawl, pages: int) -> int:
    """Return how many of `pages` may be started; a negative number gives pages back."""
    asked = crawl.manifest.settings.get("max_urls")
    orders = crawl.orders()
    limit = in_force(orders).options.get("max_urls", asked)
    rounds = [order.round for _, order in orders if isinstance(order, Recrawl)]
    payload: Payload = {
        "id": crawl.manifest.id,
        "pages": pages,
        "round": max(rounds, default=0),
        "limit": int(limit) if isinstance(limit, int | float) else -1,
    }
    granted: int = crawl.server.call("pages", [crawl.keys.meta], payload)
    return granted
