"""The process of one job: it runs the crawl, reports its totals, and ends with the service.

Four times a second it looks whether the service wants it to end. When the service is gone, even by
kill -9, the channel ends, and the crawl is stopped at once; it goes on when the service is back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mannerly.crawler.crawl import Crawl
from mannerly.crawler.runtime.ending import Ending, StopSwitch
from mannerly.crawler.store.base import StoreError

if TYPE_CHECKING:
    from mannerly.crawler.runtime.child import Channel
    from mannerly.crawler.runtime.news import Told
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats

REPORT_EVERY = 2  # looks: two reports a second
MOST_TOLD = 20  # parts of news that wait for a report


class JobOrder(NamedTuple):
    """Everything that the process of a job is told."""

    location: str
    seeds: list[str]
    settings: CrawlSettings
    host_concurrency: dict[str, int]
    failure_threshold: int  # URLs in a row that ended in an error; 0: any number
    wants_retry: bool  # queue URLs again that failed or were given up


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

    @property
    def is_complete(self) -> bool:
        """Return whether the crawl did what was asked of it."""
        limits = (Ending.FINISHED.value, Ending.MAX_URLS.value, Ending.DURATION.value)
        return self.error is None and self.ending in limits


ToService: TypeAlias = JobReport | JobEnd


def main(channel: Channel) -> None:
    """Run one job until it ends, or until the service stops it or is gone."""
    order: JobOrder = channel.wait()
    try:
        channel.send(_run(order, channel))
    except (StoreError, OSError, ValueError) as error:
        channel.send(JobEnd("error", error=str(error)))


def _run(order: JobOrder, channel: Channel) -> JobEnd:
    with Crawl.of(order.settings, order.seeds, order.location) as crawl:
        for host, count in order.host_concurrency.items():
            crawl.host(host).set(per_host=count)
        if order.wants_retry:
            crawl.retry()
        watch = _Watch(channel, order.failure_threshold)
        result = crawl.run(interrupts=watch.switch, watch=watch, hear=watch.hear, closely=True)
        total = crawl.status().total
        error = watch.failure or "; ".join(
            f"{each.url}: {each.cause}" for each in result.seed_problems[:5]
        )
        return JobEnd(
            result.ending.value,
            total["fetched"],
            total["failed"],
            result.pending,
            result.given_up,
            error or None,
        )


class _Watch:
    """Called four times a second by the crawl: reports, and finds the reasons to end."""

    def __init__(self, channel: Channel, failure_threshold: int) -> None:
        self.switch = StopSwitch()
        self.failure: str | None = None
        self._channel = channel
        self._threshold = failure_threshold
        self._looks = 0
        self._told: list[Told] = []

    def hear(self, told: Told) -> None:
        """Keep what happened for the next report."""
        if told.events and len(self._told) < MOST_TOLD:
            self._told.append(told)

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        for message in self._channel.receive():
            if isinstance(message, StopJob):
                self.switch.stop()
        if self._channel.is_ended:
            self.switch.stop(at_once=True)
        if self._threshold and stats.longest_failures >= self._threshold and self.failure is None:
            self.failure = f"{stats.longest_failures} URLs in a row ended in an error"
            self.switch.stop()
        # A service that does not read gets no report, rather than ever more of them.
        if self._looks % REPORT_EVERY == 0 and not self._channel.has_unsent:
            self._channel.send(JobReport(stats, elapsed_s, self._told))
            self._told = []
        self._looks += 1
