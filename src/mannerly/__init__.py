"""Mannerly: as fast as each site allows, never faster, never losing a URL, and able to prove it.

    import mannerly

    for page in mannerly.crawl("https://example.org/", max_urls=500):
        print(page.url, page.status, page.title, len(page.body))

Everything is imported when it is used, so that importing this package takes a few milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import VERSION

if TYPE_CHECKING:
    from . import adapters as adapters
    from .crawler.crawl import Crawl, CrawlResult, acrawl, crawl
    from .crawler.options.values import OptionError
    from .crawler.page.page import Page
    from .crawler.page.request import PageRequest as Request
    from .crawler.spider import Spider
    from .crawler.store.base import StoreError
    from .crawler.stored import StoredCrawl
    from .crawler.stored import open_crawl as open  # noqa: A004 - mannerly.open reads well
    from .politeness import Politeness, Settings

__all__ = [
    "Crawl",
    "CrawlResult",
    "OptionError",
    "Page",
    "Politeness",
    "Request",
    "Settings",
    "Spider",
    "StoreError",
    "StoredCrawl",
    "acrawl",
    "crawl",
    "open",
]
__version__ = VERSION

_HOMES = {
    "Crawl": "mannerly.crawler.crawl",
    "CrawlResult": "mannerly.crawler.crawl",
    "OptionError": "mannerly.crawler.options.values",
    "Page": "mannerly.crawler.page.page",
    "Politeness": "mannerly.politeness",
    "Request": "mannerly.crawler.page.request:PageRequest",
    "Settings": "mannerly.politeness",
    "Spider": "mannerly.crawler.spider",
    "StoreError": "mannerly.crawler.store.base",
    "StoredCrawl": "mannerly.crawler.stored",
    "acrawl": "mannerly.crawler.crawl",
    "crawl": "mannerly.crawler.crawl",
    "open": "mannerly.crawler.stored:open_crawl",
}


def __getattr__(name: str) -> Any:
    if name == "adapters":
        return import_module(f"{__name__}.adapters")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = home.partition(":")
    value = globals()[name] = getattr(import_module(module), attribute or name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
