"""Metrics: the totals of a crawl in the format of Prometheus, for a scrape and as a file."""

from __future__ import annotations

import subprocess
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.crawler.views import a_view, a_wait
from tests.harness.programs import program

from mannerly.crawler.host_view import HostStatus
from mannerly.crawler.stats import Latencies, LoopTimes, Present, RequestCounts, Stats
from mannerly.crawler.store.fleet import FleetFigures
from mannerly.live.meter import Limits, LimitUse, added_up, limit_uses, limits_of
from mannerly.service.metrics import Reading, metrics_text


def text_of(stats: Stats, hosts: int = 0) -> str:
    """The metrics of these totals, in a service with one limit and two jobs."""
    limits = {"concurrency": LimitUse(512, stats.now.in_flight)}
    jobs = {"running": 1, "queued": 1}
    reading = Reading(stats, limits, 1_700_000_000.0, jobs, {"cancelled": 2})
    return metrics_text(reading, hosts=hosts).decode()


def samples(stats: Stats, hosts: int = 0) -> dict[str, float]:
    """Return the samples by name and labels, as a reader of Prometheus parses them."""
    return {
        sample.name + "".join(f"[{value}]" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text_of(stats, hosts))
        for sample in family.samples
    }


def times(*seconds: float) -> Latencies:
    noted = Latencies()
    for each in seconds:
        noted.note(each)
    return noted


def busy() -> Stats:
    """Totals in which nothing is zero."""
    stats = Stats(
        fetched=4,
        statuses=Counter({200: 3, 404: 1}),
        other_statuses=Counter({200: 2, 503: 4, 0: 1}),
        failed=Counter({"timeout": 2}),
        latencies=times(0.02, 0.02, 3.0),
        fleet=FleetFigures(leases=32),
        requests=RequestCounts(
            throttles=5,
            retries=6,
            cancellations=7,
            concurrency_changes=8,
            audited=40,
            blocked={"pace": times(0.4, 0.4), "retry_after": times(20.0)},
        ),
        now=Present(
            queued=9,
            in_flight=3,
            waits=a_wait(asked_to_wait=3),
            host_views=[
                a_view("a.example", HostStatus.FETCHING, 7, delay_s=0.5, fetched=11, refused=2),
                a_view("b.example", HostStatus.FETCHING, 9, delay_s=2.0),
            ],
        ),
        loop=LoopTimes(commits=times(0.004)),
    )
    tally = stats.tally("c.example")
    assert tally is not None
    tally.early = 1
    return stats


def test_totals_are_counters_and_gauges() -> None:
    """Each total has its name, and a label where there are kinds of it."""
    found = samples(busy())

    assert found["mannerly_pages_total[2xx]"] == 3
    assert found["mannerly_pages_total[4xx]"] == 1
    assert found["mannerly_pages_total[error]"] == 2
    assert found["mannerly_throttles_total"] == 5
    assert found["mannerly_retries_total"] == 6
    assert found["mannerly_cancellations_total"] == 7
    assert found["mannerly_concurrency_overrides_total"] == 8
    assert found["mannerly_politeness_violations_total"] == 0
    assert found["mannerly_over_rate_hosts"] == 1
    assert found["mannerly_queue_urls"] == 9
    assert found["mannerly_hosts[asked_to_wait]"] == 3
    assert found["mannerly_limit[concurrency]"] == 512
    assert found["mannerly_limit_used[concurrency]"] == 3
    assert found["mannerly_jobs[running]"] == 1
    assert found["mannerly_job_ends_total[cancelled]"] == 2
    assert found["mannerly_updated_timestamp_seconds"] == 1_700_000_000.0


def test_answers_to_requests_of_every_kind_are_counted_by_class() -> None:
    """Pages, robots.txt, lists and tries that are repeated; without an answer as errors."""
    found = samples(busy())

    assert found["mannerly_answers_total[2xx]"] == 5
    assert found["mannerly_answers_total[5xx]"] == 4
    assert found["mannerly_answers_total[error]"] == 3


def test_times_are_histograms() -> None:
    """Of responses and commits, and of waits by the limit that decided them."""
    found = samples(busy())

    assert found["mannerly_response_seconds_bucket[0.025]"] == 2
    assert found["mannerly_response_seconds_bucket[+Inf]"] == 3
    assert found["mannerly_response_seconds_count"] == 3
    assert found["mannerly_commit_seconds_bucket[0.005]"] == 1
    assert found["mannerly_wait_seconds_bucket[0.5][pace]"] == 2
    assert found["mannerly_wait_seconds_bucket[10.0][retry_after]"] == 0
    assert found["mannerly_wait_seconds_count[retry_after]"] == 1


def test_no_metric_has_a_label_for_a_host() -> None:
    """Their number has no bound."""
    assert "a.example" not in text_of(busy())


def test_busiest_hosts_have_labels_on_request() -> None:
    """As many as are asked for, those with the longest queues; and every host of a violation."""
    found = samples(busy(), hosts=1)

    assert found["mannerly_host_queue_urls[b.example]"] == 9
    assert found["mannerly_host_delay_seconds[b.example]"] == 2.0
    assert "mannerly_host_queue_urls[a.example]" not in found
    assert found["mannerly_host_politeness_violations_total[b.example]"] == 0
    assert found["mannerly_host_politeness_violations_total[c.example]"] == 1


def test_every_limit_has_its_use() -> None:
    """An option that was changed while the crawl runs counts; one without a value is left out."""
    from mannerly.crawler.settings import CrawlSettings

    stats = Stats(
        fetched=30, now=Present(in_flight=7, queued=50, scheduled=6, body_bytes=1000, parsing=2)
    )

    uses = limit_uses(limits_of(CrawlSettings(max_urls=100)), stats, 9.0, {"concurrency": 10.0})
    two = added_up([uses, {"concurrency": LimitUse(5.0, 1.0)}])

    assert uses["max_urls"] == (100, 30)
    assert uses["concurrency"] == (10.0, 7)
    assert uses["frontier_limit"].used == 50
    assert uses["heap_limit"].used == 6
    assert uses["memory_limit"].used == 1000
    assert uses["parse_limit"].used == 2
    assert "duration" not in uses
    assert two["concurrency"] == (15.0, 8.0)
    assert limit_uses(Limits(), stats, 9.0).keys() == {"concurrency"}


def test_the_server_of_a_crawl_has_metrics() -> None:
    """Counts of two processes are added up, its memory is not; without a server there are none."""
    stats = Stats()
    for number in (1, 2):
        figures = FleetFigures(16, number, 40, 5, 0.5, 1_000, 9_000)
        stats.add(Stats(fleet=figures, shards_lost=3))

    found = samples(stats)

    assert found["mannerly_shard_leases"] == 32
    assert found["mannerly_shard_takeovers_total"] == 3
    assert found["mannerly_shards_lost_total"] == 6
    assert found["mannerly_store_writes_total"] == 80
    assert found["mannerly_store_writes_refused_total"] == 10
    assert found["mannerly_store_wait_seconds_total"] == 1.0
    assert found["mannerly_store_memory_bytes"] == 1_000
    assert found["mannerly_store_memory_limit_bytes"] == 9_000
    assert "mannerly_shard_leases" not in samples(Stats())


@pytest.mark.processes
def test_promtool_finds_nothing_wrong() -> None:
    """Names, types and units are as Prometheus wants them, with and without labels for hosts."""
    promtool = program("promtool", "prometheus")

    for hosts in (0, 10):
        checked = subprocess.run(
            [promtool, "check", "metrics"],
            input=text_of(busy(), hosts),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
