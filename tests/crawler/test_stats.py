"""Totals of a crawl: a fold over its events, and where hosts are counted that wait."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Any, get_args

import pytest
from tests.crawler.views import a_view, a_wait

from mannerly.crawler import events as crawl_events
from mannerly.crawler.events import Event, HostPlaces, ShardMeasured
from mannerly.crawler.host_view import HostStatus, status_of
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry, PageRecord, RobotsRequest
from mannerly.crawler.stats import (
    REMARKABLE,
    HostTally,
    Latencies,
    LoopTimes,
    Present,
    RequestCounts,
    Stats,
    Waits,
)
from mannerly.crawler.stats_fold import PACED, StatsFold, waits_of
from mannerly.crawler.web.priority import placed
from mannerly.politeness import events as polite
from mannerly.politeness.model import Outcome, Reason

HOST = "a.example"
ENTRY = Entry(1, "https://a.example/", HOST, 0, 0, None, 0)
SITEMAP = ENTRY._replace(kind=Kind.SITEMAP)
ROBOTS = RobotsRequest("https://a.example/robots.txt", HOST, "https://a.example")
NO_PLACES = HostPlaces(0, 0, 0, 0, {}, 0, 0, 0, None)


def record(status: int | None = 200, error: str | None = None, size: int = 100) -> PageRecord:
    return PageRecord(
        url=ENTRY.url,
        status=status,
        depth=0,
        parent=None,
        title=None,
        content_type=None,
        bytes=size,
        latency_ms=50.0,
        fetched_at=0.0,
        attempts=1,
        links=0,
        canonical=None,
        redirect_to=None,
        error=error,
        host=HOST,
        digest=None,
    )


def page(
    status: int | None = 200,
    error: str | None = None,
    outcome: Outcome = Outcome.OK,
    **rest: Any,
) -> crawl_events.PageSettled:
    return crawl_events.PageSettled(
        ENTRY, record(status, error), outcome, 0.05, **{"passed_over": {}} | rest
    )


def fold(*events: Event) -> Stats:
    folded = StatsFold()
    for event in events:
        folded(event)
    return folded.summed()


def sent(
    gap_s: float | None, *, is_early: bool = False, delay_s: float = 1.0
) -> crawl_events.RequestSent:
    return crawl_events.RequestSent(HOST, gap_s, delay_s, is_early)


def measured(shard: int, **numbers: Any) -> ShardMeasured:
    usual = {"in_flight": 0, "undelivered": 0, "queued": 0, "places": NO_PLACES}
    return ShardMeasured(shard, **usual | numbers)


def test_every_reason_to_wait_for_an_instant_is_told() -> None:
    """A reason in no list would make its hosts vanish from the progress line."""
    without_instant = (Reason.IN_FLIGHT, Reason.PAUSED, Reason.RETIRED)

    for reason in set(Reason) - {*PACED, *without_instant}:
        assert status_of(reason) is not HostStatus.FETCHING
    assert {status_of(reason) for reason in PACED} == {HostStatus.FETCHING}


# ---------------------------------------------------------------------- one event each


def test_a_page_with_an_answer_is_fetched_whatever_its_status() -> None:
    """Statuses and bytes are counted; a page without an answer is failed, by its reason."""
    stats = fold(
        page(),
        page(404, outcome=Outcome.NEUTRAL),
        page(None, "timeout", Outcome.OVERLOAD),
        page(None, outcome=Outcome.OVERLOAD),
    )

    assert (stats.fetched, stats.bytes) == (2, 200)
    assert stats.statuses == {200: 1, 404: 1}
    assert stats.failed == {"timeout": 1, "unknown": 1}


def test_links_that_were_not_taken_are_skipped_by_reason() -> None:
    """Those of pages and of lists are added up; the lists themselves are no pages."""
    stats = fold(
        page(passed_over={"off_host": 3, "scheme": 1}),
        crawl_events.ListSettled(SITEMAP, record(), {"off_host": 2}),
    )

    assert stats.skipped == {"off_host": 5, "scheme": 1}
    assert (stats.fetched, stats.robots) == (1, 1)


def test_robots_and_lists_are_counted_together() -> None:
    """Whether they could be had or not: they are requests that are no pages."""
    stats = fold(
        crawl_events.RobotsAnswered(ROBOTS, 200),
        crawl_events.RobotsAnswered(ROBOTS, None),
        crawl_events.ListSettled(SITEMAP, record(404), {}),
    )

    assert (stats.robots, stats.fetched, stats.statuses) == (3, 0, {})


def test_requisites_are_counted_apart_from_pages() -> None:
    """With those that failed; what they need in turn and was not taken has its reason."""
    stats = fold(
        page(),
        crawl_events.RequisiteSettled(SITEMAP, 200, {"requisites_capped": 1}),
        crawl_events.RequisiteSettled(SITEMAP, 404, {}),
        crawl_events.RequisiteSettled(SITEMAP, None, {}),
    )

    assert (stats.fetched, stats.statuses, stats.robots) == (1, {200: 1}, 0)
    assert (stats.requisites, stats.requisites_failed) == (3, 2)
    assert stats.other_statuses == {200: 1, 404: 1, 0: 1}
    assert stats.skipped == {"requisites_capped": 1}


def test_a_host_is_tallied_with_its_answers_and_refusals() -> None:
    """A page that failed on our side says nothing about the host."""
    stats = fold(
        page(),
        page(429, outcome=Outcome.THROTTLE),
        crawl_events.PageRetried(ENTRY, is_refusal=True),
        crawl_events.PageRetried(ENTRY, is_refusal=False),
        page(None, "blocked_address", Outcome.NEUTRAL, is_local=True),
    )

    tally = stats.tallies[HOST]
    assert (tally.fetched, tally.refused) == (2, 2)
    assert tally.latency_s == pytest.approx(0.1)
    assert stats.failed == {"blocked_address": 1}


def test_retries_are_counted_and_only_refusals_are_told_of_a_host() -> None:
    """A retry after a failure makes no line in the summary."""
    stats = fold(crawl_events.PageRetried(ENTRY, is_refusal=False))

    assert stats.requests.retries == 1
    assert stats.tallies == {}


def test_the_smallest_gap_is_kept_with_the_gap_in_force_then() -> None:
    """The first request has none; requests that were early are counted."""
    stats = fold(
        sent(None),
        sent(2.0, delay_s=1.5),
        sent(1.2, delay_s=1.1),
        sent(0.3, delay_s=1.0, is_early=True),
        sent(3.0, delay_s=9.0),
    )

    tally = stats.tallies[HOST]
    assert (tally.smallest_gap_s, tally.asked_gap_s) == (0.3, 1.0)
    assert (stats.requests.audited, stats.requests.too_early, tally.early) == (5, 1, 1)


def test_a_first_request_makes_no_tally() -> None:
    """A million hosts that are asked once have no line in the summary."""
    assert fold(sent(None)).tallies == {}


def test_dropped_urls_are_skipped_by_the_reason_before_the_colon() -> None:
    """Why a single host was given up is in its record, not in the totals."""
    stats = fold(
        crawl_events.UrlsDropped("host_retired: 3 failures in a row", 40),
        crawl_events.UrlsDropped("host_retired", 2),
        crawl_events.UrlsDropped("robots", 1),
    )

    assert stats.skipped == {"host_retired": 42, "robots": 1}


def test_found_urls_and_throttles_and_commits_are_counted() -> None:
    """New URLs add up, refusals add up, and the latest commit counts."""
    stats = fold(
        crawl_events.UrlsFound(3),
        crawl_events.UrlsFound(4),
        polite.Throttled(HOST, 0.0, 429, None),
        crawl_events.BatchCommitted(10, 0.2),
        crawl_events.BatchCommitted(1, 0.1),
    )

    assert (stats.found, stats.requests.throttles, stats.loop.commit_s) == (7, 1, 0.1)


def test_the_latest_measurement_of_every_shard_counts() -> None:
    """Shards are added up; a shard's new measurement replaces its old one."""
    places = HostPlaces(6, 5, 1, 2, {}, 1, 1, 1, 4.0)
    stats = fold(
        measured(0, in_flight=9, queued=900, undelivered=9, places=NO_PLACES),
        measured(1, in_flight=1, queued=10, undelivered=2, places=places),
        measured(0, in_flight=2, queued=20, places=places._replace(next_in_s=1.5)),
    )

    assert (stats.now.in_flight, stats.now.queued, stats.now.undelivered) == (3, 30, 2)
    assert (stats.now.hosts, stats.hosts_known) == (10, 12)
    assert stats.now.waits == a_wait(ready=2, pace=2, busy=2, other=2, next_in_s=1.5, paused=2)


