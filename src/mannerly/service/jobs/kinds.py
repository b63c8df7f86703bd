"""The kinds of jobs, one row each: a new kind is a new member and a new row.

The functions are in `process`, which only the process of a job imports; each gets the order and
the watch:

    def crawl(order: JobOrder, watch: JobWatch) -> JobEnd
"""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from mannerly.crawler.settings import warming

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.settings import CrawlSettings

    from .model import JobEnd, JobOrder
    from .watch import JobWatch


class JobKind(StrEnum):
    """The kind of a job: the work that it does with its seeds."""

    CRAWL = "crawl"
    RECRAWL = "recrawl"
    CHECK = "check"
    WARM = "warm"


class KindRow(NamedTuple):
    """One kind of jobs: its function, and where its runs keep their data."""

    words: str  # what it does
    function: str  # module:function
    has_one_directory: bool = False  # every run goes on in the data directory of the first
    settings: Callable[[CrawlSettings], CrawlSettings] | None = None  # its own defaults

    def load(self) -> Callable[[JobOrder, JobWatch], JobEnd]:
        """Import the function."""
        module, _, name = self.function.partition(":")
        found = getattr(import_module(module), name)
        return cast("Callable[[JobOrder, JobWatch], JobEnd]", found)


KINDS: dict[JobKind, KindRow] = {
    JobKind.CRAWL: KindRow(
        "crawl from the seeds; each run begins anew",
        "mannerly.service.jobs.process:crawl",
    ),
    JobKind.RECRAWL: KindRow(
        "crawl once, then ask for the same pages again with each run and tell what has changed",
        "mannerly.service.jobs.process:recrawl",
        has_one_directory=True,
    ),
    JobKind.CHECK: KindRow(
        "crawl, then ask once for everything that the pages link to, and count what is broken",
        "mannerly.service.jobs.process:check",
    ),
    JobKind.WARM: KindRow(
        "ask for every page that the sitemaps list until the cache in front of the site has it",
        "mannerly.service.jobs.process:warm",
        settings=warming,
    ),
}
