"""The messages between the service and the process of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from mannerly.crawler.runtime.news import Told
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats

    from .kinds import JobKind

# How a crawl ends that did what was asked of it.
COMPLETE = ("finished", "max_urls", "duration")
CANCELLED = "cancelled"  # its hosts answered with nothing but 429


class JobOrder(NamedTuple):
    """Everything that the process of a job is told."""

    kind: JobKind
    run: int  # its number; the first is 1
    location: str
    seeds: list[str]
    settings: CrawlSettings
    host_concurrency: dict[str, int]
    failure_threshold: int  # URLs in a row that ended in an error; 0: any number
    throttle_threshold: int  # answers 429 in a row at a long wait; 0: any number
    throttle_delay_s: float  # the shortest of these waits
    retries: list[str | None]  # hosts whose failed and given-up URLs are queued; None: all


class StopJob(NamedTuple):
    """From the service: wait for requests under way as long as the grace is, then end."""


class JobReport(NamedTuple):
    """From the process, twice a second: the totals of this run so far."""

    stats: Stats
    elapsed_s: float
    told: list[Told]  # what happened since the last report


class JobEnd(NamedTuple):
    """The last message of the process. `error` says in words why the job failed."""

    ending: str
    fetched: int = 0
    failed: int = 0
    pending: int = 0
    given_up: int = 0
    error: str | None = None
    counts: dict[str, int] | None = None  # of this kind of job: broken links, changed pages

    @property
    def is_complete(self) -> bool:
        """Return whether the crawl did what was asked of it."""
        return self.error is None and self.ending in COMPLETE


ToService: TypeAlias = JobReport | JobEnd
