"""The totals of crawls in the text format of Prometheus: `/metrics`, and `--metrics-file`.

Counters are those of this process's life: a crawl that has ended stays counted. There is no label
for a host, whose number has no bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mannerly.crawler.stats import Latencies, Stats

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)

_COUNTERS = (
    ("requests", "Requests that were sent.", "audited"),
    ("throttles", "Answers that asked for fewer requests: 429 and others.", "throttles"),
    ("retries", "Requests that will be repeated.", "retries"),
    ("cancellations", "Requests that were granted and not sent.", "cancellations"),
    (
        "concurrency_overrides",
        "Changes of the maximum of requests in flight to a host.",
        "concurrency_changes",
    ),
    ("politeness_violations", "Requests that were sent too early; must stay 0.", "too_early"),
    ("received_bytes", "Bytes of bodies, decompressed.", "bytes"),
    ("hosts_given_up", "Hosts that were given up.", "hosts_given_up"),
)
_GAUGES = (
    ("queue_urls", "URLs that wait to be fetched.", "queued"),
    ("in_flight_requests", "Requests that wait for their answer.", "in_flight"),
    ("commit_seconds", "Duration of the latest commit.", "commit_s"),
)
_WAITS = ("ready", "pace", "asked_to_wait", "backing_off", "busy", "paused", "other")


class _Crawls(Collector):
    """Makes metrics of the totals, each time they are asked for."""

    def __init__(self, totals: Callable[[], Stats], limits: Callable[[], dict[str, float]]) -> None:
        self._totals = totals
        self._limits = limits

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        stats = self._totals()
        for name, text, field in _COUNTERS:
            yield CounterMetricFamily(f"mannerly_{name}", text, value=getattr(stats, field))
        pages = CounterMetricFamily(
            "mannerly_pages", "Pages by class of status.", labels=["status"]
        )
        for status in range(1, 6):
            count = sum(n for code, n in stats.statuses.items() if code // 100 == status)
            pages.add_metric([f"{status}xx"], count)
        pages.add_metric(["error"], sum(stats.failed.values()))
        yield pages
        for name, text, field in _GAUGES:
            yield GaugeMetricFamily(f"mannerly_{name}", text, value=getattr(stats, field))
        waits = GaugeMetricFamily(
            "mannerly_hosts", "Hosts with queued URLs, by what they wait for.", labels=["reason"]
        )
        for reason in _WAITS:
            waits.add_metric([reason], getattr(stats.waits, reason))
        yield waits
        limits = GaugeMetricFamily("mannerly_limit", "Limits that are set.", labels=["name"])
        for name, value in self._limits().items():
            limits.add_metric([name], value)
        yield limits
        yield _histogram(stats.latencies)


def metrics_text(
    totals: Callable[[], Stats], limits: Callable[[], dict[str, float]]
) -> Callable[[], bytes]:
    """Return a function that returns all metrics as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Crawls(totals, limits))
    return lambda: generate_latest(registry)


def _histogram(latencies: Latencies) -> HistogramMetricFamily:
    """Return the response times, in fewer steps than they are counted in."""
    counts = dict.fromkeys(BUCKETS_S, 0)
    sum_s = 0.0
    for step, count in latencies.items():
        seconds = latencies.seconds(step)
        sum_s += seconds * count
        for bound in BUCKETS_S:
            if seconds <= bound:
                counts[bound] += count
    buckets = [(str(bound), float(count)) for bound, count in counts.items()]
    return HistogramMetricFamily(
        "mannerly_response_seconds",
        "Time to the first byte of an answer, in steps of an eighth.",
        buckets=[*buckets, ("+Inf", float(latencies.total()))],
        sum_value=sum_s,
    )
