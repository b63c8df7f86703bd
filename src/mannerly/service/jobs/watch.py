"""The watch of a job's crawl: reports to the service, and finds the reasons to end.

failures     so many URLs in a row ended in an error after their retries: the job has failed
throttles    so many answers in a row were 429 at the longest delay, and no page came in
between: the job is cancelled
service      it wants the job to end, or is gone
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.runtime.ending import StopSwitch
from mannerly.politeness import events as polite

from .messages import CANCELLED, JobReport, StopJob

if TYPE_CHECKING:
    from mannerly.crawler.crawl import Crawl, CrawlResult
    from mannerly.crawler.runtime.child import Channel
    from mannerly.crawler.runtime.news import Told
    from mannerly.crawler.stats import Stats

REPORT_EVERY = 2  # looks: two reports a second
MOST_TOLD = 20  # parts of news that wait for a report
LONGEST_DELAY_S = 60.0
TOO_MANY_REQUESTS = 429
MOST_DELAYS = 10_000  # hosts whose delay is remembered


class JobWatch:
    """Called four times a second by the crawl of a job.

    Attributes:
        ending: how the crawl ended, if this watch ended it.
        reason: why, in words.
        allows_failures: failures do not end the job.
    """

    def __init__(
        self, channel: Channel, *, failure_threshold: int = 0, throttle_threshold: int = 0
    ) -> None:
        self.switch = StopSwitch()
        self.ending: str | None = None
        self.reason: str | None = None
        self.allows_failures = False
        self._channel = channel
        self._most_failures = failure_threshold
        self._most_throttles = throttle_threshold
        self._throttles = Throttles()
        self._looks = 0
        self._told: list[Told] = []

    def run(self, crawl: Crawl) -> CrawlResult:
        """Run a crawl under this watch."""
        return crawl.run(interrupts=self.switch, watch=self, hear=self.hear, closely=True)

    def hear(self, told: Told) -> None:
        """Keep what happened for the next report."""
        if not told.events:
            return
        if len(self._told) < MOST_TOLD:
            self._told.append(told)
        if self._most_throttles:
            self._throttles.hear(told)

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        """Look at the totals."""
        for message in self._channel.receive():
            if isinstance(message, StopJob):
                self.switch.stop()
        if self._channel.is_ended:
            self.switch.stop(at_once=True)
        self._judge(stats)
        # A service that does not read gets no report, rather than ever more of them.
        if self._looks % REPORT_EVERY == 0 and not self._channel.has_unsent:
            self._channel.send(JobReport(stats, elapsed_s, self._told))
            self._told = []
        self._looks += 1

    def _judge(self, stats: Stats) -> None:
        if self.reason is not None or self.switch.wants_end:
            return
        failures, most = stats.longest_failures, self._most_failures
        throttles = self._throttles.in_a_row(stats)
        if most and failures >= most and not self.allows_failures:
            self.reason = f"{failures} URLs in a row ended in an error"
        elif self._most_throttles and throttles >= self._most_throttles:
            self.ending = CANCELLED
            self.reason = (
                f"{throttles} answers in a row were 429 at a delay of {LONGEST_DELAY_S:g} s or more"
            )
        if self.reason is not None:
            self.switch.stop()


class Throttles:
    """Counts answers 429 in a row, at hosts whose delay is as long as it gets."""

    def __init__(self) -> None:
        self._delays: dict[str, float] = {}
        self._count = 0
        self._answered = 0

    def hear(self, told: Told) -> None:
        """Count the refusals among what happened."""
        for event in told.events:
            match event:
                case polite.Throttled(host, _, status, retry_after_s):
                    delay_s = max(self._delays.get(host, 0.0), retry_after_s or 0.0)
                    self._count += status == TOO_MANY_REQUESTS and delay_s >= LONGEST_DELAY_S
                case (
                    polite.Slowed(host, _, delay_s)
                    | polite.SpedUp(host, _, delay_s)
                    | polite.Probing(host, _, delay_s)
                    | polite.Recovered(host, _, delay_s)
                ):
                    if len(self._delays) < MOST_DELAYS or host in self._delays:
                        self._delays[host] = delay_s

    def in_a_row(self, stats: Stats) -> int:
        """Return how many there were since the last page that came."""
        answered = stats.fetched - stats.statuses[TOO_MANY_REQUESTS]
        if answered != self._answered:
            self._answered, self._count = answered, 0
        return self._count
