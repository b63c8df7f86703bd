"""A spider: seeds, options of a crawl, and handlers of its pages. It is run as a crawl.

To a crawl its handlers are one extract function (`page.handlers`, `page.extract`): they run in
helper processes, which import the file of the spider. So what they return is committed with its
page, and a spider has nothing to lose in a crash.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mannerly.crawler.options.values import OptionError, from_keywords
from mannerly.crawler.page.extract import (
    ExtractError,
    NamedFunction,
    is_loading,
    is_only_here,
    load,
    module_of,
)
from mannerly.crawler.page.handlers import Handlers
from mannerly.crawler.web.seeds import canonical_seeds
from mannerly.crawler.web.words import many

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
    from typing import Unpack

    from mannerly.crawler.options.keywords import CrawlOptions
    from mannerly.crawler.page.extract import Extract

    from .crawl import Crawl, CrawlResult
    from .item_feed import ItemFeed, NextItem

POLL_S = 0.1  # between two questions for items that were committed meanwhile


class Spider(Handlers):
    """Seeds, options of a crawl, and a handler for each kind of page.

        shop = mannerly.Spider("https://shop.example/", max_rate=4)

        @shop.on("*/category/*")
        def category(page):
            for link in page.select("a.product"):
                yield page.follow(link, label="product")

        @shop.on(label="product")
        def product(page):
            yield {"name": page.select_one("h1").text}

    `mannerly run FILE.py -o items.jsonl` runs it; so does `for item in shop.run()`. Links
    are followed as by `crawl`; with `follow=False` only what handlers yield is asked for.

    Args:
        seeds: URLs to begin with.
        options: every option of `mannerly crawl`, by its name with underscores.

    Attributes:
        result: how the latest run in this program ended; None before.

    Raises:
        OptionError: an option is unknown, or a value is out of its range.
        ValueError: a seed is not an http or https URL.
    """

    def __init__(self, *seeds: str, **options: Unpack[CrawlOptions]) -> None:
        super().__init__()
        if "extract" in options:
            raise OptionError("extract: a spider has handlers in its place")
        if options.get("follow") is False:
            options.setdefault("seeding_strategy", "none")  # only what handlers yield
        from_keywords(options)  # raises OptionError
        canonical_seeds(seeds)  # raises ValueError
        self.seeds = seeds
        self.options = options
        self.result: CrawlResult | None = None
        self.__module__ = sys._getframe(1).f_globals.get("__name__", "")  # where it is found again

    def __repr__(self) -> str:
        return f"<Spider {' '.join(self.seeds)}>"

    def run(
        self,
        seeds: str | Iterable[str] = (),
        *,
        data_dir: str | Path | None = None,
        fresh: bool = False,
        **options: Unpack[CrawlOptions],
    ) -> Generator[dict[str, Any]]:
        """Run the crawl, and yield items as they come, as dicts.

            for item in shop.run(data_dir="crawl-shop"):
                print(item)

        Asking for the next item acknowledges the one before: it does not come again, whatever is
        killed. A loop that was left continues when the program is run again with the same
        `data_dir`, with the item that it had in hand. The crawl does not wait for a slow loop: its
        items are in the store. Without a `data_dir` nothing is kept. A warning says on how many
        pages handlers failed.

        Args:
            seeds: in place of those of the spider.
            data_dir: directory of the crawl; running again with the same one resumes the crawl.
            fresh: delete the crawl in `data_dir` first, and start over.
            options: options of the crawl, on top of those of the spider.

        Raises:
            ExtractError: the file of the spider cannot be imported, or does this when it is.
            OptionError, ValueError, StoreError: as `Crawl`.
        """
        return self._items(self._crawl(seeds, data_dir, options, fresh=fresh))

    def arun(
        self,
        seeds: str | Iterable[str] = (),
        *,
        data_dir: str | Path | None = None,
        fresh: bool = False,
        **options: Unpack[CrawlOptions],
    ) -> AsyncGenerator[dict[str, Any]]:
        """Run the crawl like `run`, for `async for`, without blocking the event loop."""
        return self._aitems(self._crawl(seeds, data_dir, options, fresh=fresh))

    def _crawl(
        self,
        seeds: str | Iterable[str],
        data_dir: str | Path | None,
        options: CrawlOptions,
        *,
        fresh: bool,
    ) -> Crawl:
        if is_loading():
            raise ExtractError(
                "the spider is run while its file is imported, and helper processes import it, "
                'too: put that below `if __name__ == "__main__":`'
            )
        from .crawl import Crawl  # helpers that import a spider run none

        name = NamedFunction(self).name
        if self.__module__ == "__main__" and not is_only_here(name):
            load(name)  # as helpers will: what is wrong is found now
        mine: CrawlOptions = {**self.options, **options, "extract": self}
        return Crawl(seeds or self.seeds, data_dir=data_dir, fresh=fresh, **mine)

    def _items(self, made: Crawl) -> Generator[dict[str, Any]]:
        from .crawl import LEAVING_S
        from .item_feed import ItemFeed

        with made, closing(ItemFeed(made, Path(made.location))) as feed:
            try:
                made.start(patience_s=LEAVING_S)
                while (found := _more(made, feed)) is not None:
                    for given in found:
                        yield given.item
                        feed.acknowledge(given)
            finally:
                self._ended(made)

    async def _aitems(self, made: Crawl) -> AsyncGenerator[dict[str, Any]]:
        import asyncio

        from .crawl import LEAVING_S
        from .item_feed import ItemFeed

        feed = ItemFeed(made, Path(made.location))
        try:
            made.start(patience_s=LEAVING_S)
            while (found := await asyncio.to_thread(_more, made, feed)) is not None:
                for given in found:
                    yield given.item
                    feed.acknowledge(given)
        finally:
            self._ended(made)
            feed.close()
            await asyncio.to_thread(made.close)

    def _ended(self, made: Crawl) -> None:
        self.result = result = made.result
        if result is not None and (failed := result.stats.extracted).errors:
            words = f"handlers failed on {many(failed.errors, 'page')}, first: {failed.first_error}"
            warnings.warn(words, RuntimeWarning, stacklevel=3)


def _more(made: Crawl, feed: ItemFeed) -> list[NextItem] | None:
    """Return the next items, perhaps none after a wait; None: the crawl has ended, and had all."""
    is_over = not made.is_running
    found = feed.more()
    if not found:
        if is_over:
            made.wait()  # raises why it failed, if it did
            return None
        with suppress(TimeoutError):
            made.wait(POLL_S)
    return found


class FoundSpider(NamedTuple):
    """A spider of a file."""

    name: str  # of its variable
    place: str  # FILE:NAME, by which every process finds it
    spider: Spider


class FoundHandlers(NamedTuple):
    """A spider or a function of a file, and how to call it."""

    name: str  # of its variable
    file: str
    function: Extract
    options: Mapping[str, Any]  # of the spider

    @property
    def place(self) -> str:
        """FILE:NAME, by which every process finds it."""
        return f"{self.file}:{self.name}"


def find_handlers(text: str) -> FoundHandlers:
    """Return the spider that FILE.py or FILE.py:NAME means, or the function of FILE.py:NAME.

    Raises:
        ExtractError: the file cannot be loaded, or has no such spider or function.
    """
    place, _, name = text.rpartition(":")
    if place.endswith(".py"):
        path = Path(place).expanduser().absolute()
        function = getattr(module_of(path), name, None)
        if callable(function) and not isinstance(function, Spider):
            return FoundHandlers(name, str(path), function, {})
    found = find_spider(text)
    return FoundHandlers(
        found.name, found.place.rpartition(":")[0], found.spider, found.spider.options
    )


def find_spider(text: str) -> FoundSpider:
    """Return the spider that FILE.py or FILE.py:NAME means.

    Raises:
        ExtractError: the file cannot be loaded, or has no such spider, or several.
    """
    place, _, name = (text, "", "") if text.endswith(".py") else text.rpartition(":")
    if not place.endswith(".py"):
        raise ExtractError(f"{text} is not FILE.py or FILE.py:NAME")
    path = Path(place).expanduser().absolute()
    spiders = {
        each: value
        for each, value in vars(module_of(path)).items()
        if isinstance(value, Spider) and each.isidentifier()
    }
    known = ", ".join(spiders)
    if not spiders:
        raise ExtractError(f"{place} has no spider: write NAME = mannerly.Spider(URL) in it")
    if name and name not in spiders:
        raise ExtractError(f"{place} has no spider {name} (it has: {known})")
    if not name and len(spiders) > 1:
        example = f"{place}:{next(iter(spiders))}"
        raise ExtractError(f"{place} has several spiders, {known}: name one, as in {example}")
    name = name or known
    return FoundSpider(name, f"{path}:{name}", spiders[name])
