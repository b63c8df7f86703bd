"""Metrics: the totals of a crawl in the format of Prometheus."""

from __future__ import annotations

from collections import Counter

from prometheus_client.parser import text_string_to_metric_families

from mannerly.crawler.stats import Latencies, Stats, Waits
from mannerly.service.metrics import metrics_text


def samples(stats: Stats) -> dict[str, float]:
    """Return the samples by name and labels, as a reader of Prometheus parses them."""
    text = metrics_text(lambda: stats, lambda: {"workers": 512})().decode()
    return {
        sample.name + "".join(f"[{value}]" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_totals_are_counters_and_gauges() -> None:
    """Each total has its name, and a label where there are kinds of it."""
    latencies = Latencies()
    for latency_s in (0.02, 0.02, 3.0):
        latencies.note(latency_s)
    stats = Stats(
        fetched=4,
        statuses=Counter({200: 3, 404: 1}),
        failed=Counter({"timeout": 2}),
        throttles=5,
        retries=6,
        cancellations=7,
        concurrency_changes=8,
        audited=40,
        queued=9,
        waits=Waits(asked_to_wait=3),
        latencies=latencies,
    )

    found = samples(stats)

    assert found["mannerly_pages_total[2xx]"] == 3
    assert found["mannerly_pages_total[4xx]"] == 1
    assert found["mannerly_pages_total[error]"] == 2
    assert found["mannerly_throttles_total"] == 5
    assert found["mannerly_retries_total"] == 6
    assert found["mannerly_cancellations_total"] == 7
    assert found["mannerly_concurrency_overrides_total"] == 8
    assert found["mannerly_politeness_violations_total"] == 0
    assert found["mannerly_queue_urls"] == 9
    assert found["mannerly_hosts[asked_to_wait]"] == 3
    assert found["mannerly_limit[workers]"] == 512
    assert found["mannerly_response_seconds_bucket[0.025]"] == 2
    assert found["mannerly_response_seconds_bucket[+Inf]"] == 3
    assert found["mannerly_response_seconds_count"] == 3


def test_no_metric_has_a_label_for_a_host() -> None:
    """Their number has no bound."""
    stats = Stats()
    assert stats.tally("a.example") is not None

    text = metrics_text(lambda: stats, dict)().decode()

    assert "a.example" not in text