def test_hosts_wait_for_what_they_said_or_for_their_pace() -> None:
    """The reasons are those that the progress line tells; none is counted twice."""
    waiting = {
        Reason.PACE: 1,
        Reason.CRAWL_DELAY: 2,
        Reason.RETRY_AFTER: 4,
        Reason.BREAKER_OPEN: 8,
        Reason.ROBOTS: 2,
    }

    waits = waits_of(HostPlaces(90, 40, 5, 30, waiting, 3, 1, 7, 2.0))

    assert waits == a_wait(
        ready=5,
        pace=30 - 5 - 14,
        busy=3,
        other=7,
        next_in_s=2.0,
        asked_to_wait=4,
        backing_off=8 + 2,
        paused=1,
    )
    assert waits.fetching == 5 + 11 + 3 + 7


def test_hosts_that_were_seen_come_closer_with_time() -> None:
    """A countdown goes on between two looks; one that is over stays at nothing."""
    folded = StatsFold()
    host = a_view(HOST, HostStatus.ASKED_TO_WAIT, 3, 1.0, 60.0)
    paused = a_view("b.example", HostStatus.PAUSED, 3)
    folded(crawl_events.HostsSeen(0, 100.0, (host,)))
    folded(crawl_events.HostsSeen(1, 100.0, (paused,)))

    soon, late = folded.host_views(110.0), folded.host_views(1000.0)

    assert [each.next_in_s for each in soon] == [50.0, None]
    assert [each.next_in_s for each in late] == [0.0, None]


