"""The watch of a job's crawl: reports to the service, and finds the reasons to end.

failures     so many URLs in a row ended in an error after their retries, in an answer of 400 or
             above, or with their host given up: the job has failed
throttles    so many answers in a row were 429 and led to a long wait, and no page came in between:
             the job is cancelled. A wait that is n times as long counts as n answers
service      it wants the job to end, or is gone
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.runtime.ending import StopSwitch
from mannerly.politeness import events as polite
from mannerly.politeness.bounds import LONGEST_WAIT_S

from .model import CANCELLED, THROTTLE_DELAY_S, JobReport, StopJob

if TYPE_CHECKING:
    from mannerly.crawler.crawl import Crawl, CrawlResult
    from mannerly.crawler.runtime.child import Channel
    from mannerly.crawler.runtime.event_batches import EventBatch
    from mannerly.crawler.stats import Stats

REPORT_EVERY = 2  # calls: two reports a second
MOST_BATCHES = 20  # batches of events that wait for a report
TOO_MANY_REQUESTS = 429
_ROUNDING_S = 0.001  # a wait of 60 s is that of an instant 60 s from now


class JobWatch:
    """Called four times a second by the crawl of a job.

    Attributes:
        ending: how the crawl ended, if this watch ended it.
        reason: why, in words.
        allows_failures: failures do not end the job.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        failure_threshold: int = 0,
        throttle_threshold: int = 0,
        throttle_delay_s: float = THROTTLE_DELAY_S,
    ) -> None:
        self.switch = StopSwitch()
        self.ending: str | None = None
        self.reason: str | None = None
        self.allows_failures = False
        self._channel = channel
        self._most_failures = failure_threshold
        self._most_throttles = throttle_threshold
        self._throttles = Throttles(throttle_delay_s)
        self._calls = 0
        self._batches: list[EventBatch] = []

    def run(self, crawl: Crawl) -> CrawlResult:
        """Run a crawl under this watch."""
        result = crawl.run(interrupts=self.switch, watch=self, hear=self.hear, closely=True)
        self._judge(result.stats)  # of what happened since the last call
        return result

    def hear(self, batch: EventBatch) -> None:
        """Keep what happened for the next report."""
        if not batch.events:
            return
        if len(self._batches) < MOST_BATCHES:
            self._batches.append(batch)
        if self._most_throttles:
            self._throttles.hear(batch)

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        """Judge the totals, and report them."""
        for message in self._channel.receive():
            if isinstance(message, StopJob):
                self.switch.stop()
        if self._channel.is_ended:
            self.switch.stop(at_once=True)
        self._judge(stats)
        # A service that does not read gets no report, rather than ever more of them.
        if self._calls % REPORT_EVERY == 0 and not self._channel.has_unsent:
            self._channel.send(JobReport(stats, elapsed_s, self._batches))
            self._batches = []
        self._calls += 1

    def _judge(self, stats: Stats) -> None:
        if self.reason is not None or self.switch.wants_end:
            return
        failures, most = stats.longest_failures, self._most_failures
        throttles = self._throttles.in_a_row(stats)
        if most and failures >= most and not self.allows_failures:
            self.reason = (
                f"{failures} URLs in a row failed: an error, an answer of 400 or above, or a host "
                "that was given up"
            )
        elif self._most_throttles and throttles >= self._most_throttles:
            self.ending = CANCELLED
            self.reason = (
                f"nothing but 429 was answered, with waits of {throttles} times "
                f"{self._throttles.delay_s:g} s"
            )
        if self.reason is not None:
            self.switch.stop()


class Throttles:
    """Counts answers 429 in a row after which their host has to wait for `delay_s` or longer.

    It is the wait in force that counts, whatever set it: the pace, a pause of the strategy, or what
    the host asked for. A strategy may wait once for an hour where another asks each minute: a wait
    of n times `delay_s` counts n times.
    """

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self._count = 0
        self._answered = 0

    def hear(self, batch: EventBatch) -> None:
        """Count the refusals among what happened."""
        for event in batch.events:
            if isinstance(event, polite.Throttled) and event.status == TOO_MANY_REQUESTS:
                wait_s = min(event.wait_s, LONGEST_WAIT_S) + _ROUNDING_S
                self._count += int(wait_s // self.delay_s)

    def in_a_row(self, stats: Stats) -> int:
        """Return how many there were since the last page that came."""
        answered = stats.fetched - stats.statuses[TOO_MANY_REQUESTS]
        if answered != self._answered:
            self._answered, self._count = answered, 0
        return self._count
