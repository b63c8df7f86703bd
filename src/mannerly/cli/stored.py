"""A stored crawl as the commands that look at it see it, wherever it is kept.

A location without a crawl is the user's mistake (exit 2); a crawl that cannot be read is damage
(exit 4). All of this works while the crawl runs.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from .terminal import fail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.crawler.crawl import StoredCrawl

Location = Annotated[
    str, typer.Argument(metavar="DIR", show_default=False, help="The --data-dir of a crawl.")
]
"""The argument that names a crawl: a directory, or SCHEME:REST for another store."""


@contextmanager
def opened(location: str | Path) -> Iterator[StoredCrawl]:
    """Open a crawl to look at it or to steer it, or end with a sentence if there is none.

    Raises:
        StoreError: it is damaged, or of another version.
    """
    from mannerly.crawler.crawl import open_crawl
    from mannerly.crawler.store.base import StoreMissing

    try:
        crawl = open_crawl(location)
    except StoreMissing as error:
        _fail_missing(error)
    with crawl:
        yield crawl


def require_crawl(location: str | Path) -> None:
    """End with a sentence if there is no crawl at a location."""
    from mannerly.crawler.store import exists

    if not exists(location):
        _fail_missing(f"there is no crawl in {location}")


def when(crawl: StoredCrawl) -> str:
    """Return when an order takes effect, to be put behind what was ordered."""
    return "" if crawl.store.is_running() else " (in force when the crawl is resumed)"


def _fail_missing(why: object) -> NoReturn:
    fail(f"{why}: give the --data-dir of one")
