"""The reasons for which a job ends by itself: failures in a row, nothing but 429, the service."""

from __future__ import annotations

from collections import Counter

import pytest

from mannerly.crawler.runtime.event_batches import EventBatch
from mannerly.crawler.stats import Stats
from mannerly.politeness import Grant, Politeness, Refuse, Response, Settings
from mannerly.politeness.events import Throttled
from mannerly.politeness.settings import STRATEGIES
from mannerly.service.jobs.model import JobReport, StopJob
from mannerly.service.jobs.watch import JobWatch

HOST = "a.example"


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


def watch(**thresholds: float) -> JobWatch:
    return JobWatch(Line(), **thresholds)  # type: ignore[arg-type]


def refusal(status: int = 429, wait_s: float = 60.0) -> Throttled:
    return Throttled(HOST, 0.0, status, None, wait_s)


def refusals(strategy: str) -> list[Throttled]:
    """Return the refusals of a host that answers with nothing but 429, until it is given up."""
    told: list[Throttled] = []

    def hear(event: object) -> None:
        if isinstance(event, Throttled):
            told.append(event)

    core, now = Politeness(Settings(strategy=strategy, seed=1), on_event=hear), 0.0
    while not isinstance(decision := core.reserve(HOST, now=now), Refuse):
        if isinstance(decision, Grant):
            core.report(decision.permit, Response(429, latency_s=0.1), now=now + 0.1)
            now += 0.1
        else:
            now = decision.until
    return told


def test_failures_in_a_row_fail_the_job() -> None:
    """The twentieth one ends it, with the reason in words."""
    seen = watch(failure_threshold=20)

    seen(Stats(longest_failures=19), 1.0)
    before = seen.switch.wants_end
    seen(Stats(longest_failures=20), 1.0)

    assert not before
    assert seen.switch.wants_end
    assert seen.ending is None
    assert str(seen.reason).startswith("20 URLs in a row failed")


def test_failures_after_the_end_change_nothing() -> None:
    """A job that was stopped is not called failed because of what ends meanwhile."""
    seen = watch(failure_threshold=2)
    seen.switch.stop()

    seen(Stats(longest_failures=5), 1.0)

    assert seen.reason is None


def test_nothing_but_429_at_a_long_wait_cancels_the_job() -> None:
    """The twentieth one ends it, with the reason in words."""
    seen = watch(throttle_threshold=20)
    seen.hear(EventBatch([refusal()] * 19))
    seen(Stats(), 1.0)
    before = seen.switch.wants_end

    seen.hear(EventBatch([refusal()]))
    seen(Stats(), 2.0)

    assert not before
    assert seen.switch.wants_end
    assert seen.ending == "cancelled"
    assert seen.reason == "nothing but 429 was answered, with waits of 20 times 60 s"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_host_that_only_answers_429_cancels_the_job_with_every_strategy(strategy: str) -> None:
    """Whether the strategy lengthens the delay or pauses: it is the wait in force that counts."""
    seen = watch(throttle_threshold=20)
    patient = watch(throttle_threshold=20, throttle_delay_s=3600.0)
    told = refusals(strategy)

    for each in (seen, patient):
        each.hear(EventBatch(list(told)))
        each(Stats(), 1.0)

    assert seen.ending == "cancelled"
    assert patient.ending is None


def test_a_long_wait_counts_as_often_as_the_shortest_one_fits_into_it() -> None:
    """One pause of 20 minutes is as many minutes of refusals as twenty of one."""
    seen = watch(throttle_threshold=20)

    seen.hear(EventBatch([refusal(wait_s=20 * 60.0)]))
    seen(Stats(), 1.0)

    assert seen.ending == "cancelled"


@pytest.mark.parametrize(
    ("threshold_s", "wait_s", "is_counted"),
    [(60.0, 59.9, False), (60.0, 59.9999, True), (5.0, 5.0, True), (5.0, 4.0, False)],
)
def test_shortest_wait_that_counts_is_a_setting(
    threshold_s: float, wait_s: float, is_counted: bool
) -> None:
    """But for the rounding of an instant."""
    seen = watch(throttle_threshold=2, throttle_delay_s=threshold_s)

    seen.hear(EventBatch([refusal(wait_s=wait_s)] * 2))
    seen(Stats(), 1.0)

    assert seen.switch.wants_end is is_counted


@pytest.mark.parametrize("events", [[refusal(503)] * 50, [refusal()] * 19])
def test_other_refusals_cancel_nothing(events: list[Throttled]) -> None:
    """Another status, too few."""
    seen = watch(throttle_threshold=20)

    seen.hear(EventBatch(list(events)))
    seen(Stats(), 1.0)

    assert not seen.switch.wants_end


def test_a_page_in_between_begins_the_count_anew() -> None:
    """Also one of another host: the job gets on. A 429 that is recorded is no such page."""
    seen = watch(throttle_threshold=20)

    for fetched, refused in ((1, 0), (3, 2)):
        seen.hear(EventBatch([refusal()] * 15))
        seen(Stats(fetched=fetched, statuses=Counter({200: 1, 429: refused})), 1.0)
        if fetched == 1:
            first = seen.switch.wants_end

    assert not first
    assert not seen.switch.wants_end
    seen.hear(EventBatch([refusal()] * 5))
    seen(Stats(fetched=3, statuses=Counter({200: 1, 429: 2})), 2.0)
    assert seen.ending == "cancelled"


def test_by_default_no_number_of_429_cancels_a_job() -> None:
    """Waiting is what a polite crawler does."""
    seen = watch()

    seen.hear(EventBatch([refusal()] * 100))
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