@pytest.mark.parametrize("latency_s", [0.0001, 0.142, 0.89, 1.0, 30.0])
def test_latencies_are_known_to_an_eighth(latency_s: float) -> None:
    """However many responses there were, and with none it is nothing."""
    latencies = Latencies()
    for number in range(100):
        latencies.note(latency_s if number < 95 else 1000.0)

    assert latencies.within(0.95) == pytest.approx(latency_s, rel=0.125)
    assert latencies.within(1.0) == pytest.approx(1000.0, rel=0.125)
    assert Latencies().within(0.5) == 0.0


def held_back(url: str) -> crawl_events.PageSettled:
    """A page that was held back before it was fetched."""
    entry = ENTRY._replace(url=url, priority=placed(9, is_held_back=True))
    return page()._replace(entry=entry, record=record()._replace(url=url))


def test_what_is_held_back_is_counted_until_it_is_fetched() -> None:
    """By host and pattern, only so many of them, and never below nothing."""
    month = "a.example/calendar/*"
    many = {f"a.example/{number}x/*": 1 for number in range(2 * REMARKABLE)}

    stats = fold(
        crawl_events.UrlsHeldBack({month: 3}),
        held_back("https://a.example/calendar/1"),
        held_back("https://a.example/day/1"),  # an earlier run has found it
        page(),
    )
    flooded = fold(crawl_events.UrlsHeldBack(many))
    stats.add(fold(crawl_events.UrlsHeldBack({month: 5})))

    assert stats.held_back == {month: 7}
    assert flooded.held_back.total() == 2 * REMARKABLE
    assert len(flooded.held_back) == REMARKABLE + 1


