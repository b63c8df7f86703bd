"""The reasons for which a job ends by itself: failures in a row, nothing but 429, the service."""

from __future__ import annotations

from collections import Counter

import pytest

from mannerly.crawler.runtime.news import Told
from mannerly.crawler.stats import Stats
from mannerly.politeness.events import Recovered, Slowed, Throttled
from mannerly.service.jobs.messages import JobReport, StopJob
from mannerly.service.jobs.watch import JobWatch

HOST = "a.example"
AT_LONGEST = Slowed(HOST, 0.0, 60.0, 30)


class Line:
    """A channel to the service."""

    def __init__(self) -> None:
        self.is_ended = self.has_unsent = False
        self.sent: list[JobReport] = []
        self.incoming: list[StopJob] = []

    def receive(self) -> list[StopJob]:
        return self.incoming

    def send(self, message: JobReport) -> None:
        self.sent.append(message)


def watch(**thresholds: int) -> JobWatch:
    return JobWatch(Line(), **thresholds)  # type: ignore[arg-type]


def refusal(status: int = 429, retry_after_s: float | None = None) -> Throttled:
    return Throttled(HOST, 0.0, status, retry_after_s)


def test_failures_in_a_row_fail_the_job() -> None:
    """The twentieth one ends it, with the reason in words."""
    seen = watch(failure_threshold=20)

    seen(Stats(longest_failures=19), 1.0)
    before = seen.switch.wants_end
    seen(Stats(longest_failures=20), 1.0)

    assert not before
    assert seen.switch.wants_end
    assert (seen.ending, seen.reason) == (None, "20 URLs in a row ended in an error")


def test_failures_after_the_end_change_nothing() -> None:
    """A job that was stopped is not called failed because of what ends meanwhile."""
    seen = watch(failure_threshold=2)
    seen.switch.stop()

    seen(Stats(longest_failures=5), 1.0)

    assert seen.reason is None


@pytest.mark.parametrize("delayed_by", [[AT_LONGEST], []])
def test_nothing_but_429_at_the_longest_delay_cancels_the_job(delayed_by: list[Slowed]) -> None:
    """A delay of 60 s may be ours, or what the host asked for."""
    seen = watch(throttle_threshold=20)
    asked_s = None if delayed_by else 60.0
    seen.hear(Told([*delayed_by, *[refusal(retry_after_s=asked_s)] * 19]))
    seen(Stats(), 1.0)
    before = seen.switch.wants_end

    seen.hear(Told([refusal(retry_after_s=asked_s)]))
    seen(Stats(), 2.0)

    assert not before
    assert seen.switch.wants_end
    assert seen.ending == "cancelled"
    assert "20 answers in a row were 429" in str(seen.reason)


@pytest.mark.parametrize(
    "events",
    [
        [Slowed(HOST, 0.0, 59.0, 30), *[refusal()] * 50],
        [AT_LONGEST, *[refusal(503)] * 50],
        [AT_LONGEST, Recovered(HOST, 0.0, 2.0), *[refusal()] * 50],
        [AT_LONGEST, *[refusal()] * 19],
    ],
)
def test_other_refusals_cancel_nothing(events: list[Slowed | Throttled | Recovered]) -> None:
    """A delay that can still grow, another status, a host that recovered, too few."""
    seen = watch(throttle_threshold=20)

    seen.hear(Told(list(events)))
    seen(Stats(), 1.0)

    assert not seen.switch.wants_end


def test_a_page_in_between_begins_the_count_anew() -> None:
    """Also one of another host: the job gets on. A 429 that is recorded is no such page."""
    seen = watch(throttle_threshold=20)

    for fetched, refused in ((1, 0), (3, 2)):
        seen.hear(Told([AT_LONGEST, *[refusal()] * 15]))
        seen(Stats(fetched=fetched, statuses=Counter({200: 1, 429: refused})), 1.0)
        if fetched == 1:
            first = seen.switch.wants_end

    assert not first
    assert not seen.switch.wants_end
    seen.hear(Told([refusal()] * 5))
    seen(Stats(fetched=3, statuses=Counter({200: 1, 429: 2})), 2.0)
    assert seen.ending == "cancelled"


def test_by_default_no_number_of_429_cancels_a_job() -> None:
    """Waiting is what a polite crawler does."""
    seen = watch()

    seen.hear(Told([AT_LONGEST, *[refusal()] * 100]))
    seen(Stats(), 1.0)

    assert not seen.switch.wants_end


def test_job_ends_when_the_service_says_so_or_is_gone() -> None:
    """With the grace for requests under way, or at once."""
    told, left = watch(), watch()
    told._channel.incoming.append(StopJob())  # type: ignore[attr-defined]
    left._channel.is_ended = True

    told(Stats(), 1.0)
    left(Stats(), 1.0)

    assert (told.switch.wants_end, told.switch.wants_end_now) == (True, False)
    assert left.switch.wants_end_now