def test_what_was_mended_in_the_store_is_kept() -> None:
    """One line for each shard, for the summary."""
    assert fold(crawl_events.StoreMended("a"), crawl_events.StoreMended("b")).mended == ["a", "b"]


def test_waits_are_counted_by_the_limit_that_decided_them() -> None:
    """What a host asked for when it asked, and not again when its next request waits for it."""
    stats = fold(
        crawl_events.HostWaits(HOST, "https://a.example/1", 0.5, "pace"),
        crawl_events.HostWaits(HOST, "https://a.example/2", 9.0, "retry_after"),
        polite.Throttled(HOST, 0.0, 429, 20.0),
        polite.Opened(HOST, 10.0, 70.0, 1),
        polite.Throttled(HOST, 0.0, 429, inf),
    )
    stats.add(fold(crawl_events.HostWaits(HOST, "https://a.example/3", 0.5, "pace", times=16)))

    assert {reason: waits.total() for reason, waits in stats.requests.blocked.items()} == {
        "pace": 17,
        "retry_after": 2,
        "breaker_open": 1,
    }
    assert stats.requests.blocked["retry_after"].within(0.5) == pytest.approx(20.0, rel=0.125)
    assert stats.requests.blocked["breaker_open"].within(1.0) == pytest.approx(60.0, rel=0.125)


def test_answers_that_are_no_pages_are_counted_by_status() -> None:
    """Robots.txt, and tries that are repeated; 0: there was no answer."""
    stats = fold(
        crawl_events.PageRetried(ENTRY, is_refusal=True, status=503),
        crawl_events.PageRetried(ENTRY, is_refusal=False),
        crawl_events.RobotsAnswered(RobotsRequest("https://a.example/robots.txt", HOST, ""), 404),
    )

    assert stats.other_statuses == {503: 1, 0: 1, 404: 1}


def test_run_that_has_ended_leaves_its_counts() -> None:
    """Nothing is queued or under way in it any more."""
    stats = Stats(fetched=3, now=Present(queued=5, in_flight=2, scheduled=1, waits=Waits(ready=1)))

    assert stats.ended() == Stats(fetched=3)


HEARD = {
    crawl_events.RequestSent,
    crawl_events.RobotsAnswered,
    crawl_events.PageSettled,
    crawl_events.ListSettled,
    crawl_events.RequisiteSettled,
    crawl_events.ItemsExtracted,
    crawl_events.HandlerLacked,
    crawl_events.PageRendered,
    crawl_events.ShellFound,
    crawl_events.PageRetried,
    crawl_events.PageVisited,
    crawl_events.UrlsDropped,
    crawl_events.UrlsFound,
    crawl_events.UrlsHeldBack,
    crawl_events.HostGivenUp,
    crawl_events.ShardMeasured,
    crawl_events.HostsSeen,
    crawl_events.HostWaits,
    crawl_events.BatchCommitted,
    crawl_events.StoreMended,
    crawl_events.LoopStalled,
    crawl_events.ShardLost,
}


def test_every_event_of_the_crawl_is_counted() -> None:
    """A new event has to be put in the list."""
    ours = {kind for kind in get_args(Event) if kind.__module__ == crawl_events.__name__}

    assert ours - HEARD == {crawl_events.SitemapsLimited}


@pytest.mark.parametrize(
    "event",
    [
        polite.Retired(HOST, 0.0, "it fails"),
        polite.Evicted(HOST, 0.0),
    ],
)
def test_other_events_change_nothing(event: Event) -> None:
    """Their consequences are told by events of their own."""
    assert fold(event) == Stats()


# ---------------------------------------------------------------------- totals of several


def test_tallies_are_kept_for_a_few_hundred_hosts_only() -> None:
    """Those that come first; the totals know all."""
    stats = Stats()
    for number in range(REMARKABLE):
        assert stats.tally(f"h{number}.example") is not None

    assert stats.tally("one-more.example") is None
    assert stats.tally("h7.example") is stats.tallies["h7.example"]


def test_totals_of_processes_are_added_up() -> None:
    """Every number of both is in the sum; of gaps the smallest counts, of commits the longest."""
    one = fold(
        page(passed_over={"robots": 1}),
        sent(2.0),
        crawl_events.RobotsAnswered(ROBOTS, 200),
        crawl_events.PageRetried(ENTRY, is_refusal=True),
        crawl_events.UrlsFound(3),
        crawl_events.HostGivenUp(HOST, "it fails"),
        polite.Throttled(HOST, 0.0, 429, None),
        crawl_events.BatchCommitted(1, 0.1),
        measured(
            0, in_flight=1, undelivered=1, queued=5, places=HostPlaces(3, 2, 1, 1, {}, 0, 0, 1, 9)
        ),
    )
    other = fold(
        page(None, "timeout", Outcome.OVERLOAD),
        sent(0.5, is_early=True, delay_s=0.4),
        crawl_events.HostGivenUp("b.example", "it fails"),
        crawl_events.BatchCommitted(1, 0.3),
        measured(
            0, in_flight=2, undelivered=3, queued=7, places=HostPlaces(1, 1, 0, 0, {}, 1, 0, 0, 2)
        ),
    )
    other.now.trouble = "no room"

    one.add(other)

    assert one == Stats(
        fetched=1,
        bytes=100,
        statuses=one.statuses,
        other_statuses=Counter({200: 1, 0: 1}),
        failed=one.failed,
        skipped=one.skipped,
        robots=1,
        hosts_known=4,
        latencies=Latencies({-28: 1}),
        found=3,
        hosts_given_up=2,
        tallies={
            HOST: HostTally(
                fetched=2, refused=1, latency_s=0.1, smallest_gap_s=0.5, asked_gap_s=0.4, early=1
            )
        },
        longest_failures=1,
        failures=Counter({"timeout": 1}),
        requests=RequestCounts(throttles=1, retries=1, audited=2, too_early=1),
        now=Present(
            in_flight=3,
            undelivered=4,
            queued=12,
            hosts=3,
            waits=Waits(ready=1, busy=1, other=1, next_in_s=2),
            scheduled=one.now.scheduled,
            trouble="no room",
        ),
        loop=LoopTimes(commit_s=0.3, commits=one.loop.commits),
    )
    assert (one.statuses, one.failed, one.skipped) == ({200: 1}, {"timeout": 1}, {"robots": 1})


def test_a_host_without_a_gap_does_not_hide_one() -> None:
    """A process that asked the host once has no gap to tell."""
    tally = HostTally(smallest_gap_s=0.7, asked_gap_s=0.5)

    tally.add(HostTally())

    assert (tally.smallest_gap_s, tally.asked_gap_s) == (0.7, 0.5)
    assert HostTally().smallest_gap_s == inf


def test_failures_in_a_row_are_counted_until_a_success() -> None:
    """The longest row stays: the service lets a job fail by it."""
    failed, fetched = page(None, "timeout", Outcome.OVERLOAD), page(200)

    totals = fold(failed, failed, fetched, failed)

    assert totals.longest_failures == 2


def test_refused_pages_and_hosts_that_are_given_up_are_failures_in_a_row() -> None:
    """An answer of 400 or above, and every URL of such a host; elsewhere a 404 is no error."""
    missing, unchanged = page(404), page(399)
    given_up = crawl_events.UrlsDropped("host_retired: it failed 5 times", 15)

    totals = fold(unchanged, missing, missing, page(500), given_up)

    assert totals.longest_failures == 18
    assert totals.failed == {}
    assert fold(missing, page(200), missing).longest_failures == 1
    assert fold(crawl_events.UrlsDropped("excluded", 15)).longest_failures == 0
